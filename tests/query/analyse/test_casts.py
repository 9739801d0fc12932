"""CAST and TRY_CAST between the types of ASA."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DefinitionError, RunError
from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, cast_as, column, string
from recapture.time_model.ticks import LARGEST
from tests.draws import examples
from tests.query.functions.calls import (
    BIGINT,
    BIT,
    DATETIME,
    FLOAT,
    TEXT,
    Given,
    columns,
    computed,
    literal,
    ticks,
    time,
)

POSSIBLE: list[tuple[Given, AsaType, object]] = [
    ("12", BIGINT, 12),
    (" +12 ", BIGINT, 12),
    ("-9223372036854775808", BIGINT, -(2**63)),
    ("9007199254740993", BIGINT, 2**53 + 1),
    (2.9, BIGINT, 2),
    (-2.9, BIGINT, -2),
    (True, BIGINT, 1),
    ("1.5", FLOAT, 1.5),
    (" -.5e3 ", FLOAT, -500.0),
    ("7", FLOAT, 7.0),
    (2**53 + 1, FLOAT, float(2**53)),
    (False, FLOAT, 0.0),
    ("true", BIT, True),
    (" False", BIT, False),
    ("1", BIT, True),
    ("0", BIT, False),
    (7, BIT, True),
    (0, BIT, False),
    (0.0, BIT, False),
    (-0.5, BIT, True),
    (12, TEXT, "12"),
    (21.0, TEXT, "21"),
    (21.5, TEXT, "21.5"),
    (-0.1, TEXT, "-0.1"),
    (0.0, TEXT, "0"),
    (100.0, TEXT, "100"),
    (12345678.9, TEXT, "12345678.9"),
    (123456789012345.0, TEXT, "123456789012345"),
    (0.00001, TEXT, "0.00001"),
    (1e15, TEXT, "1E+15"),
    (-2.5e-7, TEXT, "-2.5E-07"),
    (1.5e300, TEXT, "1.5E+300"),
    (True, TEXT, "true"),
    (time("2026-03-01T10:00:00.1234567Z"), TEXT, "2026-03-01T10:00:00.1234567Z"),
    (time("0001-01-01"), TEXT, "0001-01-01T00:00:00.0000000Z"),
    (time("9999-12-31T23:59:59.9999999Z"), TEXT, "9999-12-31T23:59:59.9999999Z"),
    (time("1969-12-31T23:59:59.9999999Z"), TEXT, "1969-12-31T23:59:59.9999999Z"),
    (Value(string('{"a": 1}'), AsaType.RECORD), TEXT, '{"a": 1}'),
    ('{"a": 1}', AsaType.RECORD, '{"a": 1}'),
    ("[1]", AsaType.ARRAY, "[1]"),
    *[
        (text, DATETIME, ticks(text))
        for text in (
            "2026-03-01T10:00:00.1234567Z",
            "2026-03-01T10:00:00.123456789Z",
            "2026-03-01T10:00:00.1Z",
            "2026-03-01 10:00:00",
            "2026-03-01T10:00",
            "2026-03-01T10",
            "2026-03-01T10Z",
            "2026-03-01T10:00+01",
            "2026-03-01T10:00:00.5+0130",
            "2026-03-01T00:00:00.0000001-05:30",
            "2026-03-01",
            "1969-12-31T23:59:59.9999999Z",
            "0001-01-01",
            "9999-12-31T23:59:59.9999999",
        )
    ],
    *[(None, kind, None) for kind in AsaType],
    *[
        (Value(cast_as(NULL, kind), kind), to, None)
        for kind, spark in ((TEXT, "STRING"), (FLOAT, "DOUBLE"), (DATETIME, "BIGINT"))
        for to in (TEXT, DATETIME if kind is not FLOAT else BIGINT)
    ],
    *[(Value(cast_as(NULL, TEXT), TEXT), to, None) for to in AsaType],
]
FAILING: list[tuple[Given, AsaType]] = [
    ("", BIGINT),
    ("this is a string", BIGINT),
    ("12.5", BIGINT),
    ("9223372036854775808", BIGINT),
    (1e19, BIGINT),
    ("", FLOAT),
    ("1.5d", FLOAT),
    ("NaN", FLOAT),
    ("Infinity", FLOAT),
    ("1e999", FLOAT),
    ("1.5\n", FLOAT),
    ("yes", BIT),
    ("2", BIT),
    ("", DATETIME),
    ("now", DATETIME),
    ("2026", DATETIME),
    ("2026-02-30", DATETIME),
    ("2026-03-01T24:00:00Z", DATETIME),
    ("2026-03-01T10:60:00Z", DATETIME),
    ("2026-03-01T10:00:60Z", DATETIME),
    ("2026-03-01T10:00:00.1234567890Z", DATETIME),
    ("2026-03-01T10:00:00 Europe/Rome", DATETIME),
    ("T10:00:00", DATETIME),
    ("0000-12-31T23:59:59Z", DATETIME),
    ("0001-01-01T00:00:00+01:00", DATETIME),
    ("9999-12-31T23:59:59-01:00", DATETIME),
    ("[1]", AsaType.RECORD),
    ("a", AsaType.RECORD),
    ("{}", AsaType.ARRAY),
]


@pytest.mark.parametrize("lenient", [False, True])
def test_a_possible_cast_gives_its_value(lenient: bool) -> None:
    actual = computed([cast(literal(value), to, lenient) for value, to, _ in POSSIBLE])
    names = [f"{value} as {to}" for value, to, _ in POSSIBLE]
    expected = [repr(value) for *_, value in POSSIBLE]
    assert list(zip(names, map(repr, actual), strict=True)) == list(zip(names, expected, strict=True))


def test_try_cast_gives_null_for_what_cannot_be_cast() -> None:
    actual = computed([cast(literal(value), to, lenient=True) for value, to in FAILING])
    assert list(zip(FAILING, actual, strict=True)) == [(case, None) for case in FAILING]


@pytest.mark.parametrize(("value", "to"), FAILING)
def test_cast_stops_the_run_for_what_cannot_be_cast(value: Given, to: AsaType) -> None:
    with pytest.raises(RunError, match="CAST"):
        computed([cast(literal(value), to, lenient=False)])


def test_the_error_names_the_value() -> None:
    with pytest.raises(RunError, match="'yesterday' is not an ISO time"):
        computed([cast(literal("yesterday"), DATETIME, lenient=False)])


@pytest.mark.parametrize(
    ("source", "to"),
    [
        (DATETIME, BIGINT),
        (DATETIME, BIT),
        (BIGINT, DATETIME),
        (BIT, DATETIME),
        (AsaType.RECORD, FLOAT),
        (AsaType.ARRAY, AsaType.RECORD),
        (BIGINT, AsaType.ARRAY),
    ],
)
def test_a_cast_between_unrelated_types_is_refused(source: AsaType, to: AsaType) -> None:
    with pytest.raises(DefinitionError, match=f"a {source} cannot be cast to {to}"):
        cast(Value(column("x"), source), to, lenient=True)


@given(
    st.lists(
        st.tuples(
            st.integers(0, LARGEST),
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(-(2**63), 2**63 - 1),
        ),
        min_size=50,
        max_size=100,
    )
)
@settings(max_examples=examples(5))
def test_what_becomes_text_comes_back_unchanged(rows: list[tuple[int, float, int]]) -> None:
    there_and_back = [
        cast(Value(cast(Value(column(name), kind), TEXT, lenient=False), TEXT), kind, lenient=False)
        for name, kind in (("at", DATETIME), ("x", FLOAT), ("n", BIGINT))
    ]
    table = pa.table(dict(zip(("at", "x", "n"), map(list, zip(*rows, strict=True)), strict=True)))
    assert list(zip(*(values.to_pylist() for values in columns(there_and_back, table)), strict=True)) == rows
