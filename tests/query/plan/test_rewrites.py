"""Rewrites of relations: what a step costs, and which errors do not matter."""

from collections.abc import Sequence
from typing import Any

import pytest

from recapture.errors import RunError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from tests.evaluate.evaluated import evaluated, parts_of
from tests.evaluate.test_statement import event

DECLARED = "CREATE TABLE telemetry (k nvarchar(max), n bigint, d bigint, list array);\n"


def compiled(text: str, *outputs: str) -> CompiledQuery:
    metadata = {"telemetry": CaptureInput.metadata}
    return compile_query(DECLARED + text, inputs=metadata, output_aliases=outputs or ("out",))


def rows(query: CompiledQuery, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    table = evaluated(parts_of(query, {"telemetry": events}), query.outputs[0], {})
    return table.drop_columns("slice_start").to_pylist()


def steps(query: CompiledQuery, number: int = 0) -> list[str]:
    plan = query.outputs[number].plan
    return [table.name for table in plan.steps]


DIVIDING = "WITH s AS (SELECT k, n / d AS q, d FROM telemetry) "
EVENTS = [event(1, k="a", n=6, d=2), event(2, k="b", n=6, d=0)]


@pytest.mark.parametrize(
    "query",
    [
        f"{DIVIDING}SELECT k INTO out FROM s WHERE d > 0",
        f"{DIVIDING}SELECT k, q INTO out FROM s WHERE d > 0",
        f"{DIVIDING}, u AS (SELECT k, q + 1 AS r, d FROM s) SELECT k, r INTO out FROM u WHERE d > 0",
        f"{DIVIDING}SELECT k, SUM(q) AS q INTO out FROM s WHERE d > 0 GROUP BY k, Tumbling(minute, 1)",
        f"{DIVIDING}, u AS (SELECT k, q, d FROM s UNION SELECT k, q, d FROM s) SELECT k, q INTO out FROM u WHERE d > 0",
        "WITH s AS (SELECT k, LAG(n / d) OVER (LIMIT DURATION(minute, 1)) AS before FROM telemetry)"
        " SELECT k INTO out FROM s WHERE k = 'a'",
        "WITH s AS (SELECT k, SUM(n / d) AS q, COUNT(*) AS c FROM telemetry GROUP BY k, Tumbling(minute, 1))"
        " SELECT k INTO out FROM s WHERE k = 'a'",
        f"{DIVIDING}SELECT a.k INTO out FROM s a JOIN telemetry b ON a.k = b.k AND DATEDIFF(second, a, b) = 0"
        " WHERE a.k = 'a'",
    ],
)
def test_an_error_in_a_column_or_row_that_no_later_step_uses_does_not_stop_the_run(query: str) -> None:
    assert {row["k"] for row in rows(compiled(query), EVENTS)} == {"a"}


@pytest.mark.parametrize(
    "query",
    [
        f"{DIVIDING}SELECT k, q INTO out FROM s",
        f"{DIVIDING}SELECT k INTO out FROM s WHERE q > 0",
        f"{DIVIDING}SELECT LAG(q) OVER (LIMIT DURATION(minute, 1)) AS before INTO out FROM s WHERE d > 0",
    ],
)
def test_an_error_in_a_value_that_a_later_step_uses_stops_the_run(query: str) -> None:
    with pytest.raises(RunError, match="DIVIDE_BY_ZERO"):
        rows(compiled(query), EVENTS)


def test_the_where_of_a_step_guards_what_later_steps_compute() -> None:
    query = compiled("WITH s AS (SELECT k, n, d FROM telemetry WHERE d > 0) SELECT k INTO out FROM s WHERE n / d > 1")
    assert rows(query, EVENTS) == [{"k": "a"}]


def test_a_group_that_a_later_where_leaves_out_is_left_out_as_by_having() -> None:
    query = compiled(
        "WITH s AS (SELECT k, COUNT(*) AS c, System.Timestamp() AS e FROM telemetry GROUP BY k, Tumbling(minute, 1))"
        " SELECT k, c + 1 AS c, System.Timestamp() AS t, e INTO out FROM s WHERE c > 1 AND e = System.Timestamp()"
    )
    assert steps(query) == []
    [row] = rows(query, [*EVENTS, event(3, k="a", n=1, d=1)])
    assert (row["k"], row["c"]) == ("a", 3)
    assert row["t"] == row["e"]


@pytest.mark.parametrize(
    "step",
    [
        "SELECT k, COUNT(*) AS c FROM telemetry GROUP BY k, Sliding(minute, 1)",
        "SELECT k, LAG(n) OVER (LIMIT DURATION(minute, 1)) AS c FROM telemetry",
        "SELECT k, e.ArrayIndex AS c FROM telemetry CROSS APPLY GetArrayElements(list) AS e",
    ],
)
def test_a_step_that_costs_much_is_computed_once_for_several_readers(step: str) -> None:
    text = f"WITH s AS ({step}) SELECT k INTO one FROM s SELECT c INTO two FROM s"
    both, one = compiled(text, "one", "two"), compiled(text.partition(" SELECT c INTO two")[0], "one")
    assert [steps(both, number) for number in (0, 1)] == [["step 0"], ["step 0"]]
    assert steps(one) == []


def test_steps_that_double_an_expression_do_not_grow_it_without_end() -> None:
    doubling = ", ".join(f"s{n} AS (SELECT n + n AS n FROM {f's{n - 1}' if n else 'telemetry'})" for n in range(40))
    assert 1 < len(steps(compiled(f"WITH {doubling} SELECT n INTO out FROM s39"))) < 40


def test_unused_analytic_functions_look_at_no_rows() -> None:
    lags = [f"LAG({name}) OVER (LIMIT DURATION(minute, {minutes}))" for name, minutes in (("n", 9), ("d", 2))]
    query = f"WITH s AS (SELECT {lags[0]} AS a, {lags[1]} AS b FROM telemetry) SELECT b INTO out FROM s"
    [read] = compiled(query).inputs
    assert read.look_back == 2 * 60 * 10**7
