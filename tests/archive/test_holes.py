"""What is missing from an archive: lost events, a new hub, a partition that begins, and mere pauses."""

from dataclasses import replace

import pytest

from recapture.archive.definitions import InputDefinition
from recapture.archive.hole_sentences import remedy, sentence
from recapture.archive.holes import Hole, Kind, Partition, find_holes
from recapture.archive.number_chain import Numbers, SliceNumbers
from recapture.archive.pauses import Pause
from recapture.formats.event_hubs import CaptureNames
from recapture.formats.path_names import InputPath
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import from_datetime, from_seconds, parse_utc

MINUTE = from_seconds(60)
TEN = from_datetime(parse_utc("2026-03-01T10:00:00Z"))
HOUR = 60 * MINUTE
CAPTURE = InputDefinition(
    alias="telemetry",
    names=CaptureNames("contoso", "telemetry"),
    policies=None,
    look_back=0,
    interval_seconds=300,
    reading={},
    empty_blobs=True,
)


def at(minutes: float) -> int:
    return TEN + round(minutes * MINUTE)


def hour(number: int, *ranges: tuple[int, int, float, float]) -> SliceNumbers:
    """Return the numbers of an hour from ten on: first and last number, and minutes of their enqueued times."""
    numbers = (Numbers(first, last, at(since), at(until)) for first, last, since, until in ranges)
    return SliceNumbers(Slice(at(60 * number), at(60 * number + 60)), tuple(numbers))


def pause(first: float, last: float, before: float | None = -5, after: float | None = 240) -> Pause:
    times = [None if minutes is None else at(minutes) for minutes in (before, after)]
    return Pause("0", at(first), at(last), round((last - first) / 5), *times)


def holes(*slices: SliceNumbers, pauses: tuple[Pause, ...] = (), **known: object) -> list[Hole]:
    return find_holes(CAPTURE, [Partition("0", slices, pauses=pauses, **known)])  # type: ignore[arg-type]


def only(*slices: SliceNumbers, pauses: tuple[Pause, ...] = (), **known: object) -> Hole:
    (hole,) = holes(*slices, pauses=pauses, **known)
    return hole


def test_numbers_that_continue_have_no_hole() -> None:
    assert holes(hour(0, (0, 99, 0, 59)), hour(1, (100, 199, 60, 119))) == []


def test_numbers_are_missing_however_long_the_pause_was() -> None:
    hole = only(hour(0, (0, 2880, 0, 59)), hour(1), hour(2), hour(3, (5759, 7199, 181, 239)))
    assert (hole.kind, hole.events, hole.first, hole.last) == (Kind.LOST, 2878, 2881, 5758)
    assert (hole.start, hole.end, hole.slice_start) == (at(59), at(181), at(180))
    assert hole.severity == "critical"


def test_missing_blobs_and_missing_numbers_are_one_hole() -> None:
    slices = hour(0, (0, 2880, 0, 59)), hour(1), hour(2), hour(3, (5759, 7199, 181, 239))
    hole = only(*slices, pauses=(pause(60, 180),))
    assert (hole.kind, hole.events, hole.blobs) == (Kind.LOST, 2878, 24)
    assert (hole.start, hole.end, hole.slice_start) == (at(60), at(180), at(60))
    assert sentence(hole, name_input=False) == (
        "partition 0 lacks 2,878 events from 2026-03-01T11:00:00Z to 2026-03-01T13:00:00Z: sequence numbers 2881 to "
        "5758; 24 blobs are missing"
    )
    assert remedy(hole) == (
        "restore the blobs if they were moved or deleted; the hub may still have the events, until "
        "2026-03-08T13:00:00Z if it keeps events for 7 days, or until 2026-05-30T13:00:00Z if it keeps them for 90"
    )


def test_two_pauses_in_one_range_of_missing_numbers_are_one_hole() -> None:
    hole = only(hour(0, (0, 9, 0, 10), (50, 99, 45, 59)), pauses=(pause(15, 25), pause(30, 40)))
    assert (hole.kind, hole.events, hole.blobs, hole.end) == (Kind.LOST, 40, 4, at(40))


def test_missing_blobs_between_numbers_that_continue_lose_nothing() -> None:
    hole = only(hour(0, (0, 99, 0, 59)), pauses=(pause(20, 40),))
    assert (hole.kind, hole.events, hole.blobs, hole.severity) == (Kind.PAUSED, 0, 4, "info")
    assert remedy(hole) == ""


def test_missing_blobs_without_a_number_on_one_side_may_have_lost_events() -> None:
    hole = only(hour(0, (0, 99, 0, 30)), pauses=(pause(35, 60),))
    assert (hole.kind, hole.events, hole.severity) == (Kind.UNKNOWN, None, "critical")


def test_the_published_slices_next_to_the_run_have_the_numbers_on_the_other_side() -> None:
    run, missing = hour(1), (pause(60, 120),)
    assert only(run, pauses=missing).kind is Kind.UNKNOWN
    before, after = [hour(0, (0, 99, 0, 59))], [hour(2, (100, 199, 121, 179))]
    assert only(run, pauses=missing, before=before).kind is Kind.UNKNOWN
    assert only(run, pauses=missing, before=before, after=after).kind is Kind.PAUSED
    lost = only(run, pauses=missing, before=before, after=[hour(2, (120, 199, 121, 179))])
    assert (lost.kind, lost.events) == (Kind.LOST, 20)


def test_a_hole_inside_a_neighbour_is_not_the_runs() -> None:
    before, after = [hour(0, (0, 9, 0, 9), (20, 99, 20, 59))], [hour(2, (200, 209, 120, 129), (220, 299, 140, 179))]
    assert holes(hour(1, (100, 199, 60, 119)), before=before, after=after) == []


def test_a_hole_before_the_run_only_warns() -> None:
    """Its own hour is whole; the hours that lack the events were stopped or accepted."""
    before = [hour(0, (0, 99, 0, 59)), hour(1), hour(2)]
    hole = only(hour(3, (500, 599, 176, 235)), before=before)
    assert (hole.kind, hole.events, hole.severity) == (Kind.LOST, 400, "warning")
    assert only(hour(3, (500, 599, 190, 239)), before=before).severity == "critical"
    hole = only(hour(3, (500, 599, 180, 239)), pauses=(pause(165, 175),))
    assert (hole.kind, hole.severity) == (Kind.UNKNOWN, "warning")


def test_blobs_that_are_missing_in_and_next_to_a_run_are_one_hole() -> None:
    hole = only(hour(1, (10, 20, 61, 70)), pauses=(pause(70, 130),))
    assert (hole.kind, hole.blobs, hole.severity) == (Kind.UNKNOWN, 12, "critical")


def test_a_sentence_has_its_times_in_order_even_if_the_events_have_not() -> None:
    hole = replace(only(hour(0, (0, 49, 0, 30), (60, 99, 36, 59))), start=at(40), end=at(35))
    assert "lacks 10 events from 2026-03-01T10:35:00Z to 2026-03-01T10:40:00Z" in sentence(hole, name_input=False)


def test_a_number_that_arrives_in_a_later_slice_is_not_missing() -> None:
    assert holes(hour(0, (0, 49, 0, 29), (60, 99, 36, 59)), hour(1, (50, 59, 30, 35), (100, 199, 60, 119))) == []


def test_a_hub_that_was_recreated_starts_its_numbers_again() -> None:
    hole = only(hour(0, (5000, 5099, 0, 30), (0, 49, 40, 59)))
    assert (hole.kind, hole.first, hole.events, hole.severity) == (Kind.RECREATED, 0, None, "warning")
    assert sentence(hole, name_input=False) == (
        "partition 0: the sequence numbers start again at 0 between 2026-03-01T10:30:00Z and 2026-03-01T10:40:00Z, so "
        "the hub was recreated; it is not known whether the last events of the old hub were captured"
    )


def test_a_new_hub_is_told_from_lost_numbers_even_if_it_came_at_once() -> None:
    assert only(hour(0, (120, 189, 0, 30), (0, 5, 31, 59))).kind is Kind.RECREATED


def test_the_gaps_of_the_old_and_of_the_new_hub_are_found() -> None:
    kinds = [
        (hole.kind, hole.first, hole.last)
        for hole in holes(hour(0, (90, 99, 0, 10)), hour(1, (120, 129, 60, 70), (0, 9, 90, 95), (20, 29, 100, 119)))
    ]
    assert kinds == [(Kind.LOST, 100, 119), (Kind.RECREATED, 0, None), (Kind.LOST, 10, 19)]


def test_a_partition_that_begins_with_number_0_lacks_nothing() -> None:
    hole = only(hour(0, (0, 99, 31, 59)), pauses=(pause(0, 30, before=None, after=30),))
    assert (hole.kind, hole.events, hole.severity) == (Kind.BEGINS, 0, "info")


def test_an_archive_that_begins_with_another_number_is_named() -> None:
    hole = only(hour(0, (7, 99, 31, 59)), pauses=(pause(0, 30, before=None, after=30),))
    assert (hole.kind, hole.first, hole.severity) == (Kind.BEGINS, 7, "warning")


def test_a_partition_that_begins_later_than_others_with_another_number_lacks_events() -> None:
    begins = Partition("0", [hour(0, (7, 99, 31, 59))], pauses=[pause(0, 30, before=None, after=30)])
    (hole,) = find_holes(CAPTURE, [begins, Partition("1", [hour(0, (50, 99, 0, 59))])])
    assert (hole.kind, hole.partition, hole.last, hole.severity) == (Kind.UNKNOWN, "0", 6, "critical")


def test_a_partition_that_was_published_before_does_not_begin() -> None:
    begins = pause(60, 90, before=None, after=90)
    hole = only(hour(1, (150, 199, 91, 119)), pauses=(begins,), before=[hour(0, (0, 99, 0, 59))])
    assert (hole.kind, hole.events) == (Kind.LOST, 50)


def test_a_partition_that_begins_after_another_one_of_the_range_lacks_events() -> None:
    first = Partition("0", [hour(0, (0, 99, 11, 59))], pauses=[pause(-10, 10, before=None, after=10)])
    later = Partition("1", [hour(0, (7, 99, 31, 59))], pauses=[pause(-10, 30, before=None, after=30)])
    holes = find_holes(CAPTURE, [first, later])
    assert [(hole.partition, hole.kind, hole.last, hole.severity) for hole in holes] == [
        ("0", Kind.BEGINS, None, "info"),
        ("1", Kind.UNKNOWN, 6, "critical"),
    ]


def test_partitions_that_begin_within_an_interval_begin_together() -> None:
    first = Partition("0", [hour(0, (5, 99, 31, 59))], pauses=[pause(-10, 28, before=None, after=28)])
    later = Partition("1", [hour(0, (7, 99, 33, 59))], pauses=[pause(-10, 32, before=None, after=32)])
    assert [hole.kind for hole in find_holes(CAPTURE, [first, later])] == [Kind.BEGINS, Kind.BEGINS]


def test_a_partition_without_any_blob_is_never_passed_over() -> None:
    empty = Partition("0", [hour(0)], pauses=[pause(0, 60, before=None, after=None)])
    for partitions in [empty], [empty, Partition("1", [hour(0, (0, 99, 0, 59))])]:
        (hole,) = find_holes(CAPTURE, partitions)
        assert (hole.kind, hole.severity) == (Kind.UNKNOWN, "critical")


def test_a_partition_without_a_blob_up_to_the_end_of_the_run_does_not_begin_in_it() -> None:
    hole = only(hour(0), pauses=(pause(0, 70, before=None, after=70),))
    assert (hole.kind, hole.blobs, hole.severity) == (Kind.UNKNOWN, 14, "critical")


def test_a_partition_that_begins_after_the_run_with_number_0_lacks_nothing() -> None:
    begins = pause(0, 70, before=None, after=70)
    hole = only(hour(0), pauses=(begins,), after=[hour(1, (0, 99, 71, 119))])
    assert (hole.kind, hole.blobs, hole.events, hole.severity) == (Kind.BEGINS, 14, 0, "info")


def test_a_range_before_the_first_blob_says_nothing() -> None:
    assert holes(hour(0, (0, 99, 1, 59)), pauses=(pause(-10, 0, before=None, after=0),)) == []


def test_a_slice_without_any_blob_is_named_unless_the_numbers_continue() -> None:
    silent = [Slice(at(60), at(120))]
    hole = only(hour(0, (0, 99, 0, 59)), hour(1), silent=silent)
    assert (hole.kind, hole.severity, hole.start) == (Kind.SILENT, "warning", at(60))
    assert holes(hour(0, (0, 99, 0, 59)), hour(1), hour(2, (100, 199, 120, 179)), silent=silent) == []


def test_slices_in_which_only_one_partition_has_no_blob_are_noted_as_one() -> None:
    quiet = [Slice(at(60), at(120)), Slice(at(120), at(180))]
    slices = hour(0, (0, 99, 0, 59)), hour(1), hour(2)
    hole = only(*slices, quiet=quiet)
    assert (hole.kind, hole.severity, hole.start, hole.end) == (Kind.QUIET, "info", at(60), at(180))
    assert holes(*slices, hour(3, (100, 199, 181, 239)), quiet=quiet) == []


def test_no_hub_is_said_to_hold_the_events_of_an_archive_that_no_hub_wrote() -> None:
    silent = Partition("0", [hour(0)], silent=[Slice(at(0), at(60))])
    (hole,) = find_holes(replace(CAPTURE, empty_blobs=False), [silent])
    assert "the hub may still have the events" in remedy(hole)
    names = InputPath("{date}/{time}", "YYYY/MM/DD", "HH")
    (hole,) = find_holes(replace(CAPTURE, empty_blobs=False, names=names), [silent])
    assert remedy(hole) == "restore the blobs if they were moved or deleted"


def test_a_gap_that_is_counted_as_such_is_not_reported_again() -> None:
    slices = hour(0, (0, 49, 0, 29), (60, 99, 36, 59))
    assert holes(slices, gaps={(50, 59)}) == []
    assert holes(slices, more_gaps_in=[slices.slice]) == []
    assert len(holes(slices, gaps={(50, 58)})) == 1


def test_copies_of_old_events_in_the_first_slice_are_no_hole() -> None:
    old = (0, 9, -2000, -1990)
    assert holes(hour(0, old, (500, 599, 0, 59))) == []
    assert holes(hour(1, old, (600, 699, 60, 119)), before=[hour(0, (500, 599, 0, 59))]) == []


@pytest.mark.parametrize("unknown", ["first", "all"])
def test_without_enqueued_times_the_numbers_still_tell(unknown: str) -> None:
    first, second = Numbers(0, 49, None, None), Numbers(60, 99, at(40), at(59))
    second = second if unknown == "first" else replace(second, enqueued=None, enqueued_until=None)
    hole = only(SliceNumbers(Slice(at(0), at(60)), (first, second)))
    assert (hole.kind, hole.events) == (Kind.LOST, 10)


def test_numbers_that_roll_over_continue() -> None:
    before = hour(0, (2**48 - 10, 2**48 - 1, 0, 59))
    after = hour(1, (0, 9, 60, 119))
    assert holes(before, after, sequence_partition=3, modulus=2**48) == []
    assert only(before, hour(1, (5, 9, 60, 119)), sequence_partition=3, modulus=2**48).events == 5


def test_blobs_of_one_partition_that_are_missing_before_the_run_are_named() -> None:
    """With LastModified, the last blob before the run arrives in it."""
    other = Partition("1", [hour(0, (50, 99, 0, 59))])
    for minutes, severity in (0, "critical"), (-5, "warning"):
        begins = pause(-10, minutes, before=None, after=minutes)
        (hole,) = find_holes(CAPTURE, [Partition("0", [hour(0, (7, 99, 1, 59))], pauses=[begins]), other])
        assert (hole.kind, hole.last, hole.severity) == (Kind.UNKNOWN, 6, severity)
