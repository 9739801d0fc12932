"""CREATE TABLE drops events that lack a field, or have another type (docs/time-model.md, section 6)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.formats.bodies import Projection
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import AsaType, InputColumn
from tests.draws import examples
from tests.paths import ROOT
from tests.query.small_stream import START

BIGINT, FLOAT, TEXT, DATETIME, BIT = AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING, AsaType.DATETIME, AsaType.BIT
RECORD, ARRAY = AsaType.RECORD, AsaType.ARRAY
TEN = '"2026-03-01T10:00:00Z"'


def read(
    bodies: Sequence[str], *columns: InputColumn, only_strings: bool = False
) -> tuple[list[str | None], dict[str, list[object]]]:
    """Return why each body is malformed, and the values of the columns by name."""
    array = pa.array([body.encode() for body in bodies], pa.binary())
    decoder = JsonBodies(only_strings)
    parsed = decoder.decode(array, Projection(columns, declared=columns))
    assert decoder.decode(array.cast(pa.binary_view()), Projection(columns, declared=columns)) == parsed
    return parsed.malformed.to_pylist(), {column.name: parsed.columns[column].to_pylist() for column in columns}


def column(kind: AsaType, *path: str) -> InputColumn:
    return InputColumn(path or ("x",), kind)


FITTING = [
    (BIGINT, "7", 7),
    (BIGINT, "-9223372036854775808", -(2**63)),
    (BIGINT, "12.0", 12),
    (BIGINT, "1e3", 1000),
    (FLOAT, "2", 2.0),
    (FLOAT, "1.5", 1.5),
    (FLOAT, "123456789012345678901234567890", 1.2345678901234568e29),
    (TEXT, '"12"', "12"),
    (TEXT, '"{}"', "{}"),
    (TEXT, '"true"', "true"),
    (TEXT, '"a\\"b"', 'a"b'),
    (DATETIME, TEN, START),
    (BIT, "true", True),
    (BIT, "false", False),
    (RECORD, '{"x":null}', '{"x":null}'),
    (ARRAY, "[]", "[]"),
    *[(kind, "null", None) for kind in AsaType],
]
DEVIATING = [
    (BIGINT, "12.5", "x is not a bigint but float"),
    (BIGINT, '"12"', "x is not a bigint but nvarchar(max)"),
    (BIGINT, "true", "x is not a bigint but bit"),
    (BIGINT, "9223372036854775808", "x does not fit a bigint"),
    (FLOAT, '"1.5"', "x is not a float but nvarchar(max)"),
    (FLOAT, '"7.0L"', "x is not a float but nvarchar(max)"),
    (FLOAT, "1e400", "x is not a float"),
    (TEXT, "12", "x is not an nvarchar(max) but bigint"),
    (TEXT, "-1.5e-7", "x is not an nvarchar(max) but float"),
    (TEXT, "false", "x is not an nvarchar(max) but bit"),
    (TEXT, "{}", "x is not an nvarchar(max) but record"),
    (TEXT, '["a"]', "x is not an nvarchar(max) but array"),
    (DATETIME, '"noon"', "x is not a datetime"),
    (DATETIME, "20260301", "x is not a datetime but bigint"),
    (BIT, "1", "x is not a bit but bigint"),
    (BIT, '"true"', "x is not a bit but nvarchar(max)"),
    (RECORD, "[{}]", "x is not a record but array"),
    (ARRAY, '"[]"', "x is not an array but nvarchar(max)"),
]


@pytest.mark.parametrize(("kind", "written", "value"), FITTING)
def test_a_value_of_the_declared_type_is_read(kind: AsaType, written: str, value: object) -> None:
    assert read([f'{{"x":{written}}}'], column(kind)) == ([None], {"x": [value]})


@pytest.mark.parametrize(("kind", "written", "reason"), DEVIATING)
def test_a_value_of_another_type_is_not_converted(kind: AsaType, written: str, reason: str) -> None:
    assert read([f'{{"x":{written}}}'], column(kind))[0] == [reason]


@pytest.mark.parametrize("kind", AsaType)
def test_a_declared_field_has_to_be_there(kind: AsaType) -> None:
    bodies = ["{}", '{"y":{"x":1}}', '{"X":null}', '{"x":null}']
    assert read(bodies, column(kind)) == (["x is missing", "x is missing", None, None], {"x": [None] * 4})


@pytest.mark.parametrize("kind", AsaType)
@pytest.mark.parametrize("site", ["null", "{}", '{"x":null}', '"x"', "5", "[1]"])
def test_a_declared_property_of_a_record_may_be_missing(kind: AsaType, site: str) -> None:
    assert read([f'{{"site":{site}}}', "{}"], column(kind, "site", "x")) == ([None] * 2, {"site.x": [None] * 2})


def test_a_declared_property_of_a_record_has_its_type() -> None:
    bodies = ['{"site":{"X":5}}', '{"SITE":{"x":"5"}}']
    assert read(bodies, column(BIGINT, "site", "x"))[0] == [None, "site.x is not a bigint but nvarchar(max)"]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (BIGINT, '"12"', 12),
        (FLOAT, '"1.5"', 1.5),
        (BIT, '"TRUE"', True),
        (BIT, '"null"', None),
        (DATETIME, TEN, START),
        (TEXT, '"12"', "12"),
    ],
)
def test_where_all_values_are_strings_they_are_converted(kind: AsaType, written: str, value: object) -> None:
    assert read([f'{{"x":{written}}}', '{"x":null}'], column(kind), only_strings=True) == (
        [None] * 2,
        {"x": [value, None]},
    )


def test_where_all_values_are_strings_a_declared_field_still_has_to_be_there_and_to_fit() -> None:
    reasons, _ = read(['{"x":"1"}', "{}", '{"x":"1.5"}'], column(BIGINT), only_strings=True)
    assert reasons == [None, "x is missing", "x is not a bigint"]


def test_a_declared_time_is_not_left_to_the_policies() -> None:
    """What the policies judge is checked like any other field, even if it is read in another type."""
    time, bodies = column(DATETIME, "t"), pa.array([b'{"t":"noon"}', b"{}", b'{"t":null}'])
    judged = Projection(timestamp_fields=[time])
    assert JsonBodies().decode(bodies, judged).malformed.null_count == 3
    declared = Projection(timestamp_fields=[time], declared=[time])
    assert JsonBodies().decode(bodies, declared).malformed.to_pylist() == ["t is not a datetime", "t is missing", None]


# A body is a list of names and values, in order; a value is written in JSON, or a list like the body.


@dataclass(frozen=True)
class Written:
    """A value as JSON, and its type."""

    json: str
    kind: AsaType | None


Member = tuple[str, "Written | list[Member]"]

WHOLE = st.one_of(st.integers(-1000, 1000), st.integers(-(2**70), 2**70), st.sampled_from([2**63 - 1, 2**63, -(2**63)]))
FRACTIONS = st.sampled_from(["12.0", "-0.0", "12.5", "1e3", "1E-2", "1e19", "1e400", "9007199254740993.0", "0.1"])
TEXTS = st.sampled_from(['""', '"12"', '"1.5"', '"true"', '"{}"', '"[1"', '"noon"', TEN, '"\\u0031"', '"a\\"x\\":1"'])
SCALARS = st.one_of(
    WHOLE.map(lambda number: Written(str(number), BIGINT if -(2**63) <= number < 2**64 else FLOAT)),
    FRACTIONS.map(lambda written: Written(written, FLOAT)),
    TEXTS.map(lambda written: Written(written, TEXT)),
    st.sampled_from([Written("true", BIT), Written("false", BIT), Written("null", None)]),
    st.sampled_from([Written("[]", ARRAY), Written('[1,{"x":2}]', ARRAY)]),
)
NAMES = ("x", "other", "site")
SPELLINGS = [spelling for name in NAMES for spelling in (name, name.upper(), name.capitalize())]
RECORDS = st.lists(st.tuples(st.sampled_from(SPELLINGS), SCALARS), max_size=3)
BODIES = st.lists(st.tuples(st.sampled_from(SPELLINGS), st.one_of(SCALARS, RECORDS)), max_size=5)
PATHS = [(spelling,) for spelling in ("x", "Other", "site")] + [("site", "x"), ("site", "OTHER")]
TABLES = st.lists(
    st.builds(InputColumn, st.sampled_from(PATHS), st.sampled_from(list(AsaType))),
    min_size=1,
    max_size=4,
    unique_by=lambda column: column.path,
)


def as_json(value: "Written | list[Member]") -> str:
    if isinstance(value, Written):
        return value.json
    return "{" + ",".join(f'"{name}":{as_json(member)}' for name, member in value) + "}"


def found(body: "list[Member]", path: tuple[str, ...]) -> "Written | list[Member] | None":
    """Return the value at a path: under the exact name, or else the first in other letters; None if it is missing."""
    value: Written | list[Member] | None = body
    for step in path:
        if not isinstance(value, list):
            return None
        exact = [member for name, member in value if name == step]
        value = next(iter([*exact, *(member for name, member in value if name.lower() == step.lower())]), None)
    return value


def number(written: str, into: AsaType) -> float | int | None:
    """Return a number of JSON in a type; None if it loses something, or is beyond the type."""
    if into is FLOAT:
        return float(written) if abs(float(written)) < float("inf") else None
    exact = int(written) if re.fullmatch(r"-?\d+", written) else float(written)
    fits = -(2**63) <= exact < 2**63 and exact == int(exact)
    return int(exact) if fits else None


def expected(body: "list[Member]", of: InputColumn) -> tuple[str | None, object]:
    """Return why a body deviates from the declaration of a column, or else the column's value."""
    value = found(body, of.path)
    if value is None:
        return (f"{of.name} is missing" if len(of.path) == 1 else None), None
    kind = value.kind if isinstance(value, Written) else RECORD
    written = as_json(value)
    result: object = None
    match of.type, kind:
        case _, None:
            return None, None
        case ((AsaType.BIGINT | AsaType.FLOAT), (AsaType.BIGINT | AsaType.FLOAT)):
            result = number(written, of.type)
        case AsaType.DATETIME, AsaType.STRING:
            result = START if written == TEN else None
        case AsaType.STRING, AsaType.STRING:
            result = written[1:-1].replace('\\"', '"').replace("\\u0031", "1")
        case AsaType.BIT, AsaType.BIT:
            result = written == "true"
        case ((AsaType.RECORD | AsaType.ARRAY), _) if of.type is kind:
            result = written
    if result is not None:
        return None, result
    if of.type is BIGINT and re.fullmatch(r"-?\d+", written):
        return f"{of.name} does not fit a bigint", None
    is_named = kind is not of.type and (of.type, kind) != (DATETIME, TEXT)
    article = "an" if of.type in (ARRAY, TEXT) else "a"
    return f"{of.name} is not {article} {of.type}" + (f" but {kind}" if is_named else ""), None


@settings(max_examples=examples(100))
@given(table=TABLES, bodies=st.lists(BODIES, min_size=1, max_size=12))
def test_bodies_deviate_as_a_naive_reader_says(table: "list[InputColumn]", bodies: "list[list[Member]]") -> None:
    reasons, values = read([as_json(body) for body in bodies], *table)
    for row, body in enumerate(bodies):
        outcomes = [expected(body, of) for of in table]
        assert reasons[row] == next((reason for reason, _ in outcomes if reason), None)
        if reasons[row] is None:
            for of, (_, value) in zip(table, outcomes, strict=True):
                assert comparable(values[of.name][row], of) == comparable(value, of)


def comparable(value: Any, of: InputColumn) -> object:
    """Return a value as it is compared: a record or an array may be written in another way, such as 1e3 as 1000.0."""
    return json.loads(value) if value is not None and of.type in (RECORD, ARRAY) else value


def test_the_bodies_of_the_page_deviate_as_it_says() -> None:
    page = (ROOT / "docs" / "query-language.md").read_text(encoding="utf-8")
    examples_of_page = re.findall(r"^\| `(\{.*?\})` \| (.*?) \|$", page, re.MULTILINE)
    assert len(examples_of_page) == 7
    reasons, _ = read([body for body, _ in examples_of_page], column(TEXT, "id"), column(BIGINT, "v"))
    assert [f"malformed: {reason}" if reason else None for reason in reasons] == [
        text if text.startswith("malformed: ") else None for _, text in examples_of_page
    ]
