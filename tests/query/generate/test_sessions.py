"""How far before a slice a session must be read (docs/time-model.md, sections 4.1 and 4.2), on the oracle alone.

A session lasts less than two maxDurations, so a session that ends in the slice (S, E] began after S - 2 * maxDuration.
The pause before it shows that it began there. The look-back of three maxDurations and a timeout leaves room for one.
A stream that never pauses is cut at every second multiple of maxDuration. Whether these are the even or the odd ones
depends on its first event ever, which no slice can read. So a slice takes the even ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DefinitionError
from recapture.time_model.windows import SessionWindow
from tests.oracle_windows import Content, Event, Session, contents, ending_in
from tests.query.fast_path import compiled

FIVE = Session(timeout=5, longest=10)
"""The window of the examples: timeout 5, maxDuration 10."""


@dataclass(frozen=True)
class Case:
    """A stream and a slice (start, end] of it. Times are ticks, in order."""

    window: Session
    times: tuple[int, ...]
    start: int
    end: int


def look_back(window: Session) -> int:
    """Return the look-back of the fast path."""
    return SessionWindow(window.timeout, window.longest).look_back


def events(times: Sequence[int]) -> list[Event]:
    return [Event(time, {"n": n}) for n, time in enumerate(times)]


def whole(case: Case) -> list[Content]:
    """Return the slice's sessions, computed from the whole stream."""
    return ending_in(contents(events(case.times), case.window), case.start, case.end)


def alone(case: Case, back: int | None = None) -> list[Content]:
    """Return the slice's sessions, computed from what it reads."""
    after = case.start - (look_back(case.window) if back is None else back)
    read = [event for event in events(case.times) if after < event.time <= case.end]
    return ending_in(contents(read, case.window, read_after=after), case.start, case.end)


def members(sessions: Sequence[Content]) -> dict[int, list[int]]:
    """Return the times in each session, by its end."""
    return {session.end: [event.time for event in session.members] for session in sessions}


@st.composite
def windows(draw: st.DrawFn) -> Session:
    longest = draw(st.integers(1, 12))
    return Session(draw(st.integers(1, longest)), longest)


@st.composite
def cases(draw: st.DrawFn, gap: int | None = None) -> Case:
    """Draw a stream whose events are up to the timeout and two ticks apart, or the timeout and `gap`."""
    window = draw(windows())
    more = 2 if gap is None else gap
    steps = draw(st.lists(st.integers(0, window.timeout + more), max_size=60))
    times = tuple(accumulate(steps, initial=draw(st.integers(500, 530))))
    start = draw(st.integers(times[0] - 2 * window.longest, times[-1] + 2 * window.longest))
    return Case(window, times, start, start + draw(st.integers(1, 40)))


def pauses(case: Case, after: int, until: int) -> bool:
    """Return whether a timeout without an event lies in (after, until]."""
    timeout = case.window.timeout
    return any(
        not any(begin < time <= begin + timeout for time in case.times) for begin in range(after, until - timeout + 1)
    )


@given(case=cases())
def test_a_session_lasts_less_than_two_max_durations_or_exactly_one(case: Case) -> None:
    longest = case.window.longest
    for session in contents(events(case.times), case.window):
        lasts = session.end - session.members[0].time
        assert lasts < 2 * longest or lasts == longest


@given(case=cases())
def test_after_a_pause_in_its_look_back_a_slice_has_the_sessions_of_the_whole_stream(case: Case) -> None:
    """The pause may lie anywhere before the slice: it ends the sessions before it and begins the one after it."""
    after = case.start - look_back(case.window)
    if pauses(case, after, case.start):
        assert alone(case) == whole(case)
    else:
        assert any(after < time <= after + case.window.timeout for time in case.times)


@given(case=cases(), position=st.integers(0, 1000))
def test_a_pause_before_the_last_two_max_durations_is_one_in_the_look_back(case: Case, position: int) -> None:
    """The fast path looks for it in (S - 3 * maxDuration - timeout, S - 2 * maxDuration]."""
    longest, timeout = case.window.longest, case.window.timeout
    pause = case.start - look_back(case.window) + position % (longest + 1)
    times = tuple(time for time in case.times if not pause < time <= pause + timeout)
    paused = Case(case.window, times, case.start, case.end)
    assert alone(paused) == whole(paused)


@given(case=cases())
def test_a_session_after_a_pause_needs_two_max_durations_and_a_timeout(case: Case) -> None:
    """It does not matter what else the slice reads."""
    actual = alone(case, back=2 * case.window.longest + case.window.timeout)
    for session in whole(case):
        first = session.members[0].time
        if not any(first - case.window.timeout <= time < first for time in case.times):
            assert session in actual


def test_one_max_duration_less_is_too_little() -> None:
    """The look-back of 35 before the slice (100, 120] contains the pause before 71; one of 25 does not."""
    stream = Case(FIVE, (60, 71, 75, 80, 85, 90, 95, 100, 105, 110), 100, 120)
    assert members(whole(stream)) == {110: [95, 100, 105, 110]}
    assert alone(stream) == whole(stream)
    assert members(alone(stream, back=25)) == {115: [105, 110]}


def test_a_session_after_a_pause_can_begin_almost_two_max_durations_before_the_slice() -> None:
    """Opened at 91, it is cut at 110, the first multiple at least 10 later. The pause must show from 85 to 90."""
    stream = Case(FIVE, (80, 91, 96, 101, 106, 111), 109, 111)
    assert members(whole(stream)) == {110: [91, 96, 101, 106]}
    assert alone(stream, back=24) == whole(stream)
    assert alone(stream, back=23) == []


def test_without_a_pause_the_cuts_depend_on_the_first_event_ever() -> None:
    """The two streams differ only in their first events, and their cuts never agree."""
    every_five = tuple(range(20, 1000, 5))
    even = Case(FIVE, (10, 15, *every_five), 940, 960)
    odd = Case(FIVE, every_five, 940, 960)
    assert [session.end for session in whole(even)] == [960]
    assert [session.end for session in whole(odd)] == [950]


def test_without_a_pause_a_slice_takes_the_even_multiples() -> None:
    """Its first event is at 920, five after reading began. Whether there was an event at 915 is unknown."""
    every_five = tuple(range(20, 1000, 5))
    slice_ = Case(FIVE, every_five, 950, 970)
    assert members(alone(slice_)) == {960: [945, 950, 955, 960]}
    assert members(whole(slice_)) == {970: [955, 960, 965, 970]}


def test_the_slice_that_no_longer_sees_the_pause_may_disagree_with_the_one_before() -> None:
    """A stream that opens at 20 is cut at 30, 50, 70, …; once its beginning is out of reach, at 40, 60, 80, …"""
    every_five = tuple(range(20, 1000, 5))
    assert members(alone(Case(FIVE, every_five, 40, 55))) == {50: [35, 40, 45, 50]}
    assert members(alone(Case(FIVE, every_five, 55, 70))) == {60: [45, 50, 55, 60]}


@given(
    window=windows(),
    steps=st.lists(st.integers(0, 1000), min_size=20, max_size=60),
    widths=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    more=st.integers(0, 30),
)
def test_slices_of_a_stream_without_a_pause_agree_with_one_another(
    window: Session, steps: list[int], widths: list[int], more: int
) -> None:
    """Each event is in one session of one slice, and none is lost."""
    times = tuple(accumulate((step % (window.timeout + 1) for step in steps), initial=500))
    first = times[0] + look_back(window) + more
    edges = list(accumulate(widths, initial=first))
    slices = [Case(window, times, start, end) for start, end in pairwise(edges)]
    published = [session for slice_ in slices for session in alone(slice_)]
    assert published == alone(Case(window, times, edges[0], edges[-1]))
    numbers = [event.payload["n"] for session in published for event in session.members]
    assert numbers == [numbers[0] + n for n in range(len(numbers))]


def test_a_session_whose_timeout_is_longer_than_its_max_duration_is_refused() -> None:
    """Its cuts would not stay on the even multiples: several multiples may pass without an event."""
    with pytest.raises(DefinitionError, match="the timeout of a session is more than 0 and at most its maxDuration"):
        compiled("SELECT COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t GROUP BY SessionWindow(second, 11, 10)")
