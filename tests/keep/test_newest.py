"""Which range an update computes that takes one at a time, and when the next update begins at once."""

import pytest

from recapture.keep.due import SliceFacts, Stop
from recapture.keep.newest import NewestRange, newest_range
from tests.keep.test_due import LATE, MIDNIGHT, computed, hour, published, state_of


def taken(newest: NewestRange) -> tuple[list[int], int | None]:
    """Return the hours that are computed, and the newest hour that the next update may compute at once."""
    hours = [(slice_.start - MIDNIGHT) // (hour(1) - hour(0)) for slice_ in newest.range.slices] if newest.range else []
    return hours, None if newest.next is None else (newest.next - MIDNIGHT) // (hour(1) - hour(0))


def test_the_newest_range_comes_first_and_the_next_update_goes_on_at_once() -> None:
    facts = {9: published(difference=LATE), 10: published(), 11: SliceFacts()}
    newest = newest_range(state_of(facts), {})
    assert taken(newest) == ([11], 9)
    facts[11] = published()
    assert taken(newest_range(state_of(facts), newest.tried)) == ([9], None)


def test_when_nothing_is_due_nothing_follows() -> None:
    assert taken(newest_range(state_of(dict.fromkeys((9, 10, 11), published())), {})) == ([], None)


def test_the_budget_divides_history() -> None:
    newest = newest_range(state_of({}, since=2, at_most_slices=4), {})
    assert taken(newest) == ([8, 9, 10, 11], 11)
    done = {number: published() for number in range(8, 12)}
    assert taken(newest_range(state_of(done, since=2, at_most_slices=4), newest.tried)) == ([4, 5, 6, 7], 7)


def test_a_range_whose_run_failed_does_not_keep_older_slices_from_being_computed() -> None:
    newest = newest_range(state_of({}, since=4, at_most_slices=3), {})
    assert taken(newest) == ([9, 10, 11], 11)
    for expected in ([6, 7, 8], [4, 5], []):
        newest = newest_range(state_of({}, since=4, at_most_slices=3), newest.tried)
        assert taken(newest)[0] == expected
    assert {reason for slice_ in newest.tick.waiting for reason in slice_.waits_for} == {
        "the next update, because its run failed"
    }


def test_a_newer_slice_comes_before_those_that_are_left() -> None:
    newest = newest_range(state_of({}, since=4, at_most_slices=3), {})
    later = state_of({}, since=4, now=hour(13), at_most_slices=3)
    assert taken(newest_range(later, newest.tried)) == ([12], 8)


def test_a_slice_that_failed_is_forgotten_when_it_is_published() -> None:
    newest = newest_range(state_of({11: published()}, since=10), {hour(11): None, hour(10): None})
    assert (taken(newest), newest.failed) == (([], None), {hour(10): None})


@pytest.mark.parametrize(("slices", "expected"), [(4, [10, 11]), (2, [11])])
def test_a_range_that_its_audit_stopped_is_halved_at_once(slices: int, expected: list[int]) -> None:
    """The record of the stopped run makes the halves, so that the slice at fault ends alone."""
    tried = dict.fromkeys(map(hour, (8, 9, 10, 11)), None)
    stop = Stop("stopped", hour(12 - slices), slices, repeats=True)
    stopped = {number: SliceFacts(stop=stop) for number in range(12 - slices, 12)}
    newest = newest_range(state_of(stopped, since=12 - slices), tried)
    assert taken(newest)[0] == expected
    again = newest_range(state_of(stopped, since=12 - slices), newest.tried)
    assert computed(again.tick) == [list(range(12 - slices, expected[0]))], "this half failed for another reason"
