"""Intervals that must have a blob and have none."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.definitions import ArrivalTime, InputDefinition
from recapture.archive.pauses import Pause, missing_blobs, pauses
from recapture.formats.path_names import InputPath
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import from_seconds
from tests.archive.test_holes import CAPTURE, MINUTE, TEN, at

ENQUEUED = replace(CAPTURE, arrival_time=ArrivalTime.EVENT_ENQUEUED)


def pauses_of(
    minutes: Iterable[float], first: float = 0, last: float = 60, definition: InputDefinition = CAPTURE
) -> list[tuple[float, float, int]]:
    """Return start, end and number of blobs of the pauses, in minutes after ten, of blobs with these names."""
    times = {"0": [at(minute) for minute in minutes]}
    return [
        ((pause.start - TEN) / MINUTE, (pause.end - TEN) / MINUTE, pause.blobs)
        for pause in pauses(definition, ["0"], times, at(first), at(last))
    ]


def test_a_blob_for_every_interval_leaves_no_pause() -> None:
    assert pauses_of(range(-5, 70, 5)) == []


def test_the_intervals_between_two_blobs_that_have_none_are_a_pause() -> None:
    assert pauses_of([*range(-5, 10, 5), *range(25, 70, 5)]) == [(10, 25, 3)]


def test_a_blob_that_is_some_seconds_early_or_late_is_not_missing() -> None:
    assert pauses_of([minute + (minute * 7 % 11 - 5) / 60 for minute in range(-5, 70, 5)]) == []


def test_a_blob_that_was_full_before_its_interval_ended_is_not_one_too_many() -> None:
    assert pauses_of([-5, 0, 1, 2, 3, 8, 13, *range(18, 70, 5)]) == []


def test_without_an_earlier_blob_the_pause_ends_with_the_first_one() -> None:
    assert pauses_of(range(20, 70, 5)) == [(-5, 20, 5)]
    assert pauses_of(range(18, 70, 5)) == [(-2, 18, 4)]


def test_without_a_later_blob_the_pause_lasts_until_the_end_of_the_range() -> None:
    assert pauses_of(range(-5, 45, 5)) == [(45, 55, 2)]
    assert pauses_of([-32]) == [(-2, 58, 12)]


def test_without_any_blob_the_pause_is_the_range() -> None:
    assert pauses_of([]) == [(-5, 55, 12)]


def test_only_the_intervals_of_the_range_count() -> None:
    assert pauses_of([-30, 90], first=0, last=60) == [(-5, 55, 12)]


def test_a_blob_arrives_after_its_interval_and_an_enqueued_event_in_it() -> None:
    names = [*range(-65, -5, 5), *range(0, 70, 5)]
    assert pauses_of(names, definition=CAPTURE) == [(-5, 0, 1)]
    assert pauses_of(names, definition=ENQUEUED) == []
    assert pauses_of(names, first=-60, last=0, definition=CAPTURE) == []
    assert pauses_of(names, first=-60, last=0, definition=ENQUEUED) == [(-5, 0, 1)]


def test_nothing_is_missing_where_no_blob_is_promised() -> None:
    assert pauses_of([], definition=replace(CAPTURE, empty_blobs=False)) == []
    assert pauses_of([], definition=replace(CAPTURE, names=InputPath("{partition}/{date}/{time}"))) == []


@given(
    removed=st.sets(st.integers(0, 40), max_size=40),
    seconds=st.lists(st.integers(-30, 30), min_size=41, max_size=41),
    bounds=st.tuples(st.integers(0, 200), st.integers(0, 200)).map(sorted),
    definition=st.sampled_from([CAPTURE, ENQUEUED]),
)
def test_every_removed_blob_is_missed_once(
    removed: set[int], seconds: list[int], bounds: list[int], definition: InputDefinition
) -> None:
    """Blobs at the edges stay, so that every pause has one before and after it."""
    first, last = (at(bound) for bound in bounds)
    times = [at(5 * number) + from_seconds(seconds[number]) for number in range(41)]
    kept = [time for number, time in enumerate(times) if number not in removed or number in (0, 40)]
    listed = {"0": [at(-10), at(-5), *kept, at(205), at(210)]}
    ends = [times[number + 1] for number in sorted(removed - {0, 40})]
    slack = from_seconds(30)
    certain = [end for end in ends if first + slack < end <= last - slack]
    possible = [end for end in ends if first - slack < end <= last + slack]
    listed_pauses = list(pauses(definition, ["0"], listed, first, last))
    assert len(certain) <= sum(pause.blobs for pause in listed_pauses) <= len(possible)
    assert all(len(pause.ends) == pause.blobs for pause in listed_pauses)
    assert all(missing_blobs(definition, pause, Slice(first, last)) == pause.blobs for pause in listed_pauses)


def test_the_blobs_of_a_pause_are_divided_among_slices() -> None:
    pause = Pause("0", at(30), at(90), 12, at(25), at(90))
    slices = [Slice(at(0), at(60)), Slice(at(60), at(120))]
    assert [missing_blobs(CAPTURE, pause, slice_) for slice_ in slices] == [5, 7]
    assert [missing_blobs(ENQUEUED, pause, slice_) for slice_ in slices] == [6, 6]
