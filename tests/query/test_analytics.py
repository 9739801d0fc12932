"""LAG, LAST, ISFIRST and aggregates with LIMIT DURATION: each row has what the oracle finds in the whole stream."""

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.analytic_functions import LENGTH, VALUES
from tests.draws import slow
from tests.oracle_analytics import in_order
from tests.oracle_windows import Event
from tests.query.fast_path import Slice, compiled, published
from tests.query.streams import FIRST_WEEK, WEEK, adjacent, at_once, described, or_null, seconds

DECLARED = "CREATE TABLE telemetry (t datetime, id bigint, k nvarchar(max), n bigint, x float);\n"

COLUMNS = ", ".join(f"{expression} AS v{number}" for number, expression in enumerate(VALUES))
QUERY = f"{DECLARED}SELECT id, {COLUMNS} INTO out FROM telemetry TIMESTAMP BY t"

_STEPS = st.sampled_from((0, 0, 0, 1, seconds(5), seconds(5), LENGTH - 1, LENGTH, LENGTH, LENGTH + 1))
_PAYLOADS = at_once(
    k=("a", "a", "b", None),
    n=or_null(range(-2, 4)),
    x=or_null([halves / 2 for halves in range(-6, 7)]),
)


@st.composite
def chopped(draw: st.DrawFn, week: int) -> list[Slice]:
    """Draw a stream in a week of its own, with many equal times and gaps of one length, and its adjacent slices."""
    zero = seconds((FIRST_WEEK + week) * WEEK + draw(st.integers(0, 10)))
    times = itertools.accumulate(draw(st.lists(_STEPS, min_size=5, max_size=20)), initial=zero)
    events = [Event(time, {"id": id, **draw(_PAYLOADS)}, draw(st.sampled_from("01"))) for id, time in enumerate(times)]
    widths = draw(st.lists(st.sampled_from((3, 7, 20)), min_size=1, max_size=3))
    inner = itertools.accumulate(map(seconds, widths), initial=zero)
    edges = [zero - seconds(1), *(edge for edge in inner if edge < events[-1].time), events[-1].time]
    return [Slice(start, end, events) for start, end in itertools.pairwise(sorted(set(edges)))]


def computed_rows(rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return the values of the rows, each after the row's id, by id."""
    return sorted([row["id"], *(row[f"v{number}"] for number in range(len(VALUES)))] for row in rows)


def oracle_rows(slice_: Slice) -> list[list[Any]]:
    """Return the same for the rows of the whole stream that lie in a slice."""
    columns = [compute(list(slice_.events)) for compute in VALUES.values()]
    rows = zip(in_order(slice_.events), *columns, strict=True)
    return sorted([event.payload["id"], *values] for event, *values in rows if slice_.start < event.time <= slice_.end)


@slow(2)
@given(slices=adjacent(map(chopped, range(8))))
def test_each_row_has_what_the_whole_stream_gives_it(slices: list[Slice]) -> None:
    actual = published(compiled(QUERY), slices)
    for slice_, rows in zip(slices, actual, strict=True):
        assert computed_rows(rows) == oracle_rows(slice_), described(slice_)


def stream(*times: int) -> Slice:
    """Return a slice of one stream with events at some seconds, numbered by `id` and `n`."""
    zero = seconds(FIRST_WEEK * WEEK)
    events = [Event(zero + seconds(time), {"id": id, "k": "a", "n": id, "x": None}) for id, time in enumerate(times)]
    return Slice(zero - seconds(1), zero + seconds(100), events)


def rows_of(query: str, slice_: Slice) -> list[tuple[Any, ...]]:
    [rows] = published(compiled(DECLARED + query), [slice_])
    return sorted(tuple(row.values()) for row in rows)


def test_analytic_functions_of_a_window_s_rows_look_back_over_slices() -> None:
    query = (
        "WITH a AS (SELECT k, COUNT(*) AS c FROM telemetry GROUP BY k, TumblingWindow(second, 5))\n"
        "SELECT System.Timestamp() AS e, c, LAG(c) OVER (PARTITION BY k LIMIT DURATION(second, 6)) AS b INTO out FROM a"
    )
    slice_ = stream(1, 2, 7, 13, 14, 18, 29)
    edges = [slice_.start, *(seconds(FIRST_WEEK * WEEK + second) for second in (5, 6, 12, 15, 20, 40))]
    apart = [Slice(start, end, slice_.events) for start, end in itertools.pairwise(edges)]
    rows = [row for rows in published(compiled(DECLARED + query), apart) for row in rows]
    assert [(row["c"], row["b"]) for row in sorted(rows, key=lambda row: row["e"])] == [
        (2, None), (1, 2), (2, 1), (1, 2), (1, None)
    ]  # fmt: skip
