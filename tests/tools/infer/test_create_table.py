"""CREATE TABLE from the fields of a sample: types, comments and names."""

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest

from recapture.formats.bodies import Projection
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.fields import Field
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import AsaType, InputColumn
from recapture.query.compile import compile_query
from recapture.tools.infer.create_table import Sampled, comment, statement, type_of, typed

BIGINT, FLOAT, TEXT, DATETIME, BIT, RECORD, ARRAY = AsaType


@pytest.mark.parametrize("kind", list(AsaType))
def test_a_field_whose_values_have_one_type_has_this_type(kind: AsaType) -> None:
    assert type_of([kind]) is type_of([None, kind]) is kind


@pytest.mark.parametrize(
    ("kinds", "use", "kind"),
    [
        ({BIGINT, FLOAT}, None, FLOAT),
        ({DATETIME, TEXT}, None, TEXT),
        ({BIGINT, TEXT}, None, None),
        ({BIT, BIGINT}, None, None),
        ({RECORD, ARRAY}, None, None),
        ({None}, None, None),
        (set(), None, None),
        ({DATETIME}, TEXT, TEXT),
        ({BIGINT}, TEXT, BIGINT),
        ({BIGINT}, FLOAT, BIGINT),
        ({BIGINT}, BIT, BIGINT),
        ({BIGINT, FLOAT}, BIGINT, FLOAT),
        ({BIGINT, TEXT}, FLOAT, None),
        ({DATETIME, TEXT}, DATETIME, TEXT),
        ({TEXT}, FLOAT, TEXT),
        ({None}, FLOAT, None),
    ],
)
def test_a_field_has_a_type_that_holds_all_its_values_and_its_use_decides_only_among_such_types(
    kinds: set[AsaType | None], use: AsaType | None, kind: AsaType | None
) -> None:
    assert type_of(kinds, use) is kind


@pytest.mark.parametrize("kinds", [{BIGINT, TEXT}, {BIT, DATETIME}, {FLOAT, BIT}])
def test_where_all_values_are_strings_a_field_of_several_types_is_a_string(kinds: set[AsaType | None]) -> None:
    assert type_of(kinds, only_strings=True) is TEXT


def test_a_type_that_a_field_gets_is_one_that_a_run_reads() -> None:
    """No value of the sample makes its event malformed under the statement."""
    values: dict[AsaType | None, Any] = {BIGINT: 5, FLOAT: 5.5, TEXT: "a", DATETIME: "2026-03-01", BIT: True}
    values |= {RECORD: {}, ARRAY: [], None: None}
    for kinds in itertools.chain.from_iterable(itertools.combinations(values, count) for count in (1, 2, 3)):
        for use in (None, *AsaType):
            kind = type_of(kinds, use)
            if kind is not None:
                bodies = pa.array([json.dumps({"x": values[value]}).encode() for value in kinds])
                parsed = JsonBodies().decode(bodies, Projection(declared=[InputColumn(("x",), kind)]))
                assert parsed.malformed.null_count == len(kinds), (kinds, use, parsed.malformed)


def test_a_field_that_only_the_query_has_comes_last_and_is_left_out() -> None:
    used: dict[tuple[str, ...], AsaType | None] = {("b",): None, ("A",): None, ("c",): FLOAT, ("d",): RECORD}
    fields = typed([Field("a", {BIGINT: 1})], used, Sampled(1))
    assert [(typed_field.field.name, typed_field.type) for typed_field in fields] == [
        ("a", BIGINT),
        ("b", None),
        ("c", None),
        ("d", None),
    ]
    assert {typed_field.left_out for typed_field in fields[1:]} == {"not seen, but the query reads it"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (Field("x", {BIGINT: 200}), "in every event"),
        (Field("x", {BIGINT: 199, None: 1}), "in every event; 99.5% bigint, 0.5% null"),
        (Field("x", {BIGINT: 50, FLOAT: 150}), "in every event; 75.0% float, 25.0% bigint"),
        (Field("x", {BIGINT: 200}, {"x": 199, "X": 1}), "in every event; also spelt X"),
        (Field("x", {BIGINT: 150}, record=("site",)), "in 75.0% of the events"),
    ],
)
def test_a_comment_gives_the_share_the_types_and_the_spellings(field: Field, text: str) -> None:
    (typed_field,) = typed([field], {}, Sampled(200))
    assert typed_field.left_out is None
    assert comment(typed_field, Sampled(200)) == text


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (Field("x", {BIGINT: 150}), "in 75.0% of the events; CREATE TABLE would drop the others"),
        (
            Field("x", {BIGINT: 150, TEXT: 50}),
            "75.0% bigint, 25.0% nvarchar(max); CREATE TABLE takes one type and would drop the others",
        ),
        (Field("x", {None: 200}), "always null, so its type is not known"),
        (
            Field("x", {BIGINT: 50, TEXT: 50}, record=("site",)),
            "50.0% bigint, 50.0% nvarchar(max); CREATE TABLE takes one type and would drop the others",
        ),
    ],
)
def test_a_field_that_would_drop_events_is_left_out(field: Field, reason: str) -> None:
    (typed_field,) = typed([field], {field.path: FLOAT}, Sampled(200))
    assert (typed_field.type, typed_field.left_out) == (None, reason)


def test_a_field_of_reference_data_that_would_stop_the_run_is_left_out() -> None:
    (typed_field,) = typed([Field("limit", {FLOAT: 3})], {}, Sampled(5, is_reference=True))
    assert typed_field.left_out == "in 60.0% of the rows; CREATE TABLE would stop the run at the others"


def test_a_share_is_never_rounded_to_none_or_all() -> None:
    (typed_field,) = typed([Field("x", {TEXT: 99_999, None: 1}, record=("site",))], {}, Sampled(100_001))
    assert comment(typed_field, Sampled(100_001)) == "in 99.9% of the events; 99.9% nvarchar(max), 0.1% null"


def test_the_statement_has_a_line_and_a_comment_for_each_field() -> None:
    fields = typed([Field("id", {TEXT: 2}), Field("site", {RECORD: 1}), Field("v", {FLOAT: 2})], {}, Sampled(2))
    assert statement("telemetry", fields, Sampled(2), "where from") == (
        "-- where from\n"
        "CREATE TABLE telemetry (\n"
        "    id nvarchar(max),  -- in every event\n"
        "    v float            -- in every event\n"
        "    -- site is left out: in 50.0% of the events; CREATE TABLE would drop the others\n"
        ");\n"
    )


def test_without_a_field_to_declare_there_are_only_comments() -> None:
    text = statement("telemetry", typed([Field("id", {TEXT: 1})], {}, Sampled(2)), Sampled(2), "where from")
    assert text.startswith("-- where from\n    -- id is left out: in 50.0%")
    assert columns(text + "SELECT y INTO out FROM telemetry") == {"y": TEXT}


def test_the_properties_of_a_record_are_declared_by_their_paths() -> None:
    fields = [
        Field("site", {RECORD: 2}),
        Field("a b", {BIGINT: 2}, record=("site", "in.ner")),
        Field("@", record=("a",)),
    ]
    text = statement("telemetry", typed(fields, {("SITE", "In.ner", "A B"): FLOAT}, Sampled(2)), Sampled(2), "from")
    assert text == (
        "-- from\n"
        "CREATE TABLE telemetry (\n"
        "    site record,                -- in every event\n"
        "    site.[in.ner].[a b] bigint  -- in every event\n"
        '    -- "a.@" is left out: * cannot give a column of this name, and the query does not read it by name\n'
        ");\n"
    )


def columns(text: str, alias: str = "telemetry") -> dict[str, Any]:
    query = compile_query(text, inputs={alias: CaptureInput.metadata}, output_aliases=["out"])
    return {column.path[0]: column.type for column in query.inputs[0].columns if isinstance(column, InputColumn)}


@pytest.mark.parametrize(
    "name",
    ["select", "a-b", "a]b", "[a]", "1st", "--", "$ref", "\u00e4", 'quo"te', "it's", "a.b", "@at", "slice_start"],
)
def test_any_name_that_a_query_can_read_is_declared_so_that_it_compiles(name: str) -> None:
    fields = typed([Field(name, {BIGINT: 1}), Field("y", {BIT: 1})], {(name,): None}, Sampled(1))
    quoted = f"[{name.replace(']', ']]')}]"
    text = statement("telemetry", fields, Sampled(1), "x") + f"SELECT {quoted} AS x, y INTO out FROM telemetry"
    assert columns(text) == {name: BIGINT, "y": BIT}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "a query cannot read a field of this name") for name in ("", "a\nb", "_Partition", "_row")),
        *((name, "* cannot give a column of this name, and") for name in ("@x", "slice_start")),
    ],
)
def test_a_name_that_the_query_cannot_take_is_left_out_and_says_so(name: str, reason: str) -> None:
    fields = typed([Field(name, {BIGINT: 1}), Field("y", {BIT: 1})], {}, Sampled(1))
    text = statement("telemetry", fields, Sampled(1), "x")
    assert f"is left out: {reason}" in text
    assert columns(text + "SELECT * INTO out FROM telemetry") == {"y": BIT}


def test_an_alias_with_a_hyphen_is_quoted() -> None:
    text = statement("hub-input", typed([Field("y", {BIT: 1})], {}, Sampled(1)), Sampled(1), "x")
    assert columns(text + "SELECT y INTO out FROM [hub-input]", "hub-input") == {"y": BIT}
