"""The tables of an output in one slice: steps, unions, groups that are merged from panes, and the published columns."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from recapture.evaluate import expressions, statement
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.time_model.ticks import TICKS_PER_SECOND, from_datetime
from tests.evaluate.evaluated import evaluated, parts_of

START = from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))
HOUR = 3600 * TICKS_PER_SECOND
DECLARED = "CREATE TABLE telemetry (k nvarchar(max), n bigint, t datetime);\n"


def compiled(text: str, *outputs: str) -> CompiledQuery:
    return compile_query(
        DECLARED + text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=outputs or ("out",)
    )


def event(seconds: float, **columns: Any) -> dict[str, Any]:
    """Return an event so many seconds after the start of the slice."""
    time = START + round(seconds * TICKS_PER_SECOND)
    bounds = {"_slice_start": START, "_slice_end": START + HOUR}
    return {"_partition": "0", "_system_timestamp": time, "_arrival": time, **bounds, **columns}


def rows(query: CompiledQuery, events: Sequence[dict[str, Any]], number: int = 0) -> list[dict[str, Any]]:
    table = evaluated(parts_of(query, {"telemetry": events}), query.outputs[number], {})
    return table.drop_columns("slice_start").to_pylist()


def test_where_and_expressions_are_evaluated_in_order_of_the_rows() -> None:
    query = compiled("SELECT k, n + 1 AS m INTO out FROM telemetry WHERE n > 1")
    events = [event(second, k="a", n=number) for second, number in enumerate((3, 1, 2, None), 1)]
    assert rows(query, events) == [{"k": "a", "m": 4}, {"k": "a", "m": 3}]


def test_a_slice_has_the_rows_after_its_start_up_to_its_end() -> None:
    query = compiled("SELECT n INTO out FROM telemetry")
    events = [event(0, n=1), event(1e-7, n=2), event(3600, n=3), event(3600 + 1e-7, n=4)]
    assert [row["n"] for row in rows(query, events)] == [2, 3]


def test_a_datetime_is_published_in_whole_microseconds() -> None:
    query = compiled("SELECT t INTO out FROM telemetry")
    (row,) = rows(query, [event(1, t=START + 12_345_678)])
    assert row == {"t": datetime(2026, 3, 1, 10, 0, 1, 234567, tzinfo=UTC)}


def test_a_union_has_the_rows_of_each_select() -> None:
    query = compiled("SELECT k, n INTO out FROM telemetry WHERE n = 1 UNION SELECT k, n + 1 AS n FROM telemetry")
    assert rows(query, [event(1, k="a", n=1)]) == [{"k": "a", "n": 1}, {"k": "a", "n": 2}]


def test_the_rows_of_a_union_next_to_those_of_sessions_are_not_unanchored() -> None:
    sessions = "SELECT k, COUNT(*) AS n FROM telemetry GROUP BY k, SessionWindow(second, 5, 60)"
    query = compiled(f"WITH s AS ({sessions}) SELECT k, n INTO out FROM s UNION SELECT k, n FROM telemetry")
    expected = [{"k": "a", "n": 1, "_unanchored": False}, {"k": "a", "n": 7, "_unanchored": False}]
    assert rows(query, [event(1, k="a", n=7)]) == expected


def test_a_step_over_groups_that_are_merged_from_panes() -> None:
    query = compiled(
        "WITH counts AS (SELECT k, COUNT(*) AS c FROM telemetry GROUP BY k, Tumbling(minute, 1)) "
        "SELECT k, c * 10 AS tens INTO out FROM counts WHERE c > 1"
    )
    assert query.inputs[0].aggregations
    assert not query.outputs[0].selects
    events = [event(1, k="a"), event(2, k="a"), event(3, k="b")]
    assert rows(query, events) == [{"k": "a", "tens": 20}]


def test_a_step_that_two_outputs_read_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    query = compiled(
        "WITH s AS (SELECT k, LAST(n) OVER (LIMIT DURATION(second, 1)) * 2 AS twice FROM telemetry)"
        " SELECT twice INTO one FROM s SELECT k INTO two FROM s",
        *("one", "two"),
    )
    projected: list[list[str]] = []

    def counted(rows: pa.Table, items: Any, where: Any, bounds: SliceBounds) -> pa.Table:
        projected.append([name for name, _ in items])
        return expressions.project(rows, items, where, bounds)

    monkeypatch.setattr(statement, "project", counted)
    columns = [("_partition", pa.string()), ("_system_timestamp", pa.int64()), ("_arrival", pa.int64())]
    schema = pa.schema([*columns, ("k", pa.string()), ("n", pa.int64())])
    read = pa.table([["0"], [START + 1], [START], ["a"], [2]], schema=schema)
    evaluation = SliceEvaluation(SliceBounds(START, START + HOUR), lambda name: read, lambda view: read)
    assert [evaluation.rows(output).to_pylist() for output in query.outputs] == [[{"twice": 4}], [{"k": "a"}]]
    assert sum("twice" in names and "k" in names for names in projected) == 1


@pytest.mark.parametrize(
    "last",
    [
        "CASE WHEN COUNT(*) > 1 THEN DATEADD(day, 3650000, System.Timestamp()) END",
        "COALESCE(DATEADD(day, 1, System.Timestamp()), DATEADD(day, 3650000, System.Timestamp()))",
        "IIF(COUNT(*) > 1 AND DATEADD(day, 3650000, System.Timestamp()) > System.Timestamp(), 1, 0)",
    ],
)
def test_a_date_that_no_branch_takes_may_be_impossible(last: str) -> None:
    query = compiled(f"SELECT COUNT(*) AS n, {last} AS l INTO out FROM telemetry GROUP BY Tumbling(minute, 1)")
    assert [row["n"] for row in rows(query, [event(1, k="a"), event(70, k="b")])] == [1, 1]


def test_a_condition_guards_the_conditions_after_it() -> None:
    having = "COUNT(*) > 1 AND DATEADD(day, 3650000, System.Timestamp()) > System.Timestamp()"
    query = compiled(f"SELECT COUNT(*) AS n INTO out FROM telemetry GROUP BY Tumbling(minute, 1) HAVING {having}")
    assert rows(query, [event(1, k="a")]) == []
    query = compiled("SELECT n INTO out FROM telemetry WHERE n > 0 AND 1 / n > 0 AND NOT (n = 2 AND 1 / (n - 2) = 0)")
    assert rows(query, [event(1, n=0), event(2, n=1), event(3)]) == [{"n": 1}]
