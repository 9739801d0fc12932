"""Sessions do not depend on the slices that compute them (docs/time-model.md, section 4.2).

On the oracle: what a slice computes of the events in its look-back is what follows from all events. The oracle is
compared with Trill's state machine, which knows no slices, and the fast path with the oracle.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.ticks import from_seconds
from recapture.time_model.windows import SessionWindow
from tests.oracle_windows import Content, Event, Session, contents, ending_in, span_of
from tests.query.fast_path import Slice, compiled, published

FIVE = Session(timeout=5, longest=10)
"""Timeout 5, maxDuration 10: of the examples."""
MINUTE = from_seconds(60)


@dataclass(frozen=True)
class Case:
    """A stream and the slice (start, end] of it. Times are ticks, in order."""

    window: Session
    times: tuple[int, ...]
    start: int
    end: int


def events(times: Sequence[int]) -> list[Event]:
    return [Event(time, {"n": n}) for n, time in enumerate(times)]


def from_everything(case: Case) -> list[Content]:
    """The slice's sessions, of all that ever happened."""
    return ending_in(contents(events(case.times), case.window), case.start, case.end)


def from_look_back(case: Case, look_back: int | None = None) -> list[Content]:
    """The slice's sessions, of what it reads."""
    if look_back is None:
        look_back = SessionWindow(case.window.timeout, case.window.longest).look_back
    read = [event for event in events(case.times) if case.start - look_back < event.time <= case.end]
    return ending_in(contents(read, case.window), case.start, case.end)


def members(sessions: Sequence[Content]) -> dict[int, list[int]]:
    """Return the times in each session, by its end."""
    return {session.end: [event.time for event in session.members] for session in sessions}


@st.composite
def windows(draw: st.DrawFn) -> Session:
    longest = draw(st.integers(1, 12))
    return Session(draw(st.integers(1, longest)), longest)


@st.composite
def streams(draw: st.DrawFn, window: Session) -> tuple[int, ...]:
    """Chains of any length and density: each has a step of its own, up to the timeout, with a few other steps in it."""
    steps: list[int] = []
    for _ in range(draw(st.integers(1, 4))):
        usual = draw(st.integers(0, window.timeout))
        others = st.integers(0, window.timeout + 2) | st.integers(0, 4 * window.longest)
        chain = st.lists(st.one_of(st.just(usual), st.just(usual), st.just(usual), others), max_size=40)
        steps += draw(chain)
    return tuple(accumulate(steps, initial=draw(st.integers(500, 530))))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    window = draw(windows())
    times = draw(streams(window))
    start = draw(st.integers(times[0] - 2 * window.longest, times[-1] + 2 * window.longest))
    return Case(window, times, start, start + draw(st.integers(1, 40)))


@given(case=cases())
def test_what_a_slice_reads_gives_the_sessions_of_the_whole_stream(case: Case) -> None:
    assert from_look_back(case) == from_everything(case)


@given(case=cases(), widths=st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_each_event_is_in_one_session_of_one_slice(case: Case, widths: list[int]) -> None:
    first = case.times[0] - case.window.longest
    edges = [*accumulate(widths, initial=first), case.times[-1] + 4 * case.window.longest]
    slices = [Case(case.window, case.times, start, end) for start, end in pairwise(edges) if start < end]
    numbers = [event.payload["n"] for slice_ in slices for row in from_look_back(slice_) for event in row.members]
    assert sorted(numbers) == [number for number, time in enumerate(case.times) if time > first]


def trill_sessions(times: Sequence[int], window: Session) -> list[tuple[int, list[int]]]:
    """The sessions of one key by Trill's SessionWindowPipe, with its two differences (section 4.2): end and times."""
    timeout, longest = window.timeout, window.longest
    unset, cut = math.inf, -1
    result: list[tuple[int, list[int]]] = []
    session: list[int] = []
    window_end: float = unset
    for time in times:
        if window_end == unset:
            window_end = (span_of(time, longest) + 2) * longest
        elif window_end == cut:
            window_end = (span_of(time, longest) + 1) * longest
        if session:
            threshold = min(session[-1] + timeout, window_end)
            if time > threshold:
                result.append((int(threshold), session))
                if time <= session[-1] + timeout:
                    window_end = cut
                elif time <= session[-1] + timeout + longest:
                    window_end = unset
                else:
                    window_end = (span_of(time, longest) + 2) * longest
                session = []
        session.append(time)
    if window_end in (unset, cut):
        window_end = math.inf
    return [*result, (int(min(session[-1] + timeout, window_end)), session)]


@given(case=cases())
def test_the_sessions_are_trill_s_up_to_the_first_that_is_unanchored(case: Case) -> None:
    rows = contents(events(case.times), case.window)
    exact = next((n for n, row in enumerate(rows) if row.unanchored), len(rows))
    actual = [(row.end, [event.time for event in row.members]) for row in rows[:exact]]
    assert actual == trill_sessions(case.times, case.window)[:exact]


@given(case=cases())
def test_no_session_is_unanchored_if_the_timeout_is_at_most_half_of_max_duration(case: Case) -> None:
    if 2 * case.window.timeout <= case.window.longest:
        assert not any(row.unanchored for row in contents(events(case.times), case.window))


def test_a_stream_without_pauses_is_cut_at_every_multiple_after_its_first_deadline() -> None:
    """The first deadline is the first multiple that is at least one maxDuration after the opening at 11."""
    rows = contents(events(range(11, 60, 3)), FIVE)
    assert [(row.members[0].time, row.end) for row in rows] == [(11, 30), (32, 40), (41, 50), (53, 60)]


def test_a_session_after_a_pause_takes_its_deadline_from_its_second_event() -> None:
    """The second session opens at 28, in the span before that of its second event, 31."""
    assert members(contents(events((21, 28, *range(31, 60, 2))), FIVE)) == {
        26: [21],
        50: [28, *range(31, 50, 2)],
        60: [51, 53, 55, 57, 59],
    }


def test_after_a_long_pause_a_session_takes_its_deadline_from_its_first_event() -> None:
    """From 13 to 28 is timeout and maxDuration; from 12 it is more."""
    later = (28, *range(31, 50, 2))
    assert list(members(contents(events((13, *later)), FIVE))) == [18, 50]
    assert list(members(contents(events((12, *later)), FIVE))) == [17, 40, 50]


def test_spans_with_one_event_are_cut_in_turns_and_then_at_even_multiples() -> None:
    """Events at 5, 14, 23, …: the spans to 50 and to 140 hold two events, the others one."""
    rows = contents(events(range(5, 150, 9)), Session(timeout=9, longest=10))
    assert [row.end for row in rows] == [20, 40, 50, 70, 100, 120, 140, 158]
    assert [row.unanchored for row in rows] == [False, False, False, False, True, True, True, False]


@pytest.mark.parametrize(("window", "enough"), [(Session(5, 10), 45), (Session(9, 10), 109)])
def test_one_span_less_than_the_look_back_is_too_little(window: Session, enough: int) -> None:
    look_back = SessionWindow(window.timeout, window.longest).look_back
    assert look_back == enough


def minutes(first: str, last: str, step: int) -> list[Event]:
    """Events from one clock time to another, the first possibly of the day before, every `step` minutes."""
    day = 735_000 * 24 * 60
    start, end = (60 * int(clock[:2]) + int(clock[3:]) for clock in (first, last))
    if start > end:
        start -= 24 * 60
    return [Event((day + minute) * MINUTE, {"n": n}) for n, minute in enumerate(range(start, end + 1, step))]


@pytest.mark.parametrize(
    ("window", "stream"),
    [
        ("SessionWindow(minute, 5, 30)", minutes("01:40", "03:56", 4)),
        ("SessionWindow(minute, 5, 60)", minutes("23:30", "03:54", 4)),
        ("SessionWindow(minute, 45, 60)", minutes("20:10", "09:50", 40)),
    ],
)
def test_hourly_slices_count_each_event_of_a_long_chain_once(window: str, stream: list[Event]) -> None:
    hour = 60 * MINUTE
    first = stream[0].time // hour * hour
    slices = [Slice(start, start + hour, stream) for start in range(first, stream[-1].time + 2 * hour, hour)]
    query = compiled(
        "CREATE TABLE telemetry (t datetime, n bigint);\n"
        f"SELECT Collect(n) AS numbers INTO out FROM telemetry TIMESTAMP BY t GROUP BY {window}"
    )
    rows = [row for rows in published(query, slices) for row in rows]
    numbers = [number for row in rows for number in row["numbers"]]
    assert sorted(numbers) == [event.payload["n"] for event in stream]
