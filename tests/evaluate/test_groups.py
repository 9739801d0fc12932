"""The groups of a GROUP BY against the oracle, for every window and aggregate."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate import collected
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.groups import groups
from recapture.model import TYPES, AsaType
from tests import oracle_windows as oracle
from tests.draws import slow
from tests.evaluate.groupings import grouping_of
from tests.oracle_windows import Content, Event, Hopping, Members, Sliding
from tests.query.fast_path import Slice
from tests.query.streams import (
    FIRST_WEEK,
    WEEK,
    WINDOWS,
    Named,
    at_once,
    batches,
    described,
    hopping,
    or_null,
    seconds,
    single,
)

TYPE_OF = {"k": AsaType.STRING, "id": AsaType.BIGINT, "n": AsaType.BIGINT, "x": AsaType.FLOAT, "doc": AsaType.RECORD}

Aggregates = dict[str, Callable[[Members], Any]]


def of(field: str, function: Callable[..., Any], *more: Any) -> Callable[[Members], Any]:
    """Return an aggregate of the oracle over the values of a field."""
    return lambda members: function([event.payload.get(field) for event in members], *more)


def top(members: Members) -> Any:
    return oracle.top_one(members, "id", ("n", "DESC"), ("x", "ASC"))


def best(members: Members) -> Any:
    return oracle.collect_top(members, 3, "doc", ("n", "DESC"))


RUNNING: Aggregates = {
    "COUNT(*)": len,
    "COUNT(x)": of("x", oracle.count),
    "SUM(n)": of("n", oracle.total),
    "SUM(x)": of("x", oracle.total),
    "AVG(x)": of("x", oracle.average),
    "AVG(n)": of("n", oracle.average),
    "MIN(x)": of("x", oracle.least),
    "MAX(n)": of("n", oracle.greatest),
    "MAX(CAST(k AS nvarchar(max)))": of("k", oracle.greatest),
}
ALL: Aggregates = {
    **RUNNING,
    "COUNT(DISTINCT x)": of("x", oracle.count_distinct),
    "COUNT(DISTINCT k)": of("k", oracle.count_distinct),
    "STDEV(x)": of("x", oracle.deviation),
    "STDEVP(n)": of("n", oracle.deviation, True),
    "VAR(n)": of("n", oracle.variance),
    "VARP(x)": of("x", oracle.variance, True),
    "PERCENTILE_CONT(0.9) OVER (ORDER BY x)": of("x", oracle.percentile_cont, "0.9"),
    "PERCENTILE_CONT(0.3) OVER (ORDER BY n DESC)": of("n", oracle.percentile_cont, "0.3", True),
    "PERCENTILE_DISC(0.4) OVER (ORDER BY n)": of("n", oracle.percentile_disc, "0.4"),
    "PERCENTILE_DISC(0.5) OVER (ORDER BY x DESC)": of("x", oracle.percentile_disc, "0.5", True),
    "TopOne(id) OVER (ORDER BY n DESC, x)": top,
    "CollectTop(3, doc) OVER (ORDER BY n DESC)": best,
    "Collect(doc)": lambda members: oracle.collect(members, "doc"),
}


def table(events: Sequence[Event]) -> pa.Table:
    """Return events as rows; each arrives after the one before."""
    columns: dict[str, pa.Array] = {
        "_system_timestamp": pa.array([event.time for event in events], pa.int64()),
        "_arrival": pa.array(range(len(events)), pa.int64()),
        "_partition": pa.array([event.partition for event in events], pa.string()),
    }
    for name, type_ in TYPE_OF.items():
        values = [event.payload.get(name) for event in events]
        values = [json.dumps(value) if type_ is AsaType.RECORD else value for value in values]
        columns[name] = pa.array(values, TYPES[type_].view)
    return pa.table(columns)


def actual(aggregates: Aggregates, window: str, slice_: Slice) -> list[tuple[Any, ...]]:
    """Return the groups of a slice: window, end, key, whether it is unanchored, and the results."""
    grouping = grouping_of(tuple(aggregates), window, ("k",))
    rows = groups(table(slice_.events), grouping, SliceBounds(slice_.start, slice_.end), 0)
    results = [rows[f"_r{number}"].to_pylist() for number in range(len(aggregates))]
    for number, text in enumerate(aggregates):
        if text.startswith("Collect"):
            results[number] = [json.loads(value) for value in results[number]]
    names = ("_window_id", "_window_end", "_k0")
    unanchored = rows["_unanchored"].to_pylist() if grouping.unanchored else [False] * len(rows)
    return sorted(zip(*(rows[name].to_pylist() for name in names), unanchored, *results, strict=True), key=by_identity)


def expected(aggregates: Aggregates, windows: Named, slice_: Slice) -> list[tuple[Any, ...]]:
    contents: list[Content] = []
    for name, window in windows:
        contents += oracle.contents(slice_.events, window, ("k",), name)
    rows = [
        (
            *(content.window, content.end, content.group[0], content.unanchored),
            *(aggregate(content.members) for aggregate in aggregates.values()),
        )
        for content in oracle.ending_in(contents, slice_.start, slice_.end)
    ]
    return sorted(rows, key=by_identity)


def by_identity(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return str(row[0]), row[1], str(row[2]), str(row[4:6])


def same(actual: Any, expected: Any) -> bool:
    if isinstance(actual, float) and isinstance(expected, float):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-6)
    return type(actual) is type(expected) and bool(actual == expected)


def require_same(aggregates: Aggregates, window: str, windows: Named, slice_: Slice) -> None:
    rows, oracle_rows = actual(aggregates, window, slice_), expected(aggregates, windows, slice_)
    assert [row[:4] for row in rows] == [row[:4] for row in oracle_rows], described(slice_)
    for row, oracle_row in zip(rows, oracle_rows, strict=True):
        wrong = [pair for pair in zip(row, oracle_row, strict=True) if not same(*pair)]
        assert wrong == [], described(slice_)


PAYLOADS = st.tuples(
    at_once(
        k=("a", "a", "b", "", None),
        n=or_null(range(-2, 4)),
        doc=or_null([{"number": number} for number in range(10)]),
    ),
    st.fixed_dictionaries({"x": st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False))}),
).map(lambda drawn: drawn[0] | drawn[1])


@pytest.mark.parametrize("window", WINDOWS)
@slow(4)
@given(slices=batches(PAYLOADS, size=6))
def test_groups_are_those_of_the_oracle(window: str, slices: list[Slice]) -> None:
    for slice_ in slices:
        require_same(ALL, window, WINDOWS[window], slice_)


@slow(8)
@given(slices=batches(PAYLOADS, size=6))
def test_sliding_windows_of_sums_alone_are_those_of_the_oracle(slices: list[Slice]) -> None:
    for slice_ in slices:
        require_same(RUNNING, "SlidingWindow(second, 5)", single(Sliding(seconds(5))), slice_)


@slow(4)
@given(slices=batches(PAYLOADS, size=6))
def test_windows_of_many_hops_are_those_of_the_oracle(slices: list[Slice]) -> None:
    for slice_ in slices:
        require_same(ALL, "HoppingWindow(second, 60, 1)", hopping(60, 1), slice_)


@pytest.mark.parametrize("window", ["SessionWindow(second, 5, 5)", "SessionWindow(second, 4, 5) OVER (PARTITION BY k)"])
@pytest.mark.parametrize("step", [3, 4, 5])
def test_sessions_of_sparse_streams_are_those_of_the_oracle(window: str, step: int) -> None:
    """Every sixteenth event has another one in its span, from which the cuts are counted."""
    start = seconds(FIRST_WEEK * WEEK + 2)
    steps = [step - 1 if number % 16 == 0 else step for number in range(60)]
    times = [start + seconds(time) for time in itertools.accumulate(steps, initial=0)]
    events = [Event(time, {"k": "ab"[number % 7 == 0], "n": number}) for number, time in enumerate(times)]
    events += [Event(event.time + 1, {"k": event.payload["k"], "n": 0}) for event in events[::16]]
    slice_ = Slice(start, times[-1] + seconds(20), sorted(events, key=lambda event: event.time))
    aggregates: Aggregates = {"COUNT(*)": len, "SUM(n)": of("n", oracle.total)}
    require_same(aggregates, window, WINDOWS[window], slice_)
    is_unanchored = {row[3] for row in actual(aggregates, window, slice_)}
    assert is_unanchored == ({False, True} if "(second, 5" in window and step == 5 else {False})


@slow(4)
@given(slices=batches(PAYLOADS, size=6))
def test_events_are_collected_in_several_batches(slices: list[Slice]) -> None:
    lists = {text: ALL[text] for text in ALL if text.startswith("Collect")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collected, "BATCH_EVENTS", 5)
        for slice_ in slices:
            require_same(lists, "HoppingWindow(second, 10, 4)", single(Hopping(seconds(10), seconds(4))), slice_)


@slow(4)
@given(slices=batches(PAYLOADS, size=6))
def test_groups_are_computed_in_several_parts(slices: list[Slice]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recapture.evaluate.groups.GROUPS_AT_ONCE", 7)
        for slice_ in slices:
            require_same(ALL, "HoppingWindow(second, 10, 4)", single(Hopping(seconds(10), seconds(4))), slice_)
            require_same(RUNNING, "SlidingWindow(second, 12)", single(Sliding(seconds(12))), slice_)


def test_no_rows_have_no_groups() -> None:
    for window in WINDOWS:
        grouping = grouping_of(tuple(ALL), window, ("k",))
        nothing = groups(table([]), grouping, SliceBounds(0, 1), 0)
        group = groups(table([Event(5, {"k": "a"})]), grouping, SliceBounds(0, seconds(60)), 0)
        assert len(nothing) == 0
        assert nothing.schema == group.schema
