"""Every window and every aggregate of the query language: the fast path against the oracle on generated streams.

Each example has many streams at once. Each stream has its own slice, weeks from the others, and must give the rows that
it gives alone.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.ticks import TICKS_PER_MICROSECOND
from tests import oracle_windows as oracle
from tests.draws import slow
from tests.oracle_windows import Content, Members
from tests.query.fast_path import Row, Slice, compiled, published
from tests.query.streams import FIRST_WEEK, WEEK, WINDOWS, Named, at_once, batches, described, or_null, seconds

TABLE = (
    "CREATE TABLE telemetry (t datetime, k nvarchar(max), id bigint, n bigint, x float, "
    "name nvarchar(max), bought datetime, sold bit);\n"
)


def values(members: Members, field: str) -> list[Any]:
    return [event.payload[field] for event in members]


def whole_microseconds(ticks: int | None) -> int | None:
    """Return a datetime as it is published."""
    return None if ticks is None else ticks // TICKS_PER_MICROSECOND * TICKS_PER_MICROSECOND


Aggregates = dict[str, tuple[str, Callable[[Members], Any]]]
"""Expression of the query and function of the oracle, by the name of the column."""

EXACT: Aggregates = {
    "events": ("COUNT(*)", len),
    "measured": ("COUNT(x)", lambda members: oracle.count(values(members, "x"))),
    "numbers": ("COUNT(DISTINCT n)", lambda members: oracle.count_distinct(values(members, "n"))),
    "total": ("SUM(n)", lambda members: oracle.total(values(members, "n"))),
    "mass": ("SUM(x)", lambda members: oracle.total(values(members, "x"))),
    "mean": ("AVG(x)", lambda members: oracle.average(values(members, "x"))),
    "least": ("MIN(x)", lambda members: oracle.least(values(members, "x"))),
    "greatest": ("MAX(n)", lambda members: oracle.greatest(values(members, "n"))),
    "ids": ("Collect(id)", lambda members: sorted(values(members, "id"))),
}
"""Aggregates of eighths, whose sums are exact in any order."""


def oracle_rows(aggregates: Aggregates, windows: Named, slice_: Slice) -> list[Row]:
    """Return the oracle's rows."""
    return [
        {
            "window": content.window,
            "e": whole_microseconds(content.end),
            "k": content.group[0],
            **{name: aggregate(content.members) for name, (_, aggregate) in aggregates.items()},
            "_unanchored": content.unanchored,
        }
        for content in ending(windows, slice_)
    ]


def ending(windows: Named, slice_: Slice) -> list[Content]:
    """Return the windows that end in the slice."""
    contents = []
    for name, window in windows:
        contents += oracle.contents(slice_.events, window, ("k",), name)
    return oracle.ending_in(contents, slice_.start, slice_.end)


def fast_rows(aggregates: Aggregates, window: str, slices: list[Slice]) -> list[list[Row]]:
    """Return the fast path's rows, slice by slice."""
    columns = ["System.Timestamp() AS e", "k", *(f"{text} AS {name}" for name, (text, _) in aggregates.items())]
    if window.startswith("Windows"):
        columns.append("System.Window().Id AS window")
    query = f"{TABLE}SELECT {', '.join(columns)} INTO out FROM telemetry TIMESTAMP BY t GROUP BY k, {window}"
    rows = published(compiled(query), slices)
    for row in itertools.chain(*rows):
        row.setdefault("window", None)
        row.setdefault("_unanchored", False)
    return rows


def by_identity(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (str(row["window"]), row["e"], str(row["k"]), row["ids"]))


def agree(windows: Named, aggregates: Aggregates, slices: list[Slice], actual: list[list[Row]]) -> None:
    """Assert that both have the same rows; a failure shows the shortest stream whose rows differ."""
    for slice_, rows in sorted(zip(slices, actual, strict=True), key=lambda pair: len(pair[0].events)):
        expected = by_identity(oracle_rows(aggregates, windows, slice_))
        assert by_identity(rows) == expected, described(slice_)


@pytest.mark.parametrize("window", WINDOWS)
@slow(1)
@given(slices=batches())
def test_the_rows_of_a_window_are_those_of_the_oracle(window: str, slices: list[Slice]) -> None:
    actual = fast_rows(EXACT, window, slices)
    for row in itertools.chain(*actual):
        row["ids"].sort()
    agree(WINDOWS[window], EXACT, slices, actual)


_TIME = seconds(FIRST_WEEK * WEEK)
_MEASURED = st.tuples(
    at_once(
        k=("a", "a", "b", None),
        n=or_null(range(-2, 4)),
        name=("a", "B", "", "é", "a", None),
        bought=or_null(range(_TIME, _TIME + 10)),
        sold=or_null((False, True)),
    ),
    st.fixed_dictionaries({"x": st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False))}),
).map(lambda drawn: drawn[0] | drawn[1])
ASC, DESC = "ASC", "DESC"

STATISTICS: Aggregates = {
    "mass": ("SUM(x)", lambda members: oracle.total(values(members, "x"))),
    "mean": ("AVG(x)", lambda members: oracle.average(values(members, "x"))),
    "mean_number": ("AVG(n)", lambda members: oracle.average(values(members, "n"))),
    "deviation": ("STDEV(x)", lambda members: oracle.deviation(values(members, "x"))),
    "deviation_of_all": ("STDEVP(x)", lambda members: oracle.deviation(values(members, "x"), population=True)),
    "spread": ("VAR(n)", lambda members: oracle.variance(values(members, "n"))),
    "spread_of_all": ("VARP(x)", lambda members: oracle.variance(values(members, "x"), population=True)),
    "median": ("PERCENTILE_CONT(0.5) OVER (ORDER BY x)", lambda members: cont(members, "x", "0.5")),
    "high": ("PERCENTILE_CONT(0.9) OVER (ORDER BY n DESC)", lambda members: cont(members, "n", "0.9", True)),
    "low": ("PERCENTILE_DISC(0.3) OVER (ORDER BY x ASC)", lambda members: disc(members, "x", "0.3")),
    "common": ("PERCENTILE_DISC(0.7) OVER (ORDER BY n)", lambda members: disc(members, "n", "0.7")),
    "rare": ("PERCENTILE_DISC(0.5) OVER (ORDER BY n DESC)", lambda members: disc(members, "n", "0.5", True)),
    "names": ("COUNT(DISTINCT name)", lambda members: oracle.count_distinct(values(members, "name"))),
    "first": ("MIN(bought)", lambda members: whole_microseconds(oracle.least(values(members, "bought")))),
    "times": ("COUNT(DISTINCT bought)", lambda members: oracle.count_distinct(values(members, "bought"))),
    "answers": ("COUNT(DISTINCT sold)", lambda members: oracle.count_distinct(values(members, "sold"))),
    "top_id": ("TopOne(id) OVER (ORDER BY n DESC)", lambda members: oracle.top_one(members, "id", ("n", DESC))),
    "top": ("TopOne() OVER (ORDER BY n DESC)", lambda members: oracle.top_one(members, None, ("n", DESC))),
    "bottom": (
        "TopOne() OVER (ORDER BY n ASC, bought DESC)",
        lambda members: oracle.top_one(members, None, ("n", ASC), ("bought", DESC)),
    ),
    "best": (
        "CollectTop(3, id) OVER (ORDER BY n DESC)",
        lambda members: oracle.collect_top(members, 3, "id", ("n", DESC)),
    ),
    "numbers": ("Collect(n)", lambda members: oracle.collect(members, "n")),
    "ids": ("Collect(id)", lambda members: oracle.collect(members, "id")),
}


def cont(members: Members, field: str, portion: str, descending: bool = False) -> float | None:
    return oracle.percentile_cont(values(members, field), portion, descending)


def disc(members: Members, field: str, portion: str, descending: bool = False) -> Any:
    return oracle.percentile_disc(values(members, field), portion, descending)


@pytest.mark.parametrize(
    "window", ["HoppingWindow(second, 10, 4)", "SlidingWindow(second, 5)", "SessionWindow(second, 3, 8)"]
)
@slow(1)
@given(slices=batches(_MEASURED, size=20))
def test_the_aggregates_are_those_of_the_oracle(window: str, slices: list[Slice]) -> None:
    """Lists are in the order of time, then of arrival."""
    for slice_, rows in zip(slices, fast_rows(STATISTICS, window, slices), strict=True):
        expected = by_identity(oracle_rows(STATISTICS, WINDOWS[window], slice_))
        rows = by_identity(rows)
        assert [row["ids"] for row in rows] == [row["ids"] for row in expected], described(slice_)
        for row, expected_row in zip(rows, expected, strict=True):
            wrong = {
                name: (row[name], expected_row[name])
                for name in expected_row
                if not same(row[name], expected_row[name])
            }
            assert wrong == {}, described(slice_)


def same(actual: Any, expected: Any) -> bool:
    if isinstance(actual, float) and isinstance(expected, float):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-6)
    return type(actual) is type(expected) and bool(actual == expected)
