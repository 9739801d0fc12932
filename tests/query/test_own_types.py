"""Without CREATE TABLE every value has its own type, as in ASA: a naive reading of the pages, next to the rows."""

import itertools
import json
import math
import operator
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture import tokens
from recapture.formats.event_hubs import CaptureInput
from recapture.model import AsaType
from recapture.query.compile import compile_query
from tests.draws import examples
from tests.query.small_stream import at, compiled, rows

VALUES = (5, 5.0, "5", "5.0", 5.5, "a", "A", True, False, None, 2**53, 2**53 + 1, float(2**53), 2**63 - 1)
BODIES = st.lists(st.sampled_from(VALUES), min_size=1, max_size=8)
LITERALS = (5, "5", 5.5, 2**53 + 1, "a")
COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge}


def identity(value: Any) -> Any:
    """Return what two equal values have in common."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", Fraction(value)
    return type(value).__name__, value


def text(value: Any) -> str | None:
    """Return a value as it is published in a column without a type."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool) else tokens.number_text(value)


def holds(comparison: str, one: Any, other: Any) -> bool:
    """Return whether a comparison is true: values of different types are only unequal, and NULL is nothing."""
    (kind, left), (other_kind, right) = identity(one), identity(other)
    if one is None or other is None:
        return False
    if kind != other_kind or comparison in ("=", "<>"):
        return ((kind, left) == (other_kind, right)) == (comparison == "=") and comparison in ("=", "<>")
    return kind != "bool" and bool(COMPARISONS[comparison](left, right))


def published(query: str, values: list[Any]) -> list[dict[str, Any]]:
    [actual] = rows(query, [at(second, k=value, n=f"e{second}") for second, value in enumerate(values, 1)])
    return actual


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


@settings(max_examples=examples(20), deadline=None)
@given(BODIES)
def test_equal_values_are_one_group(values: list[Any]) -> None:
    groups = Counter(map(identity, values))
    expected = Counter((text(kind_and_value[1]), n) for kind_and_value, n in _named(groups, values))
    actual = published("SELECT k, COUNT(*) AS n INTO out FROM telemetry GROUP BY k, Tumbling(minute, 1)", values)
    assert Counter((row["k"], row["n"]) for row in actual) == expected
    [counted] = published(
        "SELECT COUNT(DISTINCT k) AS n INTO out FROM telemetry GROUP BY Tumbling(minute, 1)", values
    ) or [{"n": 0}]
    assert counted["n"] == len(groups.keys() - {identity(None)})


def _named(groups: Counter[Any], values: list[Any]) -> list[tuple[tuple[Any, Any], int]]:
    """Return each group with one of its values."""
    first = {identity(value): value for value in values}
    return [((key[0], first[key]), n) for key, n in groups.items()]


@settings(max_examples=examples(20), deadline=None)
@given(BODIES, st.sampled_from([*COMPARISONS]), st.sampled_from(LITERALS))
def test_a_comparison_with_a_literal_is_that_of_its_type(values: list[Any], comparison: str, other: Any) -> None:
    expected = sorted(f"e{n}" for n, value in enumerate(values, 1) if holds(comparison, value, other))
    actual = published(f"SELECT n INTO out FROM telemetry WHERE k {comparison} {literal(other)}", values)
    assert sorted(row["n"] for row in actual) == expected
    grouped = f"SELECT COUNT(*) AS c INTO out FROM telemetry WHERE k {comparison} {literal(other)}"
    counted = published(f"{grouped} GROUP BY Tumbling(minute, 1)", values)
    assert [row["c"] for row in counted] == ([len(expected)] if expected else [])


PARTS = ("s.r.a", "GetRecordPropertyValue(s.r, s.p)", "GetArrayElement(s.l, 1)", "GetArrayElement(s.l, s.i)")


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(VALUES)] * 2), min_size=1, max_size=20), st.sampled_from([*COMPARISONS]))
def test_parts_of_json_are_compared_by_their_types_in_the_body(pairs: list[tuple[Any, Any]], comparison: str) -> None:
    numbered = list(enumerate(pairs, 1))
    events = [at(n, r={"a": one}, l=[0, one], i=1, p="A", k=other, n=f"e{n}") for n, (one, other) in numbered]
    conditions = [*(f"{part} {comparison} s.k" for part in PARTS), "s.r.a IN (s.k)", "s.r.a >= GetArrayElement(s.l, 1)"]
    flags = ", ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS c{n}" for n, condition in enumerate(conditions))
    step = "WITH s AS (SELECT r, l, i, p, k, n FROM telemetry)"
    [actual] = rows(f"{step} SELECT n, {flags}, GetArrayLength(s.l) AS length INTO out FROM s", events)
    expected = {
        f"e{n}": [*[holds(comparison, *pair)] * len(PARTS), holds("=", *pair), holds(">=", pair[0], pair[0])]
        for n, pair in numbered
    }
    assert {row["n"]: [bool(row[f"c{n}"]) for n in range(len(conditions))] for row in actual} == expected


def test_parts_of_json_beyond_the_floats_are_compared_as_infinite_numbers() -> None:
    pairs = enumerate([(10**400, 10**308), (-(10**4000), -(10**308)), (10**400, 10**4000)])
    events = [at(n + 1, r={"a": one}, l=[0, other], i=1, p="A", n=f"e{n}") for n, (one, other) in pairs]
    step = "WITH s AS (SELECT r, l, i, p, n FROM telemetry)"
    for comparison, expected in ((">", ["e0"]), ("<", ["e1"]), ("=", ["e2"])):
        condition = f"GetRecordPropertyValue(s.r, s.p) {comparison} GetArrayElement(s.l, s.i)"
        [actual] = rows(f"{step} SELECT n INTO out FROM s WHERE {condition}", events)
        assert [row["n"] for row in actual] == expected


@settings(max_examples=examples(15), deadline=None)
@given(BODIES)
def test_a_join_matches_equal_values(values: list[Any]) -> None:
    pairs = itertools.combinations(enumerate(values, 1), 2)
    expected = sorted((f"e{a}", f"e{b}") for (a, one), (b, other) in pairs if holds("=", one, other))
    on = "a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 1 AND 50"
    actual = published(f"SELECT a.n AS a, b.n AS b INTO out FROM telemetry a JOIN telemetry b ON {on}", values)
    assert sorted((row["a"], row["b"]) for row in actual) == expected


@settings(max_examples=examples(15), deadline=None)
@given(BODIES)
def test_histories_and_steps_keep_the_types_apart(values: list[Any]) -> None:
    earlier: dict[Any, str] = {}
    expected = []
    for number, value in enumerate(values, 1):
        if holds("<>", value, "5"):
            expected.append((f"e{number}", earlier.get(identity(value))))
        earlier[identity(value)] = f"e{number}"
    query = """
        WITH s AS (SELECT n, NULLIF(k, '?') AS k, LAG(n) OVER (PARTITION BY k LIMIT DURATION(hour, 1)) AS p
        FROM telemetry) SELECT n, p INTO out FROM s WHERE k <> '5'
    """
    assert sorted((row["n"], row["p"]) for row in published(query, values)) == sorted(
        expected, key=lambda pair: pair[0]
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n INTO out FROM telemetry WHERE k IN (1, 'x')", ["e1", "e2"]),
        ("SELECT n INTO out FROM telemetry WHERE CASE k WHEN 1 THEN 'one' WHEN '1' THEN 'text' END = 'text'", ["e3"]),
        ("SELECT n INTO out FROM telemetry WHERE COALESCE(k, 0, 'none') = 0", ["e4"]),
        ("SELECT n INTO out FROM telemetry WHERE GetType(COALESCE(k, 0, 'none')) <> 'nvarchar(max)'", ["e1", "e4"]),
    ],
)
def test_strings_and_numbers_stand_next_to_each_other(query: str, expected: list[str]) -> None:
    assert [row["n"] for row in published(query, [1.0, "x", "1", None])] == expected


def test_a_key_may_be_compared_with_a_number() -> None:
    query = "SELECT k, COUNT(*) AS n INTO out FROM telemetry GROUP BY k, Tumbling(minute, 1) HAVING k = 0"
    assert compiled(query).outputs[0].columns[0].type is AsaType.FLOAT
    assert published(query, [0, 0.0, 1]) == [{"k": 0.0, "n": 2}]


def test_a_comparison_decides_the_type_of_a_field_only_if_it_is_published() -> None:
    [counted] = compiled("SELECT COUNT(*) AS n INTO out FROM telemetry WHERE k > 5 GROUP BY Tumbling(s, 1)").inputs
    [selected] = compiled("SELECT k INTO out FROM telemetry WHERE k > 5").inputs
    assert [column.type for column in (*counted.columns, *selected.columns)] == [AsaType.STRING, AsaType.FLOAT]
    assert counted.aggregations


@pytest.mark.parametrize("condition", ["k = 5", "k IN (5, 7)", "k NOT IN (5)"])
def test_in_csv_a_field_that_is_compared_with_numbers_is_a_number(condition: str) -> None:
    query = compile_query(
        f"SELECT i INTO out FROM telemetry WHERE {condition}",
        inputs={"telemetry": CaptureInput.metadata},
        output_aliases=["out"],
        only_strings=["telemetry"],
    )
    assert {column.type for column in query.inputs[0].columns if column.path == ("k",)} == {AsaType.FLOAT}


def test_bigints_and_floats_are_compared_exactly() -> None:
    declared = "CREATE TABLE telemetry (i bigint, x float, n nvarchar(max)) SELECT n INTO out FROM telemetry WHERE "
    events = [at(1, i=2**53 + 1, x=float(2**53), n="a"), at(2, i=5, x=5.0, n="b")]
    for condition, expected in {"i = x": ["b"], "i > x": ["a"], "x < 9007199254740993": ["a", "b"]}.items():
        assert [row["n"] for row in rows(declared + condition, events)[0]] == expected


def test_in_json_a_float_that_is_not_finite_is_a_string_whether_it_is_declared_or_not() -> None:
    """JSON has no such numbers; Json.NET writes them in quotation marks by default (FloatFormatHandling.String)."""
    expected = ["Infinity", "-Infinity", 5.0, "Infinity", None]
    events = [at(second, k=value) for second, value in enumerate([math.inf, -math.inf, 5.0, "Infinity", None], 1)]
    query = "SELECT Collect(k) AS ks INTO out FROM telemetry GROUP BY Tumbling(hour, 1)"
    [[row]] = rows(query, events)
    assert row["ks"] == expected
    computed = "SELECT Collect(CAST(k AS float) * 1e300) AS ks INTO out FROM telemetry GROUP BY Tumbling(hour, 1)"
    [[row]] = rows(computed, [at(1, k=1e300), at(2, k=-1e300), at(3, k=0.5)])
    assert row["ks"] == ["Infinity", "-Infinity", 5e299]
