"""CREATE TABLE from the fields of a sample: types, comments and names."""

from typing import Any

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.formats.fields import Field
from recapture.infer.create_table import TypedField, comment, statement, type_of, typed
from recapture.model import AsaType, InputColumn
from recapture.query.compile import compile_query

BIGINT, FLOAT, TEXT, DATETIME, BIT, RECORD, ARRAY = AsaType


@pytest.mark.parametrize("kind", list(AsaType))
def test_a_field_whose_values_have_one_type_has_this_type(kind: AsaType) -> None:
    assert type_of([kind]) is type_of([None, kind]) is kind


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ({BIGINT, FLOAT}, FLOAT),
        ({DATETIME, TEXT}, TEXT),
        ({BIGINT, TEXT}, TEXT),
        ({BIT, BIGINT}, TEXT),
        ({RECORD, ARRAY}, TEXT),
        ({None}, TEXT),
        (set(), TEXT),
    ],
)
def test_a_field_with_values_of_several_types_has_the_type_that_holds_all_of_them(
    kinds: set[AsaType | None], kind: AsaType
) -> None:
    assert type_of(kinds) is kind
    field = Field("x", dict.fromkeys(kinds, 1))
    assert not typed([field], {})[0].misfits


@pytest.mark.parametrize(
    ("kinds", "use", "kind"),
    [
        ({DATETIME}, TEXT, TEXT),
        ({BIGINT}, TEXT, TEXT),
        ({BIGINT}, FLOAT, BIGINT),
        ({BIGINT}, BIT, BIT),
        ({BIGINT, TEXT}, FLOAT, FLOAT),
        ({DATETIME, TEXT}, DATETIME, DATETIME),
        ({TEXT}, FLOAT, TEXT),
        ({TEXT}, RECORD, TEXT),
        ({None}, FLOAT, FLOAT),
        (set(), RECORD, RECORD),
    ],
)
def test_the_use_of_a_field_decides_among_the_types_that_hold_at_least_some_values(
    kinds: set[AsaType | None], use: AsaType, kind: AsaType
) -> None:
    assert type_of(kinds, use) is kind


def test_a_field_that_only_the_query_has_comes_last_in_the_type_of_its_use() -> None:
    fields = typed([Field("a", {BIGINT: 1})], {("b",): None, ("A",): None, ("c",): FLOAT, ("d",): RECORD})
    assert [(typed_field.field.name, typed_field.type) for typed_field in fields] == [
        ("a", BIGINT),
        ("b", TEXT),
        ("c", FLOAT),
        ("d", RECORD),
    ]


@pytest.mark.parametrize(
    ("field", "use", "text"),
    [
        (Field("x", {BIGINT: 200}), None, "in every event"),
        (Field("x", {BIGINT: 150}), None, "in 75.0% of the events"),
        (Field("x", {BIGINT: 199, None: 1}), None, "in every event; 99.5% bigint, 0.5% null"),
        (Field("x", {BIGINT: 50, FLOAT: 150}), None, "in every event; 75.0% float, 25.0% bigint"),
        (
            Field("x", {BIGINT: 150, TEXT: 50}),
            None,
            "in every event; 75.0% bigint, 25.0% nvarchar(max); every value is read as text",
        ),
        (
            Field("x", {BIGINT: 150, TEXT: 50}),
            FLOAT,
            "in every event; 75.0% bigint, 25.0% nvarchar(max); an event whose value is not a float is quarantined",
        ),
        (Field("x", {BIGINT: 200}, {"x": 199, "X": 1}), None, "in every event; also spelt X"),
        (Field("x"), None, "not seen, but the query reads it"),
    ],
)
def test_a_comment_gives_the_share_the_types_the_conflict_and_the_spellings(
    field: Field, use: AsaType | None, text: str
) -> None:
    (typed_field,) = typed([field], {("x",): use})
    assert comment(typed_field, 200) == text


def test_the_comment_on_reference_data_is_about_rows_which_stop_the_run() -> None:
    typed_field = TypedField(Field("limit", {FLOAT: 3, TEXT: 1}), FLOAT)
    assert comment(typed_field, 5, is_reference=True) == (
        "in 80.0% of the rows; 75.0% float, 25.0% nvarchar(max); a row whose value is not a float stops the run"
    )


def test_a_share_is_never_rounded_to_none_or_all() -> None:
    (typed_field,) = typed([Field("x", {TEXT: 99_999, None: 1})], {})
    assert comment(typed_field, 100_001) == "in 99.9% of the events; 99.9% nvarchar(max), 0.1% null"


def test_the_statement_has_a_line_and_a_comment_for_each_field() -> None:
    fields = typed([Field("id", {TEXT: 2}), Field("site", {RECORD: 1})], {})
    assert statement("telemetry", fields, 2, "where from") == (
        "-- where from\n"
        "CREATE TABLE telemetry (\n"
        "    id nvarchar(max),  -- in every event\n"
        "    site record        -- in 50.0% of the events\n"
        ");\n"
    )


def test_the_properties_of_a_record_are_declared_by_their_paths() -> None:
    fields = [
        Field("site", {RECORD: 2}),
        Field("a b", {BIGINT: 2}, record=("site", "in.ner")),
        Field("@", record=("a",)),
    ]
    text = statement("telemetry", typed(fields, {("SITE", "In.ner", "A B"): FLOAT}), 2, "where from")
    assert text == (
        "-- where from\n"
        "CREATE TABLE telemetry (\n"
        "    site record,                -- in every event\n"
        "    site.[in.ner].[a b] bigint  -- in every event\n"
        '    -- "a.@" is left out: a query cannot read a field of this name\n'
        ");\n"
    )


def columns(text: str, alias: str = "telemetry") -> dict[str, Any]:
    query = compile_query(text, inputs={alias: CaptureInput.metadata}, output_aliases=["out"])
    return {column.path[0]: column.type for column in query.inputs[0].columns if isinstance(column, InputColumn)}


@pytest.mark.parametrize(
    "name", ["select", "a-b", "a]b", "[a]", "1st", "--", "$ref", "\u00e4", 'quo"te', "it's", "a.b"]
)
def test_any_name_that_a_query_can_read_is_declared_so_that_it_compiles(name: str) -> None:
    fields = typed([Field(name, {BIGINT: 1}), Field("y", {BIT: 1})], {})
    quoted = f"[{name.replace(']', ']]')}]"
    text = statement("telemetry", fields, 1, "x") + f"SELECT {quoted} AS x, y INTO out FROM telemetry"
    assert columns(text) == {name: BIGINT, "y": BIT}


@pytest.mark.parametrize("name", ["", "@x", "a\nb", "_Partition", "_row"])
def test_a_name_that_no_query_can_read_is_left_out_and_says_so(name: str) -> None:
    fields = typed([Field(name, {BIGINT: 1}), Field("y", {BIT: 1})], {})
    text = statement("telemetry", fields, 1, "x")
    assert "is left out: a query cannot read a field of this name" in text
    assert columns(text + "SELECT y INTO out FROM telemetry") == {"y": BIT}


def test_an_alias_with_a_hyphen_is_quoted() -> None:
    text = statement("hub-input", typed([Field("y", {BIT: 1})], {}), 1, "x")
    assert columns(text + "SELECT y INTO out FROM [hub-input]", "hub-input") == {"y": BIT}
