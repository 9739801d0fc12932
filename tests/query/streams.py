"""Generated streams, and the windows that are applied to them: as a query writes them, and as the oracle does."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.oracle_windows import Event, Hopping, Session, Sliding, Snapshot, Window
from tests.query.fast_path import Slice

WEEK = 7 * 24 * 3600
FIRST_WEEK = 105_000
"""The first week of a stream, in weeks since 0001-01-01; in the year 2013."""
LONGEST_LOOK_BACK = 60
"""Longest look-back of the windows below, in seconds. A stream begins at most that long before its slice."""

Named = tuple[tuple[str | None, Window], ...]
"""The windows of a query, with their ids in Windows(…)."""


def seconds(number: int) -> int:
    return number * TICKS_PER_SECOND


def single(window: Window) -> Named:
    return ((None, window),)


def hopping(size: int, hop: int, offset: int = 0) -> Named:
    return single(Hopping(seconds(size), seconds(hop), seconds(offset)))


def session(timeout: int, longest: int, *over: str) -> Named:
    return single(Session(seconds(timeout), seconds(longest), over))


WINDOWS: dict[str, Named] = {
    "TumblingWindow(second, 5)": hopping(5, 5),
    "TumblingWindow(Duration(second, 7), Offset(second, 3))": hopping(7, 7, 3),
    "TumblingWindow(Duration(second, 5), Offset(millisecond, -1))": single(
        Hopping(seconds(5), seconds(5), -TICKS_PER_SECOND // 1000)
    ),
    "HoppingWindow(second, 10, 5)": hopping(10, 5),
    "HoppingWindow(second, 10, 4)": hopping(10, 4),
    "HoppingWindow(second, 3, 5)": hopping(3, 5),
    "HoppingWindow(Duration(second, 6), Hop(second, 2), Offset(second, -1))": hopping(6, 2, -1),
    "SlidingWindow(second, 5)": single(Sliding(seconds(5))),
    "Sliding(Duration(second, 1))": single(Sliding(seconds(1))),
    "SlidingWindow(second, 12)": single(Sliding(seconds(12))),
    "SessionWindow(second, 3, 8)": session(3, 8),
    "Session(Timeout(second, 5), MaxDuration(second, 10)) OVER (PARTITION BY k)": session(5, 10, "k"),
    "SessionWindow(second, 5, 5)": session(5, 5),
    "SessionWindow(second, 4, 5) OVER (PARTITION BY k)": session(4, 5, "k"),
    "SessionWindow(second, 1, 12) OVER (PARTITION BY k)": session(1, 12, "k"),
    "System.Timestamp()": single(Snapshot()),
    "Windows(Window('five', TumblingWindow(second, 5)), Window('ten', HoppingWindow(second, 10, 5)))": (
        ("five", Hopping(seconds(5), seconds(5))),
        ("ten", Hopping(seconds(10), seconds(5))),
    ),
    "Windows(Window('a', SlidingWindow(second, 4)), Window('b', System.Timestamp()))": (
        ("a", Sliding(seconds(4))),
        ("b", Snapshot()),
    ),
    "Windows(Window('short', SessionWindow(second, 3, 8)), Window('long', TumblingWindow(second, 35)))": (
        ("short", Session(seconds(3), seconds(8))),
        ("long", Hopping(seconds(35), seconds(35))),
    ),
    "Windows(TumblingWindow(second, 5), TumblingWindow(second, 10), System.Timestamp())": (
        (None, Hopping(seconds(5), seconds(5))),
        (None, Hopping(seconds(10), seconds(10))),
        (None, Snapshot()),
    ),
}


def at_once(**values: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw one of the values of each name, in a single choice: choices take much of the time of a test."""
    combinations = list(itertools.product(*values.values()))
    numbers = st.integers(0, len(combinations) - 1)
    return numbers.map(lambda number: dict(zip(values, combinations[number], strict=True)))


def or_null(values: Sequence[Any]) -> list[Any]:
    """Return values of which half are NULL."""
    return [*[None] * len(values), *values]


_ARRIVALS = at_once(
    step=(0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 5, 6, 9),
    nudge=(*(0,) * 9, -1, 1, TICKS_PER_SECOND // 2),
    delay=(0, 0, 0, 0, 1, 4),
)
PAYLOADS = at_once(
    k=("a", "a", "b", None),
    n=or_null(range(-2, 4)),
    x=or_null([eighths / 8 for eighths in range(-20, 21)]),
)


@st.composite
def _stream(draw: st.DrawFn, n: int, payloads: st.SearchStrategy[dict[str, Any]], partitions: str) -> list[Slice]:
    """Draw a slice of up to 40 seconds in its own week, and a stream around it in arrival order."""
    start = seconds((FIRST_WEEK + n) * WEEK + draw(st.integers(0, 59)))
    end = start + seconds(draw(st.integers(5, 40)))
    time = start - seconds(draw(st.integers(0, LONGEST_LOOK_BACK)))
    arrived: list[tuple[int, Event]] = []
    for id in range(draw(st.integers(4, 20))):
        arrival = draw(_ARRIVALS)
        time += seconds(arrival["step"])
        payload = {"id": id, **draw(payloads)}
        event = Event(time + arrival["nudge"], payload, draw(st.sampled_from(partitions)))
        arrived.append((time + seconds(arrival["delay"]), event))
    return [Slice(start, end, [event for _, event in sorted(arrived, key=lambda arrival: arrival[0])])]


@st.composite
def _of_streams(draw: st.DrawFn, streams: Sequence[st.SearchStrategy[list[Slice]]]) -> list[Slice]:
    """Draw the slices of all streams, which differ in length.

    Hypothesis draws the simplest example first. Its streams do not differ, so it is rejected at the first choice.
    """
    assume(draw(st.booleans()))
    slices = list(itertools.chain(*map(draw, streams)))
    assume(len({len(slice_.events) for slice_ in slices}) > 1)
    return slices


def batches(
    payloads: st.SearchStrategy[dict[str, Any]] = PAYLOADS, partitions: str = "001", size: int = 30
) -> st.SearchStrategy[list[Slice]]:
    """Draw several slices."""
    return _of_streams([_stream(n, payloads, partitions) for n in range(size)])


_STEADY_STEPS = (0, 1, 1, 1, 2, 2, 3, 4, 5, 7)
_WIDTHS = st.sampled_from((1, 2, 5, 5, 8, 10, 17, 30))


@st.composite
def chopped(draw: st.DrawFn, n: int) -> list[Slice]:
    """Draw a stream in its own week, in adjacent slices from before its first event to after its last window.

    Most steps are equal, so that some streams have no pause for long, and others are sparse.
    """
    zero = seconds((FIRST_WEEK + n) * WEEK + draw(st.integers(0, 59)))
    usual = draw(st.integers(0, 5))
    steps = st.lists(st.sampled_from((*(usual,) * 3 * len(_STEADY_STEPS), *_STEADY_STEPS)), min_size=15, max_size=40)
    times = itertools.accumulate(draw(steps), initial=0)
    events = [Event(zero + seconds(time), {"id": id, **draw(PAYLOADS)}) for id, time in enumerate(times)]
    edges = [zero - seconds(draw(st.integers(1, 10)))]
    while edges[-1] < events[-1].time + seconds(40):
        edges.append(edges[-1] + seconds(draw(_WIDTHS)))
    return [Slice(start, end, events) for start, end in itertools.pairwise(edges)]


def adjacent(chopped_streams: Iterable[st.SearchStrategy[list[Slice]]]) -> st.SearchStrategy[list[Slice]]:
    """Draw several streams in adjacent slices."""
    return _of_streams(list(chopped_streams))


def described(slice_: Slice) -> str:
    """Return a stream as text, in seconds since its slice's start."""
    after = [(event, (event.time - slice_.start) / TICKS_PER_SECOND) for event in slice_.events]
    lines = [f"{time:12} {event.partition} {event.payload}" for event, time in after]
    return "\n".join([f"slice of {slice_.end - slice_.start} ticks from {slice_.start}", *lines])
