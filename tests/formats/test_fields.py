"""The fields of JSON bodies, and the types of their values."""

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.bodies import Projection
from recapture.formats.fields import Field, count_objects, count_values, fields_of, records_in
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import AsaType, InputColumn

JSON = JsonBodies()
VALUES: dict[AsaType | None, list[Any]] = {
    AsaType.BIGINT: [0, -5, 2**63 - 1],
    AsaType.FLOAT: [1.5, 1.0, 1e300, 2**63],
    AsaType.STRING: ["", "x", "2026-13-01", "7"],
    AsaType.DATETIME: ["2026-03-01", "2026-03-01T10:00:00.5+01:00"],
    AsaType.BIT: [True, False],
    AsaType.RECORD: [{}, {"a": 1}],
    AsaType.ARRAY: [[], [1]],
    None: [None],
}


def bodies(*values: Any) -> pa.Array:
    return pa.array([value if isinstance(value, bytes) else json.dumps(value).encode() for value in values])


def documents(*values: Any) -> pa.Array:
    return JSON.as_json(bodies(*values))


def fields(*values: Any, only_strings: bool = False) -> list[Field]:
    return fields_of([count_values(documents(*values), only_strings)])


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in VALUES.items() for value in values])
def test_a_value_has_one_type_and_a_column_of_this_type_reads_it(kind: AsaType | None, value: Any) -> None:
    (field,) = fields({"x": value})
    assert field.kinds == {kind: 1}
    if kind is not None:
        column = InputColumn(("x",), kind)
        read = JSON.decode(bodies({"x": value}), Projection([column]))
        assert (read.malformed.to_pylist(), read.columns[column].null_count) == ([None], 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("7", AsaType.BIGINT),
        ("-12", AsaType.BIGINT),
        ("007", AsaType.STRING),
        ("1" * 19, AsaType.STRING),
        ("1.50", AsaType.FLOAT),
        ("-2e10", AsaType.FLOAT),
        ("1e", AsaType.STRING),
        ("True", AsaType.BIT),
        ("2026-03-01 10:00", AsaType.DATETIME),
        ("", AsaType.STRING),
    ],
)
def test_where_all_values_are_strings_a_string_has_the_type_that_reads_it(text: str, kind: AsaType) -> None:
    (field,) = fields({"x": text}, only_strings=True)
    assert field.kinds == {kind: 1}
    column = InputColumn(("x",), kind)
    assert JSON.decode(bodies({"x": text}), Projection([column])).malformed.to_pylist() == [None]


def test_fields_come_in_the_order_of_their_first_appearance() -> None:
    assert [field.name for field in fields({"b": 1, "a": 2}, {"c": 3, "a": 4}, {"0": 5})] == ["b", "a", "c", "0"]


def test_names_that_differ_in_letter_case_are_one_field_under_the_most_frequent_spelling() -> None:
    (field,) = fields({"ID": 1}, {"id": 2}, {"id": None})
    assert (field.name, field.kinds, field.spellings) == ("id", {AsaType.BIGINT: 2, None: 1}, {"ID": 1, "id": 2})


def test_the_first_of_several_spellings_in_one_body_counts() -> None:
    (field,) = fields({"id": 1, "ID": "x"})
    assert (field.kinds, field.spellings) == ({AsaType.BIGINT: 1}, {"id": 1, "ID": 1})


def test_bodies_that_are_no_json_objects_have_no_fields() -> None:
    parsed = JSON.as_json(pa.array([*bodies(b"\xff", b"nope", b"", "text", [1], {}, {"x": 1}).to_pylist(), None]))
    assert count_objects(parsed) == 2
    assert [field.name for field in fields_of([count_values(parsed, False)])] == ["x"]


def test_a_byte_order_mark_in_a_body_does_not_matter() -> None:
    (field,) = fields(b'\xef\xbb\xbf{"x": 1}')
    assert (field.name, field.kinds) == ("x", {AsaType.BIGINT: 1})


def test_odd_names_are_fields_too() -> None:
    names = ["", "a b", "a.b", "x/y~z", 'quo"te', "it's", "\u00e4", "\n"]
    assert [field.name for field in fields(dict.fromkeys(names, 1))] == names


def test_the_records_of_bodies_are_found_in_any_letter_case() -> None:
    values: list[Any] = [
        {"a": {"b~/c": {"x": 1}}},
        {"a": 5, "A": {"B~/C": {"y": 2}}},
        {"A": {"B~/C": [{"y": 2}]}},
        {},
        [1],
        b"nope",
    ]
    assert records_in(documents(*values), ["a", "b~/c"]).to_pylist() == ['{"x":1}', None, '[{"y":2}]', None, None, None]
    assert records_in(documents(*values), []).to_pylist()[0] == json.dumps(values[0])
    [field] = fields_of([count_values(records_in(documents(*values), ["a", "B~/c"]), False)], ["a", "b"])
    assert (field.path, field.dotted, field.kinds) == (("a", "b", "x"), "a.b.x", {AsaType.BIGINT: 1})


ANY_VALUE = st.sampled_from([value for values in VALUES.values() for value in values])
OBJECTS = st.lists(st.dictionaries(st.sampled_from("abcAB"), ANY_VALUE, max_size=4), max_size=6)


@given(OBJECTS, st.integers(0, 6))
def test_parts_of_a_sample_count_as_the_whole_does(objects: list[dict[str, Any]], cut: int) -> None:
    parts = [count_values(documents(*part), False) for part in (objects[:cut], objects[cut:]) if part]
    together = fields_of(parts) if parts else []
    naive: dict[str, Counter[str]] = {}
    for value in objects:
        for name in dict.fromkeys(name.lower() for name in value):
            naive.setdefault(name, Counter())["events"] += 1
    assert {field.name.lower(): field.events for field in together} == {
        name: counts["events"] for name, counts in naive.items()
    }
    if objects:
        assert together == fields(*objects)
