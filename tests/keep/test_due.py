"""What an update computes, leaves and waits for, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.sections import Schedule
from recapture.keep.due import (
    Difference,
    DueRange,
    DueSlice,
    SliceFacts,
    State,
    Stop,
    Tick,
    WaitingSlice,
    tick,
)
from recapture.run.outdated import PARTS
from recapture.run_files.work import Lease, Request
from recapture.time_model import ticks
from tests.keep import oracle_due

HOUR, MINUTE = ticks.from_seconds(3600), ticks.from_seconds(60)
MIDNIGHT = ticks.from_datetime(datetime(2024, 3, 1, tzinfo=UTC))
NOON = MIDNIGHT + 12 * HOUR


def hour(number: int) -> int:
    """Return the start of an hour of the day."""
    return MIDNIGHT + number * HOUR


def state_of(
    slices: dict[int, SliceFacts],
    *,
    since: int = 9,
    until: int = 24,
    now: int = NOON,
    requests: Sequence[Request] = (),
    leases: Sequence[Lease] = (),
    **schedule: Any,
) -> State:
    """Return the state at noon; `slices` are given by the hour, and the table is kept since nine."""
    return State(
        now=now,
        since=hour(since),
        end=now // HOUR * HOUR,
        until=min(now // HOUR * HOUR, hour(until)),
        length=HOUR,
        schedule=Schedule(**schedule),
        slices={hour(number): facts for number, facts in slices.items()},
        requests=requests,
        leases=leases,
    )


def request(first: int, end: int, at: int, id: str = "1") -> Request:
    """Return a request for the hours from `first` on."""
    return Request(id, "ann", hour(first), hour(end), at, made=NOON)


def computed(due: Tick) -> list[list[int]]:
    """Return the hours of each run."""
    return [[(slice_.start - MIDNIGHT) // HOUR for slice_ in range_.slices] for range_ in due.ranges]


def reasons(due: Tick) -> list[tuple[str, ...]]:
    return [slice_.reasons for range_ in due.ranges for slice_ in range_.slices]


def published(**facts: Any) -> SliceFacts:
    return SliceFacts(run="run", **facts)


LATE = Difference(added=2, modified=1, last_change=NOON - 60 * MINUTE)
WAITING = SliceFacts(waits_for=("partition 0: written up to 11:40",))
ALL_PUBLISHED = {9: published(), 10: published(), 11: published()}


def test_nothing_is_due_if_everything_is_published() -> None:
    assert tick(state_of(ALL_PUBLISHED)) == Tick((), (), (), ())


def test_complete_slices_without_a_publication_are_missing_and_computed_in_one_run() -> None:
    due = tick(state_of({}))
    assert computed(due) == [[9, 10, 11]]
    assert reasons(due) == [("missing",)] * 3


def test_a_slice_that_capture_may_not_have_written_waits_for_it() -> None:
    due = tick(state_of({11: WAITING}))
    assert computed(due) == [[9, 10]]
    assert due.waiting == (WaitingSlice(hour(11), ("missing",), WAITING.waits_for),)


def test_published_slices_between_others_divide_the_runs_and_the_newest_is_first() -> None:
    assert computed(tick(state_of({10: published()}))) == [[11], [9]]


def test_a_stale_slice_is_due_with_what_changed() -> None:
    due = tick(state_of(ALL_PUBLISHED | {10: published(difference=LATE)}))
    assert computed(due) == [[10]]
    assert reasons(due) == [("stale: 2 blobs added, 1 blob modified",)]


def test_a_difference_names_each_reference_that_changed() -> None:
    changed = Difference(deleted=1, references=("devices", "sites"))
    assert str(changed) == "1 blob deleted, reference data devices changed, reference data sites changed"


def test_a_stale_slice_waits_until_it_was_quiet() -> None:
    facts = ALL_PUBLISHED | {10: published(difference=LATE)}
    waiting = tick(state_of(facts, quiet_minutes=61)).waiting
    until = "2024-03-01T12:01:00Z, or later if a blob changes again"
    assert waiting == (WaitingSlice(hour(10), ("stale: 2 blobs added, 1 blob modified",), (until,)),)
    assert computed(tick(state_of(facts, quiet_minutes=60))) == [[10]]


def test_late_data_may_only_mark_a_slice() -> None:
    due = tick(state_of(ALL_PUBLISHED | {10: published(difference=LATE)}, late_data="mark"))
    assert computed(due) == []
    assert due.waiting[0].waits_for == ("a person, because schedule.late_data is mark",)


def test_slices_of_an_older_definition_are_kept_unless_the_pipeline_says_otherwise() -> None:
    facts = ALL_PUBLISHED | {10: published(outdated=("engine", "query", "policies"))}
    due = tick(state_of(facts))
    assert computed(due) == []
    assert due.waiting[0].waits_for == ("a person, because schedule.outdated is keep",)
    due = tick(state_of(facts, outdated="recompute"))
    assert reasons(due) == [("outdated: other query, policies, version of Recapture",)]


def test_another_version_of_the_engine_alone_makes_nothing_due() -> None:
    due = tick(state_of(ALL_PUBLISHED | {10: published(outdated=("engine",))}, outdated="recompute"))
    assert due == Tick((), (), (), ())


def test_all_reasons_of_a_slice_are_named() -> None:
    asked = request(10, 11, NOON)
    facts = published(difference=LATE, outdated=("query",))
    due = tick(state_of(ALL_PUBLISHED | {10: facts}, outdated="recompute", requests=[asked]))
    expected = ("requested by ann", "stale: 2 blobs added, 1 blob modified", "outdated: other query")
    assert reasons(due) == [expected]


def test_a_slice_that_is_not_complete_is_published_provisionally_if_the_schedule_says_so() -> None:
    waiting = replace(WAITING, size=5)
    assert computed(tick(state_of({9: published(), 10: published(), 11: waiting}))) == []
    early = tick(state_of({9: published(), 10: published(), 11: waiting}, provisional=True))
    assert computed(early) == [[11]]
    assert early.ranges[0].slices[0].reasons == ("missing: will be published provisionally",)
    empty = replace(WAITING, size=0)
    assert computed(tick(state_of({9: published(), 10: published(), 11: empty}, provisional=True))) == []


@pytest.mark.parametrize("provisional", [True, False])
def test_a_provisional_slice_is_computed_again_when_it_is_complete(provisional: bool) -> None:
    early = replace(published(), is_provisional=True, size=5)
    incomplete = tick(state_of({9: published(), 10: published(), 11: replace(early, waits_for=WAITING.waits_for)}))
    assert computed(incomplete) == []
    assert incomplete.waiting[0].reasons == ("provisional: it was published before Capture had written everything",)
    complete = state_of({9: published(), 10: published(), 11: early}, provisional=provisional)
    assert computed(tick(complete)) == [[11]]


def test_a_request_for_later_waits_for_its_time() -> None:
    asked = request(7, 9, NOON + HOUR)
    due = tick(state_of(ALL_PUBLISHED, requests=[asked]))
    assert computed(due) == []
    assert due.waiting == (
        WaitingSlice(hour(7), ("requested by ann",), ("2024-03-01T13:00:00Z",)),
        WaitingSlice(hour(8), ("requested by ann",), ("2024-03-01T13:00:00Z",)),
    )
    assert computed(tick(state_of(ALL_PUBLISHED, requests=[asked], now=NOON + HOUR))) == [[12], [7, 8]]


def test_the_budget_leaves_the_oldest_slices_for_the_next_update() -> None:
    due = tick(state_of({}, since=2, at_most_slices=3))
    assert computed(due) == [[9, 10, 11]]
    assert [(slice_.start - MIDNIGHT) // HOUR for slice_ in due.left] == [8, 7, 6, 5, 4, 3, 2]


@pytest.mark.parametrize(("limit", "hours"), [(1, [[11]]), (25, [[10, 11]]), (30, [[9, 10, 11]])])
def test_the_budget_in_bytes_takes_one_slice_at_least(limit: int, hours: list[list[int]]) -> None:
    facts = SliceFacts(size=10)
    assert computed(tick(state_of({9: facts, 10: facts, 11: facts}, at_most_bytes=limit))) == hours


def test_a_slice_that_was_rolled_back_waits_for_a_person() -> None:
    due = tick(state_of(ALL_PUBLISHED | {10: SliceFacts(rolled_back="bad")}))
    assert due.waiting == (WaitingSlice(hour(10), ("missing",), ("a person, because run bad was rolled back",)),)
    asked = request(10, 11, NOON)
    due = tick(state_of(ALL_PUBLISHED | {10: SliceFacts(rolled_back="bad")}, requests=[asked]))
    assert computed(due) == [[10]]


def stopped(first: int, slices: int, repeats: bool = True) -> SliceFacts:
    return SliceFacts(stop=Stop("bad", hour(first), slices, repeats))


def test_the_slices_of_a_stopped_run_come_back_in_two_halves() -> None:
    facts = {number: stopped(7, 5) for number in range(7, 12)}
    assert computed(tick(state_of(facts, since=7))) == [[9, 10, 11], [7, 8]]


def test_a_slice_that_was_stopped_alone_waits_for_a_person() -> None:
    due = tick(state_of(ALL_PUBLISHED | {10: stopped(10, 1)}))
    assert due.waiting == (WaitingSlice(hour(10), ("missing",), ("a person, because the audit stopped run bad",)),)


def test_a_stopped_slice_whose_input_or_definition_changed_is_computed_with_others() -> None:
    assert computed(tick(state_of({10: stopped(10, 1, repeats=False)}))) == [[9, 10, 11]]


def failed(first: int, slices: int, retry: int = NOON, repeats: bool = True) -> SliceFacts:
    return SliceFacts(stop=Stop("bad", hour(first), slices, repeats, "blob x is damaged", retry))


def test_the_slices_of_a_failed_run_come_back_in_two_halves() -> None:
    facts = {number: failed(7, 4) for number in range(7, 11)}
    assert computed(tick(state_of(facts, since=7))) == [[11], [9, 10], [7, 8]]


def test_a_slice_that_failed_alone_waits_for_a_time_and_then_goes_after_everything_else() -> None:
    waiting = tick(state_of({11: failed(11, 1, NOON + HOUR)})).waiting
    because = "2024-03-01T13:00:00Z, because its last run failed: blob x is damaged"
    assert waiting == (WaitingSlice(hour(11), ("missing",), (because,)),)
    assert computed(tick(state_of({11: failed(11, 1, NOON)}))) == [[9, 10], [11]]
    assert computed(tick(state_of({11: failed(11, 1, NOON)}, at_most_slices=2))) == [[9, 10]]


def test_a_failed_slice_whose_input_or_definition_changed_is_computed_with_others_at_once() -> None:
    assert computed(tick(state_of({11: failed(11, 1, NOON + HOUR, repeats=False)}))) == [[9, 10, 11]]


def test_a_request_goes_before_the_pause_after_a_failure() -> None:
    asked = request(11, 12, NOON)
    assert computed(tick(state_of({11: failed(11, 1, NOON + HOUR)}, requests=[asked]))) == [[11], [9, 10]]


def test_a_slice_that_another_update_computes_waits_for_it() -> None:
    lease = Lease("other", hour(10), hour(12), NOON - MINUTE, NOON + MINUTE)
    due = tick(state_of({}, leases=[lease]))
    assert computed(due) == [[9]]
    reason = "another run, which has been computing it since 2024-03-01T11:59:00Z"
    assert [slice_.waits_for for slice_ in due.waiting] == [(reason,), (reason,)]


def test_what_a_request_got_is_not_computed_for_it_again() -> None:
    asked = replace(request(7, 9, NOON), published={"2024-03-01T07:00:00Z": "run"})
    due = tick(state_of(ALL_PUBLISHED, requests=[asked]))
    assert computed(due) == [[8]]
    assert due.ranges[0].slices[0].requests == ("1",)


def test_slices_before_the_first_kept_one_are_left_alone() -> None:
    assert tick(state_of(ALL_PUBLISHED | {3: published(difference=LATE)})) == Tick((), (), (), ())


def test_slices_after_the_last_kept_one_are_left_alone_unless_they_are_requested() -> None:
    slices = {9: published(), 10: published(difference=LATE)}
    assert tick(state_of(slices, until=10)) == Tick((), (), (), ())
    assert computed(tick(state_of(slices, until=10, requests=[request(11, 12, NOON)]))) == [[11]]
    later = tick(state_of(slices, until=10, requests=[request(10, 12, NOON + HOUR)]))
    assert [slice_.reasons for slice_ in later.waiting] == [("requested by ann",)] * 2
    assert [slice_.waits_for for slice_ in later.waiting] == [("2024-03-01T13:00:00Z",)] * 2
    assert computed(later) == []
    assert computed(tick(state_of({}, until=10, at_most_slices=1))) == [[9]]


def test_an_interrupted_change_is_finished_wherever_it_is() -> None:
    due = tick(state_of(ALL_PUBLISHED | {3: published(is_unfinished=True), 10: published(is_unfinished=True)}))
    assert due == Tick((), (), (), (hour(3), hour(10)))


FACTS = st.builds(
    SliceFacts,
    waits_for=st.sampled_from([(), (), (), ("capture",)]),
    size=st.sampled_from([None, 0, 5, 20]),
    run=st.sampled_from([None, "run", "run"]),
    is_provisional=st.sampled_from([False, False, True]),
    is_unfinished=st.booleans(),
    difference=st.none()
    | st.builds(Difference, added=st.integers(0, 2), last_change=st.integers(NOON - 90 * MINUTE, NOON)),
    outdated=st.lists(st.sampled_from([*PARTS, "unknown"]), max_size=2, unique=True).map(tuple),
    rolled_back=st.sampled_from([None, None, None, "run"]),
    stop=st.none()
    | st.builds(
        Stop,
        st.sampled_from(["stop a", "stop b"]),
        st.integers(0, 4).map(hour),
        st.integers(1, 6),
        st.booleans(),
        error=st.sampled_from([None, "blob x is damaged"]),
        retry=st.integers(-1, 1).map(lambda minutes: NOON + minutes * MINUTE),
    ),
)


@st.composite
def states(draw: st.DrawFn) -> State:
    starts, length = range(0, 12), st.integers(1, 4)
    requests = [
        replace(
            request(first, first + draw(length), NOON + draw(st.integers(-1, 1)), str(number)),
            only=draw(st.sampled_from([(), (hour(first),)])),
        )
        for number, first in enumerate(draw(st.lists(st.sampled_from(starts), max_size=2)))
    ]
    leases = [
        Lease("other", hour(first), hour(first + draw(length)), NOON, NOON + HOUR)
        for first in draw(st.lists(st.sampled_from(starts), max_size=1))
    ]
    return state_of(
        draw(st.dictionaries(st.sampled_from(starts), FACTS)),
        since=draw(st.integers(0, 12)),
        until=draw(st.integers(0, 12)),
        requests=requests,
        leases=leases,
        at_most_slices=draw(st.integers(1, 13)),
        at_most_bytes=draw(st.none() | st.integers(1, 60)),
        quiet_minutes=draw(st.integers(0, 60)),
        provisional=draw(st.booleans()),
        late_data=draw(st.sampled_from(["republish", "mark"])),
        outdated=draw(st.sampled_from(["keep", "recompute"])),
    )


def slices_of(due: Tick) -> Iterator[DueSlice]:
    for range_ in due.ranges:
        yield from range_.slices


def test_a_request_of_old_slices_goes_before_history_and_after_the_newest_slice() -> None:
    state = state_of({}, since=0, requests=[Request("1", "ann", hour(2), hour(4), NOON, NOON)], at_most_slices=4)
    taken = [[slice_.start for slice_ in range_.slices] for range_ in tick(state).ranges]
    assert taken[0][-1] == max(slice_.start for slice_ in slices_of(tick(state)))
    assert taken[1] == [hour(2), hour(3)]


@given(states())
def test_the_oracle_finds_the_same_slices_due(state: State) -> None:
    due = tick(state)
    ordered = oracle_due.due(state)
    taken = oracle_due.within_budget(state, ordered)
    assert sorted(slice_.start for slice_ in slices_of(due)) == sorted(taken)
    assert [slice_.start for slice_ in due.left] == ordered[len(taken) :]
    assert not {slice_.start for slice_ in due.waiting} & set(ordered)


@given(states())
def test_ranges_are_contiguous_and_as_long_as_they_may_be(state: State) -> None:
    ranges = [range_ for range_ in tick(state).ranges if not range_.slices[0].is_retry]
    for range_ in ranges:
        assert [slice_.start for slice_ in range_.slices] == [*range(range_.start, range_.end, HOUR)]
        assert len({slice_.half for slice_ in range_.slices}) == 1
    for newer, older in pairwise(ranges):
        assert older.end < newer.start or _of_other_halves(older, newer) or _is_requested(older) != _is_requested(newer)


def _is_requested(range_: DueRange) -> bool:
    return any(slice_.requests for slice_ in range_.slices)


def _of_other_halves(older: DueRange, newer: DueRange) -> bool:
    return older.end == newer.start and older.slices[-1].half != newer.slices[0].half


@given(states())
def test_a_due_slice_and_a_waiting_one_have_a_reason_and_the_waiting_one_what_it_waits_for(state: State) -> None:
    due = tick(state)
    assert all(slice_.reasons for slice_ in (*slices_of(due), *due.left))
    assert all(slice_.reasons and slice_.waits_for for slice_ in due.waiting)
