"""Slices that run apart have the rows of the whole stream, though each reads no more than its look-back."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given

from recapture.time_model.ticks import TICKS_PER_MICROSECOND
from tests.draws import slow
from tests.oracle_windows import Content, Event, contents, ending_in
from tests.query.fast_path import Row, Slice, compiled, published
from tests.query.streams import FIRST_WEEK, WEEK, WINDOWS, Named, adjacent, chopped, described, seconds

Summary = tuple[str | None, int, str | None, list[int]]
"""A row: window id, window end, group and the events in it."""


def query(window: str) -> str:
    window_id = "System.Window().Id AS window, " if window.startswith("Windows") else ""
    return (
        "CREATE TABLE telemetry (t datetime, k nvarchar(max), id bigint);\n"
        f"SELECT System.Timestamp() AS e, k, {window_id}COUNT(*) AS events, Collect(id) AS ids INTO out "
        f"FROM telemetry TIMESTAMP BY t GROUP BY k, {window}"
    )


def summaries(rows: Iterable[Row]) -> list[Summary]:
    return in_order((row.get("window"), row["e"], row["k"], sorted(row["ids"])) for row in rows)


def oracle_rows(rows: Iterable[Content]) -> list[Summary]:
    return in_order(
        (
            row.window,
            row.end // TICKS_PER_MICROSECOND * TICKS_PER_MICROSECOND,
            row.group[0],
            [event.payload["id"] for event in row.members],
        )
        for row in rows
    )


def in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def whole(windows: Named, slice_: Slice) -> list[Summary]:
    """Return the rows of the whole stream that belong to a slice."""
    rows = [row for name, window in windows for row in contents(slice_.events, window, ("k",), name)]
    return oracle_rows(ending_in(rows, slice_.start, slice_.end))


@pytest.mark.parametrize(
    "window",
    [
        "TumblingWindow(Duration(second, 5), Offset(millisecond, -1))",
        "HoppingWindow(Duration(second, 6), Hop(second, 2), Offset(second, -1))",
        "HoppingWindow(second, 3, 5)",
        "SlidingWindow(second, 5)",
        "SessionWindow(second, 3, 8)",
        "Session(Timeout(second, 5), MaxDuration(second, 10)) OVER (PARTITION BY k)",
        "SessionWindow(second, 5, 5)",
        "System.Timestamp()",
        "Windows(Window('a', SlidingWindow(second, 4)), Window('b', System.Timestamp()))",
        "Windows(Window('short', SessionWindow(second, 3, 8)), Window('long', TumblingWindow(second, 35)))",
    ],
)
@slow(1)
@given(slices=adjacent(map(chopped, range(8))))
def test_adjacent_slices_have_the_rows_of_the_whole_stream(window: str, slices: list[Slice]) -> None:
    for slice_, rows in zip(slices, published(compiled(query(window)), slices), strict=True):
        assert summaries(rows) == whole(WINDOWS[window], slice_), described(slice_)


FIVE = "TumblingWindow(second, 5)"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FIVE, "HoppingWindow(second, 10, 5)"),
        ("HoppingWindow(second, 10, 4)", "SlidingWindow(second, 5)"),
        ("SlidingWindow(second, 5)", FIVE),
        ("SessionWindow(second, 3, 8)", "HoppingWindow(second, 10, 4)"),
        (FIVE, "SessionWindow(second, 5, 5)"),
        ("System.Timestamp()", "SlidingWindow(second, 12)"),
    ],
)
@slow(1)
@given(slices=adjacent(map(chopped, range(8))))
def test_a_window_over_the_rows_of_a_window_is_that_of_the_whole_stream(
    first: str, second: str, slices: list[Slice]
) -> None:
    """The first step is computed as far before the slice as the second looks back."""
    text = (
        "CREATE TABLE telemetry (t datetime, k nvarchar(max), id bigint);\n"
        f"WITH step AS (SELECT k, COUNT(*) AS n FROM telemetry TIMESTAMP BY t GROUP BY k, {first})\n"
        f"SELECT System.Timestamp() AS e, k, COUNT(*) AS rows, SUM(n) AS n INTO out FROM step GROUP BY k, {second}"
    )
    [(_, inner)], [(_, outer)] = WINDOWS[first], WINDOWS[second]
    query_ = compiled(text)
    for slice_, rows in zip(slices, published(query_, slices), strict=True):
        step = [
            Event(row.end, {"k": row.group[0], "n": len(row.members)}) for row in contents(slice_.events, inner, ("k",))
        ]
        actual = in_order((row["e"], row["k"], row["rows"], row["n"]) for row in rows)
        assert actual == in_order(
            (row.end, row.group[0], len(row.members), sum(event.payload["n"] for event in row.members))
            for row in ending_in(contents(step, outer, ("k",)), slice_.start, slice_.end)
        ), described(slice_)


@pytest.mark.parametrize(
    "window",
    ["HoppingWindow(second, 10, 4)", "SlidingWindow(second, 5)", "SessionWindow(second, 3, 8)", "System.Timestamp()"],
)
def test_a_slice_has_the_same_rows_alone_and_among_others(window: str) -> None:
    zero = seconds(FIRST_WEEK * WEEK)
    times = (1, 2, 2, 5, 9, 10, 11, 15, 22, 23, 24, 27, 29, 30, 30, 37)
    events = [Event(zero + seconds(time), {"id": id, "k": None}) for id, time in enumerate(times)]
    edges = [zero + seconds(edge) for edge in (0, 10, 15, 30, 60)]
    slices = [Slice(start, end, events) for start, end in itertools.pairwise(edges)]
    alone = [published(compiled(query(window)), [slice_])[0] for slice_ in reversed(slices)]
    among = published(compiled(query(window)), slices)
    assert list(map(summaries, alone[::-1])) == list(map(summaries, among))
    assert all(map(summaries, among))


def test_a_group_has_the_same_values_alone_and_among_others() -> None:
    """Events of 199 groups arrive in one task between those of the first group, which keep their order.

    Floats show it: 0.1 + 1e16 - 1e16 is 0; in another order it is 0.1.
    """
    query_ = compiled(
        "CREATE TABLE telemetry (t datetime, k bigint, id bigint, x float);\n"
        "SELECT k, Collect(id) AS ids, SUM(x) AS total, AVG(x) AS mean INTO out "
        "FROM telemetry TIMESTAMP BY t GROUP BY k, TumblingWindow(second, 5)"
    )
    zero = seconds(FIRST_WEEK * WEEK)
    own = [Event(zero + 1, {"k": 0, "id": id, "x": x}) for id, x in enumerate((0.1, 1e16, -1e16))]
    other_groups = [Event(zero + 1, {"k": k, "id": k, "x": 1.0}) for k in range(1, 200)]
    expected = {"k": 0, "ids": [0, 1, 2], "total": 0.0, "mean": 0.0}
    for between in ([], other_groups):
        events = [own[0], *between, *own[1:]]
        [rows] = published(query_, [Slice(zero, zero + seconds(5), events)])
        assert [row for row in rows if row["k"] == 0] == [expected], f"among {len(between)} others"
