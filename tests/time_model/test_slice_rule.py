"""The slice rule (docs/time-model.md, section 3): any slice follows from the arrivals around it, from empty state."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.ticks import from_seconds
from tests.oracle import Event, Outcome, Policy, process, slice_metrics, windows
from tests.oracle_windows import Hopping
from tests.time_model.streams import HOUR, NOON, policies, seconds, streams

SECOND = from_seconds(1)
MINUTE = from_seconds(60)


def arrivals(events: Sequence[Event], first: int, last: int | None) -> list[Event]:
    """Return the events that arrived in [first, last]; without `last`, up to the newest."""
    return [event for event in events if first <= event.arrival and (last is None or event.arrival <= last)]


def right_bound(policy: Policy, end: int) -> int | None:
    return None if policy.late is None else end + policy.late


def early(policy: Policy) -> int:
    assert policy.early is not None
    return policy.early


def times(outcomes: Sequence[Outcome], start: int, end: int) -> dict[int, int]:
    """Return the System.Timestamp of each event, by sequence number, that has one in (start, end]."""
    return {
        outcome.event.sequence: outcome.system_timestamp
        for outcome in outcomes
        if outcome.system_timestamp is not None and start < outcome.system_timestamp <= end
    }


def judgements(outcomes: Sequence[Outcome], start: int, end: int) -> dict[int, tuple[str, int | None, bool, bool]]:
    """Return the verdict on each event, by sequence number, that arrived in (start, end]."""
    return {
        outcome.event.sequence: (outcome.verdict, outcome.system_timestamp, outcome.late, outcome.out_of_order)
        for outcome in outcomes
        if start < outcome.event.arrival <= end
    }


@dataclass(frozen=True)
class Case:
    """A stream, its policies and a slice (start, end] of it."""

    events: list[Event]
    policy: Policy
    start: int
    end: int


@st.composite
def cases(draw: st.DrawFn, late: st.SearchStrategy[int | None] | None = None) -> Case:
    policy = draw(policies(late=late, early=seconds(300, 300, 0, 7)))
    events = draw(streams(policy))
    edge = st.sampled_from([NOON, *(bound for event in events for bound in bounds(event, policy))])
    start = draw(edge) + draw(st.one_of(st.sampled_from((-1, 0, 1)), seconds(-300, -60, -1, 1, 60)))
    end = draw(st.one_of(edge, edge, seconds(1, 60, 300, 3600, 86_400).map(start.__add__)))
    return Case(events, policy, min(start, end), max(start, end, start + 1))


def bounds(event: Event, policy: Policy) -> list[int]:
    """Return the bounds of slices for which this event is a borderline case."""
    return [event.arrival, event.arrival + early(policy), event.arrival - (policy.late or 0)]


FINITE = st.one_of(seconds(0, 1, 5, 300, 1_814_399), st.integers(0, 900).map(from_seconds))


@given(case=cases())
def test_a_slice_holds_the_same_events_at_the_same_times_as_the_whole_stream(case: Case) -> None:
    around = arrivals(case.events, case.start - early(case.policy), right_bound(case.policy, case.end))
    alone = process(around, case.policy)
    whole = process(case.events, case.policy)
    assert times(alone, case.start, case.end) == times(whole, case.start, case.end)


@given(case=cases(late=FINITE))
def test_the_verdicts_of_the_arrivals_in_a_slice_need_the_late_tolerance_before_it_too(case: Case) -> None:
    assert case.policy.late is not None
    before = arrivals(case.events, case.start - early(case.policy) - case.policy.late, case.end)
    alone = process(before, case.policy)
    whole = process(case.events, case.policy)
    assert judgements(alone, case.start, case.end) == judgements(whole, case.start, case.end)
    assert slice_metrics(alone, case.start, case.end) == slice_metrics(whole, case.start, case.end)


@given(case=cases(), size=seconds(60, 300, 3600), hops=st.sampled_from((1, 2, 5)), offset=seconds(0, 7, -30))
def test_the_windows_that_end_in_a_slice_need_the_window_size_before_it_too(
    case: Case, size: int, hops: int, offset: int
) -> None:
    end = min(case.end, case.start + HOUR)
    first = case.start - size - early(case.policy)
    alone = process(arrivals(case.events, first, right_bound(case.policy, end)), case.policy)
    whole = process(case.events, case.policy)

    def rows(outcomes: Sequence[Outcome]) -> object:
        near = times(outcomes, case.start - size, end)
        chosen = [outcome for outcome in outcomes if outcome.event.sequence in near]
        return windows(chosen, Hopping(size, size // hops, offset), (), case.start, end)

    assert rows(alone) == rows(whole)


@given(case=cases(late=FINITE), cuts=st.lists(st.integers(0, 3600), max_size=4))
def test_adjacent_slices_give_the_same_as_their_whole_range(case: Case, cuts: list[int]) -> None:
    """Their order does not matter: a slice depends on nothing but its arrivals."""
    assert case.policy.late is not None
    start, end = case.start, case.start + HOUR
    edges = [start, *sorted(start + cut * SECOND for cut in cuts), end]
    in_slices: dict[int, int] = {}
    counted = 0
    for left, right in reversed(list(pairwise(edges))):
        lead = early(case.policy) + case.policy.late
        alone = process(arrivals(case.events, left - lead, right + case.policy.late), case.policy)
        in_slices |= times(alone, left, right)
        counted += sum(row["InputEvents"] for row in slice_metrics(alone, left, right).values())
    assert in_slices == times(process(case.events, case.policy), start, end)
    assert counted == len([event for event in case.events if start < event.arrival <= end])


def event(arrival: int, time: int, sequence: int) -> Event:
    """Return an event of one partition, in ticks after noon, when the slice of the examples starts."""
    return Event("0", NOON + arrival, sequence, NOON + time)


def alone(events: Sequence[Event], policy: Policy, first: int, last: int) -> dict[int, int]:
    return times(process(arrivals(events, NOON + first, NOON + last), policy), NOON, NOON + HOUR)


def whole(events: Sequence[Event], policy: Policy) -> dict[int, int]:
    return times(process(events, policy), NOON, NOON + HOUR)


def test_without_the_early_window_a_slice_does_not_stand_alone() -> None:
    """A clock that runs fast pushes the watermark into the slice from long before it."""
    events = [event(-10 * MINUTE, 30 * MINUTE, 1), event(MINUTE, MINUTE, 2)]
    with_window = Policy(out_of_order=0, late=5 * MINUTE, early=5 * MINUTE)
    without = Policy(out_of_order=0, late=5 * MINUTE, early=None)
    around = (-5 * MINUTE, HOUR + 5 * MINUTE)
    assert alone(events, with_window, *around) == whole(events, with_window) == {2: NOON + MINUTE}
    assert whole(events, without) == {1: NOON + 30 * MINUTE, 2: NOON + 30 * MINUTE}
    assert alone(events, without, *around) == {2: NOON + MINUTE}


def test_a_slice_needs_the_whole_early_window_before_it() -> None:
    policy = Policy(out_of_order=0, late=MINUTE, early=5 * MINUTE)
    events = [event(-5 * MINUTE + 1, 1, 1)]
    assert whole(events, policy) == {1: NOON + 1}
    assert alone(events, policy, -5 * MINUTE + 2, HOUR + MINUTE) == {}


def test_a_slice_needs_the_whole_late_tolerance_after_it() -> None:
    """The last moment counts: an event that arrives at its end plus the tolerance can lie at its end."""
    policy = Policy(out_of_order=0, late=MINUTE, early=5 * MINUTE)
    events = [event(HOUR + MINUTE, HOUR, 1), event(HOUR + MINUTE, 0, 2)]
    assert whole(events, policy) == {1: NOON + HOUR, 2: NOON + HOUR}
    assert alone(events, policy, -5 * MINUTE, HOUR + MINUTE - 1) == {}


def test_without_a_late_limit_any_later_arrival_belongs_to_the_slice() -> None:
    policy = Policy(out_of_order=0, late=None, early=5 * MINUTE)
    events = [event(1000 * HOUR, MINUTE, 1)]
    assert whole(events, policy) == {1: NOON + MINUTE}
    assert alone(events, policy, -5 * MINUTE, 999 * HOUR) == {}


def test_the_early_window_alone_is_too_little_for_the_verdicts() -> None:
    """The second event arrives in the slice with a time before it: its verdict counts there, its time does not."""
    policy = Policy(out_of_order=0, late=20 * MINUTE, early=5 * MINUTE)
    events = [event(-10 * MINUTE, -6 * MINUTE, 1), event(1, -9 * MINUTE, 2)]
    arrived = (NOON, NOON + HOUR)
    exact = {2: ("out_of_order_adjusted", NOON - 6 * MINUTE, False, True)}
    assert judgements(process(events, policy), *arrived) == exact
    assert judgements(process(arrivals(events, NOON - 25 * MINUTE, NOON + HOUR), policy), *arrived) == exact
    short = judgements(process(arrivals(events, NOON - 5 * MINUTE, NOON + HOUR), policy), *arrived)
    assert short == {2: ("on_time", NOON - 9 * MINUTE, False, False)}


def test_the_verdicts_need_the_whole_lead() -> None:
    """The second event is as old as the tolerance allows; the first is the earliest arrival that can overtake it."""
    policy = Policy(out_of_order=0, late=20 * MINUTE, early=5 * MINUTE)
    events = [event(-25 * MINUTE + 2, -20 * MINUTE + 2, 1), event(1, -20 * MINUTE + 1, 2)]
    arrived = (NOON, NOON + HOUR)
    exact = {2: ("out_of_order_adjusted", NOON - 20 * MINUTE + 2, False, True)}
    assert judgements(process(arrivals(events, NOON - 25 * MINUTE, NOON + HOUR), policy), *arrived) == exact
    short = process(arrivals(events, NOON - 25 * MINUTE + 3, NOON + HOUR), policy)
    assert judgements(short, *arrived) == {2: ("on_time", NOON - 20 * MINUTE + 1, False, False)}


def test_without_a_late_limit_no_lead_is_enough_for_the_verdicts() -> None:
    policy = Policy(out_of_order=0, late=None, early=5 * MINUTE)
    events = [event(-1000 * HOUR, -1000 * HOUR, 1), event(1, -1001 * HOUR, 2)]
    arrived = (NOON, NOON + HOUR)
    assert judgements(process(events, policy), *arrived)[2][0] == "out_of_order_adjusted"
    assert judgements(process(arrivals(events, NOON - 999 * HOUR, NOON + HOUR), policy), *arrived)[2][0] == "on_time"
