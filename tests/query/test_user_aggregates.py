"""JavaScript aggregates against Python: slices that run apart have the rows of the whole stream."""

from typing import Any

import pytest
from hypothesis import given

from recapture.model import AsaType, JavaScriptFunction
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, UNIX_EPOCH
from tests.draws import slow
from tests.oracle_windows import Content, Event, Members, contents, ending_in, total
from tests.query.fast_path import Row, Slice, compiled, published
from tests.query.streams import WINDOWS, Named, adjacent, batches, chopped, described

SUM = """
function main() {
    this.init = function () { this.state = null; }
    this.accumulate = function (value, timestamp) { if (value !== null) this.state = (this.state || 0) + value; }
    this.computeResult = function () { return this.state; }
}"""
MEAN = """
function main() {
    this.init = function () { this.total = 0; this.weight = 0; }
    this.accumulate = function (row, timestamp) {
        this.total += row.level * row.weight;
        this.weight += row.weight;
    }
    this.computeResult = function () { return this.weight == 0 ? null : this.total / this.weight; }
}"""
LAST = """
function main() {
    this.init = function () { this.id = null; this.time = 0; }
    this.accumulate = function (value, timestamp) { this.id = value; this.time = timestamp.getTime(); }
    this.computeResult = function () { return [this.id, this.time]; }
}"""
FUNCTIONS = [
    JavaScriptFunction("sum", SUM, AsaType.FLOAT, (AsaType.FLOAT,), is_aggregate=True),
    JavaScriptFunction("mean", MEAN, AsaType.FLOAT, None, is_aggregate=True),
    JavaScriptFunction("last", LAST, AsaType.ARRAY, (AsaType.BIGINT,), is_aggregate=True),
]


def query(window: str) -> str:
    return (
        "CREATE TABLE telemetry (t datetime, k nvarchar(max), id bigint, n bigint, x float);\n"
        "WITH step AS (SELECT k, id, x AS level, n AS weight FROM telemetry TIMESTAMP BY t)\n"
        "SELECT System.Timestamp() AS e, k, uda.sum(level) AS total, SUM(level) AS same, uda.mean(step) AS mean,"
        f" uda.last(id) AS last INTO out FROM step GROUP BY k, {window}"
    )


def mean(members: Members) -> float | None:
    weighted = [(event.payload["x"] or 0, event.payload["n"] or 0) for event in members]
    weight = sum(event_weight for _, event_weight in weighted)
    return None if weight == 0 else sum(level * event_weight for level, event_weight in weighted) / weight


def last(members: Members) -> list[int]:
    return [members[-1].payload["id"], (members[-1].time - UNIX_EPOCH) // TICKS_PER_MILLISECOND]


def expected(content: Content) -> Row:
    sum_ = total([event.payload["x"] for event in content.members])
    end = content.end // TICKS_PER_MICROSECOND * TICKS_PER_MICROSECOND
    values: dict[str, Any] = {"total": sum_, "same": sum_, "mean": mean(content.members), "last": last(content.members)}
    return {"e": end, "k": content.group[0], **values}


def whole(windows: Named, events: list[Event], slice_: Slice) -> list[Row]:
    """Return the rows of the whole stream that belong to a slice."""
    rows = [row for _, window in windows for row in contents(events, window, ("k",))]
    return [expected(row) for row in ending_in(rows, slice_.start, slice_.end)]


def check(window: str, slices: list[Slice]) -> None:
    for slice_, rows in zip(slices, published(compiled(query(window), FUNCTIONS), slices), strict=True):
        actual = [{name: value for name, value in row.items() if name != "_unanchored"} for row in rows]
        expected_rows = whole(WINDOWS[window], list(slice_.events), slice_)
        assert sorted(actual, key=repr) == sorted(expected_rows, key=repr), described(slice_)


@pytest.mark.parametrize(
    "window",
    [
        "TumblingWindow(Duration(second, 7), Offset(second, 3))",
        "HoppingWindow(second, 10, 4)",
        "SlidingWindow(second, 5)",
        "SessionWindow(second, 3, 8)",
    ],
)
@slow(1)
@given(slices=adjacent(map(chopped, range(6))))
def test_adjacent_slices_have_the_rows_of_the_whole_stream(window: str, slices: list[Slice]) -> None:
    check(window, slices)


@pytest.mark.parametrize("window", ["TumblingWindow(second, 5)", "SlidingWindow(second, 12)"])
@slow(1)
@given(slices=batches(size=10))
def test_events_of_several_partitions_come_in_the_order_of_their_times_and_arrivals(
    window: str, slices: list[Slice]
) -> None:
    check(window, slices)
