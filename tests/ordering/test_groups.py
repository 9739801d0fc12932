"""The rows that are computed from panes are those of a loop over the panes, however many are merged at once."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import RunError
from recapture.model import AsaType, OutputColumn
from recapture.ordering import groups
from recapture.ordering.row_order import sorted_rows
from recapture.query.model import CompiledOutput
from recapture.query.plan.expressions import Expr, bigint, call, column, failure
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import (
    Fold,
    Key,
    MergedGroups,
    MergedSelect,
    MergedWindow,
    PaneAggregation,
    Partial,
    Result,
    SpreadResult,
)
from recapture.query.plan.relations import OutputPlan, SelectedTable
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import LARGEST, UNIX_EPOCH
from recapture.time_model.windows import HoppingWindow

Row = dict[str, Any]

SLICE = Slice(1000, 1100)
COUNT = Partial("count", Fold.COUNT, bigint(1), pa.int64())
TOTAL = Partial("sum_x", Fold.SUM, column("x"), pa.float64())
VALUES = Partial("count_x", Fold.COUNT, column("x"), pa.int64())
SQUARES = Partial("squares_x", Fold.SPREAD, column("x"), pa.float64())
WHOLE = Partial("sum_n", Fold.SUM, column("n"), pa.int64())
LEAST = Partial("least_k", Fold.MIN, column("k"), pa.string())
RESULTS = (
    Result("events", COUNT),
    Result("total", TOTAL),
    Result("mean", TOTAL, VALUES),
    Result("whole", WHOLE),
    Result("least", LEAST),
    SpreadResult("stdev", TOTAL, VALUES, SQUARES, of_population=False, root=True),
    SpreadResult("stdevp", TOTAL, VALUES, SQUARES, of_population=True, root=True),
    SpreadResult("var", TOTAL, VALUES, SQUARES, of_population=False, root=False),
    SpreadResult("varp", TOTAL, VALUES, SQUARES, of_population=True, root=False),
)
COLUMNS = {
    WINDOW_END: AsaType.BIGINT,
    WINDOW_ID: AsaType.STRING,
    "key": AsaType.STRING,
    "events": AsaType.BIGINT,
    "total": AsaType.FLOAT,
    "mean": AsaType.FLOAT,
    "whole": AsaType.BIGINT,
    "least": AsaType.STRING,
    **dict.fromkeys(["stdev", "stdevp", "var", "varp"], AsaType.FLOAT),
}
FEWEST = 2
"""Number of events that a group must have."""


def aggregation(length: int, offset: int) -> PaneAggregation:
    key = Key("key", column("k"), pa.string())
    return PaneAggregation(length, offset % length, (), (key,), (COUNT, TOTAL, VALUES, SQUARES, WHOLE, LEAST))


def select(*windows: HoppingWindow, columns: dict[str, AsaType] = COLUMNS) -> MergedSelect:
    """Return a SELECT of all columns of the groups that have FEWEST events."""
    merged = tuple(
        MergedWindow(window, str(number), "input a", number, aggregation(length(window), window.offset))
        for number, window in enumerate(windows)
    )
    return MergedSelect(
        MergedGroups(merged, RESULTS),
        (call(Op.GREATER_OR_EQUAL, column("events"), bigint(FEWEST)),),
        tuple((OutputColumn(name, type_), column(name)) for name, type_ in columns.items()),
    )


def length(window: HoppingWindow) -> int:
    return math.gcd(window.size, window.hop)


def computed(of: MergedSelect, panes: Sequence[Row]) -> list[Row]:
    """Return the rows of panes, which come in any order and in two batches."""
    plan = OutputPlan((), SelectedTable("output", ()), {})
    output = CompiledOutput("out", tuple(column for column, _ in of.columns), plan, (of,))

    def panes_of(view: str, number: int) -> list[pa.RecordBatch]:
        assert view == "input a"
        window = of.groups.windows[number]
        fitting = [
            {**pane, "_slice_start": SLICE.start, "_slice_end": SLICE.end}
            for pane in panes
            if (pane["_pane"] - window.window.offset) % window.aggregation.length == 0
        ]
        return [pa.RecordBatch.from_pylist(part, window.aggregation.schema) for part in (fitting[:3], fitting[3:])]

    rows: list[Row] = sorted_rows(groups.rows_of_slice(output, SLICE, panes_of)).to_pylist()
    return rows


def expected_rows(window: HoppingWindow, name: str, panes: Sequence[Row]) -> list[Row]:
    """Return the same rows, window by window and pane by pane."""
    rows = []
    for end in range(SLICE.start + 1, SLICE.end + 1):
        if (end - window.offset) % window.hop:
            continue
        members: dict[str | None, list[Row]] = {}
        for pane in sorted(panes, key=lambda pane: (pane["_pane"], pane["_partition"])):
            if end - window.size < pane["_pane"] <= end and (pane["_pane"] - window.offset) % length(window) == 0:
                members.setdefault(pane["key"], []).append(pane)
        for key, group in members.items():
            count = sum(pane["count"] for pane in group)
            if count < FEWEST:
                continue
            total = added([pane["sum_x"] for pane in group])
            values = sum(pane["count_x"] for pane in group)
            least = min((pane["least_k"] for pane in group if pane["least_k"] is not None), default=None)
            rows.append(
                {
                    WINDOW_END: end,
                    WINDOW_ID: name,
                    "key": key,
                    "events": count,
                    "total": total,
                    "mean": None if total is None else total / values,
                    "whole": added([pane["sum_n"] for pane in group]),
                    "least": least,
                    **spreads(group),
                }
            )
    return rows


def spreads(panes: Sequence[Row]) -> Row:
    """Return STDEV, STDEVP, VAR and VARP of panes, one by one, by Chan's algorithm."""
    n, mean, m2 = 0, 0.0, 0.0
    for pane in panes:
        if values := pane["count_x"]:
            delta = pane["sum_x"] / values - mean
            m2 = (m2 + pane["squares_x"]) + (((delta * delta) * n) * values) / (n + values)
            mean = mean + (delta * values) / (n + values)
            n = n + values
    sample, population = (m2 / divisor if divisor > 0 else None for divisor in (n - 1, n))
    roots = [None if variance is None else math.sqrt(variance) for variance in (sample, population)]
    return {"stdev": roots[0], "stdevp": roots[1], "var": sample, "varp": population}


def added(values: Sequence[Any]) -> Any:
    """Return the sum of the values that are given, added one by one; None if there are none."""
    total = None
    for value in values:
        if value is not None:
            total = value if total is None else total + value
    return total


def in_order(rows: Sequence[Row]) -> list[str]:
    """Return the rows as texts, sorted; a text tells floats apart by their last bit."""
    return sorted(map(repr, rows))


TOTALS = st.floats(-1e300, 1e300).map(lambda x: x + 0.0) | st.floats(-100, 100).map(lambda x: x + 0.0)


@st.composite
def some_panes(draw: st.DrawFn) -> list[Row]:
    """Draw panes, at most one for each place, partition and key."""
    places = st.tuples(st.integers(930, 1110), st.sampled_from(["0", "1", "10"]), st.sampled_from(["a", "é", None]))
    panes = []
    for pane, partition, key in draw(st.lists(places, unique=True, max_size=60)):
        values = draw(st.integers(0, 3))
        panes.append(
            {
                **{"_pane": pane, "_partition": partition, "key": key},
                **{"count": draw(st.integers(1, 3)), "count_x": values},
                "sum_x": draw(TOTALS) if values else None,
                "squares_x": draw(st.floats(0, 1e4) | st.floats(0, 1e300)) if values else None,
                "sum_n": draw(st.none() | st.integers(-(2**40), 2**40)),
                "least_k": draw(st.none() | st.sampled_from(["a", "b", "é", ""])),
            }
        )
    return panes


WINDOWS = st.builds(
    HoppingWindow,
    size=st.sampled_from([1, 5, 7, 20, 60]),
    hop=st.sampled_from([1, 5, 10, 60]),
    offset=st.sampled_from([0, 3, 59]),
).filter(lambda window: window.hop <= window.size)


@given(panes=some_panes(), windows=st.lists(WINDOWS, min_size=1, max_size=2), most=st.integers(1, 40))
def test_the_rows_are_those_of_a_loop_however_many_panes_are_merged_at_once(
    panes: list[Row], windows: list[HoppingWindow], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MERGED_ROWS", most)
        patch.setattr(groups, "ENDS", most)
        rows = computed(select(*windows), panes)
    expected = [row for number, window in enumerate(windows) for row in expected_rows(window, str(number), panes)]
    assert in_order(rows) == in_order(expected)


def pane(end: int, partition: str = "0", **values: Any) -> Row:
    return {"_pane": end, "_partition": partition, "key": "a", "count": 2, "count_x": 0, **values}


def test_floats_are_added_in_the_order_of_pane_and_partition() -> None:
    parts = [(1020, "0", 1.0), (1010, "10", -1e16), (1010, "2", 1.0), (1010, "0", 1e16), (1020, "1", 0.1)]
    panes = [pane(end, partition, sum_x=value, count_x=1) for end, partition, value in parts]
    first, second, third = computed(select(HoppingWindow(20, 10)), panes)
    assert second["total"] == ((((1e16 + -1e16) + 1.0) + 1.0) + 0.1)
    assert (first["total"], third["total"]) == (1.0, 1.0 + 0.1)


def test_spreads_are_added_in_the_order_of_pane_and_partition() -> None:
    parts = [(1020, "0", 0.1), (1010, "10", 1e3), (1010, "2", -7.7), (1010, "0", 0.3), (1020, "1", 12.5)]
    panes = [pane(end, partition, sum_x=value, count_x=3, squares_x=value * value) for end, partition, value in parts]
    _, second, _ = computed(select(HoppingWindow(20, 10)), panes)
    in_order = sorted(panes, key=lambda pane: (pane["_pane"], pane["_partition"]))
    assert second["var"] == spreads(in_order)["var"]
    assert len({spreads(order)["var"] for order in itertools.permutations(panes)}) > 1


@pytest.mark.parametrize(
    ("values", "total"), [([2**62, 2**62 - 1], 2**63 - 1), ([2**62, 2**62], None), ([2**62, 2**62, -5], None)]
)
def test_a_sum_that_leaves_the_bigints_stops_the_run(values: list[int], total: int | None) -> None:
    panes = [pane(1010, str(number), sum_n=value) for number, value in enumerate(values)]
    if total is None:
        with pytest.raises(RunError, match="too large for a bigint"):
            computed(select(HoppingWindow(10, 10)), panes)
    else:
        assert computed(select(HoppingWindow(10, 10)), panes)[0]["whole"] == total


def test_null_comes_before_all_other_values_and_nan_after_them() -> None:
    numbers = [1.0, math.inf, None, math.nan, -math.inf, 0.0]
    panes = [
        pane(1010, str(number), key=str(number), sum_x=value, count_x=int(value is not None))
        for number, value in enumerate(numbers)
    ]
    columns = {"total": AsaType.FLOAT, "key": AsaType.STRING}
    rows = computed(select(HoppingWindow(10, 10), columns=columns), panes)
    assert [row["key"] for row in rows] == ["2", "4", "5", "0", "1", "3"]


def test_the_end_of_a_window_is_published_to_the_microsecond_and_may_be_moved() -> None:
    of = select(HoppingWindow(7, 7))

    def moved(ticks: int) -> Expr:
        refused = failure("outside the years 1 to 9999")
        return call(Op.WITHIN_CALENDAR, Expr(Op.MOVED, [column(WINDOW_END), bigint(ticks)], [1]), refused)

    of = replace(of, columns=((OutputColumn("w", AsaType.DATETIME), moved(UNIX_EPOCH)),))
    (row,) = computed(of, [pane(1008)])
    assert (row["w"].microsecond, row["w"].year) == (100, 1970)
    before = moved(UNIX_EPOCH - 1009)
    (row,) = computed(replace(of, columns=((OutputColumn("w", AsaType.DATETIME), before),)), [pane(1008)])
    assert (row["w"].microsecond, row["w"].year) == (999_999, 1969)
    beyond = moved(LARGEST)
    with pytest.raises(RunError, match="outside the years 1 to 9999"):
        computed(replace(of, columns=((OutputColumn("w", AsaType.DATETIME), beyond),)), [pane(1008)])
