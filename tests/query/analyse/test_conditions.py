"""Conditions: which operators there are, and when they hold."""

from itertools import product

import pytest

from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.query.small_stream import START, Row, at, rows

TABLE = "CREATE TABLE telemetry (i bigint, j bigint, s nvarchar(max), p nvarchar(max), b bit)\n"


def holding(conditions: list[str], event: Row) -> list[str]:
    """Return the conditions that hold for an event, all computed in one query."""
    items = ", ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS c{at}" for at, condition in enumerate(conditions))
    [[row]] = rows(f"{TABLE}SELECT {items} INTO out FROM telemetry", [event])
    return [condition for condition, holds in zip(conditions, row.values(), strict=True) if holds]


def test_a_negated_predicate_holds_where_the_predicate_does_not() -> None:
    true = [
        "s NOT LIKE 'b%'",
        "s NOT LIKE '[^a]%'",
        "s NOT LIKE 'b!%' ESCAPE '!'",
        "NOT s LIKE 'b%'",
        "NOT s NOT LIKE 'a%'",
        "i NOT IN (1, 3)",
        "i NOT BETWEEN 3 AND 5",
    ]
    false = [
        "s NOT LIKE 'a%'",
        "s NOT LIKE '[a]%'",
        "s NOT LIKE 'a!%%' ESCAPE '!'",
        "NOT s LIKE 'a%'",
        "i NOT IN (1, 2)",
        "i NOT BETWEEN 1 AND 2",
    ]
    assert holding([*true, *false], at(1, i=2, s="a%")) == true


def test_not_greater_is_less_or_equal_and_not_less_is_greater_or_equal() -> None:
    true = ["i !> 2", "i !> 3", "i !< 2", "i !< 1"]
    assert holding([*true, "i !> 1", "i !< 3", "j !> 1", "j !< 1"], at(1, i=2, j=None)) == true


def test_a_pattern_may_be_computed() -> None:
    true = ["s LIKE LOWER('%EU%')", "s LIKE CONCAT('%', p, '%')", "NOT s LIKE p", "s NOT LIKE CONCAT(s, p)"]
    null = "CAST(NULL AS nvarchar(max))"
    false = ["s NOT LIKE LOWER('%EU%')", "s LIKE p", f"s LIKE {null}", f"s NOT LIKE {null}"]
    assert holding([*true, *false], at(1, s="neu", p="eu")) == true


def test_strings_are_ordered_by_code_point() -> None:
    true = [
        "s > 'B'",
        "s >= 'b'",
        "s < 'ba'",
        "s !> 'é'",
        "s BETWEEN '' AND 'c'",
        "'\ufffd' < '😀'",
        "'Z' < 'a'",
        "'10' < '9'",
    ]
    assert holding([*true, "s < 'B'", "s > 'b '", "s NOT BETWEEN 'a' AND 'c'"], at(1, s="b")) == true


def test_an_undeclared_field_next_to_a_text_is_ordered_as_a_text() -> None:
    text = "SELECT s INTO out FROM telemetry TIMESTAMP BY t WHERE s > '2026-03-01T10' AND t > '2026-03-01T10:00:02Z'"
    events = [
        at(1, s="2026-03-01T09:00:00+23:00", t=0),
        at(3, s="2026-03-01T10:00:00Z", t=START + 3 * TICKS_PER_SECOND),
    ]
    assert rows(text, events) == [[{"s": "2026-03-01T10:00:00Z"}]]


COMPARISONS = [
    "i = 1",
    "i <> 1",
    "i > 1",
    "i !> 1",
    "i = j",
    "i IN (1, 2)",
    "i NOT IN (1, 2)",
    "i IN (2, j)",
    "i NOT IN (2, j)",
    "i BETWEEN 1 AND 2",
    "s > ''",
    "i NOT BETWEEN 1 AND 2",
    "s LIKE 'a%'",
    "s NOT LIKE 'a%'",
    "s NOT LIKE '[a]%' ESCAPE '!'",
    "CASE i WHEN 1 THEN 2 ELSE 1 END = 2",
    "i IS NOT NULL",
]


def test_a_comparison_with_null_is_false_and_not_makes_it_true() -> None:
    negations = [f"NOT {comparison}" for comparison in COMPARISONS]
    in_parentheses = [f"NOT ({comparison})" for comparison in COMPARISONS]
    twice = [f"NOT (NOT ({comparison}))" for comparison in COMPARISONS]
    event = at(1, i=None, j=None, s=None)
    assert holding([*COMPARISONS, *negations, *in_parentheses, *twice], event) == [
        *negations,
        *in_parentheses,
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("i IN (2, j)", "i = 2 OR i = j"),
        ("i NOT IN (2, j)", "i <> 2 AND i <> j"),
        ("i BETWEEN j AND 2", "i >= j AND i <= 2"),
        ("i NOT BETWEEN j AND 2", "i < j OR i > 2"),
        ("NOT (i = 1 AND j = 1)", "NOT i = 1 OR NOT j = 1"),
        ("NOT (i = 1 OR j = 1)", "NOT i = 1 AND NOT j = 1"),
    ],
)
def test_two_conditions_hold_for_the_same_values(one: str, other: str) -> None:
    events = [at(1, i=i, j=j) for i, j in product((None, 1, 2, 3), repeat=2)]
    text = f"{TABLE}SELECT CASE WHEN {one} THEN 1 ELSE 0 END AS x, CASE WHEN {other} THEN 1 ELSE 0 END AS y INTO out"
    [actual] = rows(f"{text} FROM telemetry", events)
    assert {row["x"] for row in actual} == {0, 1}
    assert [row["x"] for row in actual] == [row["y"] for row in actual]


def test_and_or_and_not_combine_what_is_true_and_false() -> None:
    operands = {"i = 1": True, "i = 2": False, "j = 1": False, "NOT j = 1": True, "j IS NULL": True}
    conditions: dict[str, bool] = {}
    for (one, first), (other, second) in product(operands.items(), repeat=2):
        conditions[f"{one} AND {other}"] = first and second
        conditions[f"{one} OR {other}"] = first or second
        conditions[f"NOT ({one} AND {other})"] = not (first and second)
        conditions[f"NOT ({one} OR NOT ({other}))"] = not (first or not second)
    actual = holding([*conditions], at(1, i=1, j=None))
    assert actual == [condition for condition, holds in conditions.items() if holds]


def test_where_having_case_and_iif_negate_alike() -> None:
    events = [at(1, i=1, s="a"), at(2, i=None, s="b"), at(3, i=3, s="c")]
    [[row, other]] = rows(f"{TABLE}SELECT s INTO out FROM telemetry WHERE NOT (i = 1)", events)
    assert (row["s"], other["s"]) == ("b", "c")
    text = f"{TABLE}SELECT s INTO out FROM telemetry GROUP BY s, Tumbling(minute, 1) HAVING NOT (SUM(i) = 1)"
    assert rows(text, events) == [[{"s": "b"}, {"s": "c"}]]
    text = f"{TABLE}SELECT s, IIF(NOT (i = 1), 1, 0) AS x INTO out FROM telemetry"
    assert rows(text, events) == [[{"s": "a", "x": 0}, {"s": "b", "x": 1}, {"s": "c", "x": 1}]]
