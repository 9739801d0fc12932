"""Duplicates and gaps by sequence number are those that a naive reader finds, however the events are chunked."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.formats.events import UNKNOWN
from recapture.ordering.sequence import Gaps, Ranges, SequenceNumbers
from recapture.time_model.slices import DUPLICATE_HORIZON
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.worlds import TEN

UNRECORDED = -999
"""Enqueued time of an event whose file does not record it."""
MINUTE = from_seconds(60)
START = from_datetime(TEN)


@dataclass(frozen=True)
class Blob:
    """Events that arrived together: their numbers and enqueued times, in minutes after ten."""

    arrival: int
    events: tuple[tuple[int, int], ...]


def blob(arrival: int, numbers: range | list[int], enqueued: int | None = None) -> Blob:
    """Return a blob whose events were enqueued a minute before it arrived, unless `enqueued` says otherwise."""
    when = arrival - 1 if enqueued is None else enqueued
    return Blob(arrival, tuple((number, when) for number in numbers))


def ticks(minutes: int) -> int:
    return START + minutes * MINUTE


def read(blobs: list[Blob], chunk: int = 1) -> tuple[list[bool], list[tuple[int, int]]]:
    """Return which events are duplicates, and the ranges that are missing in the end, by their first number."""
    numbers = SequenceNumbers()
    duplicates: list[bool] = []
    missing: list[Gaps] = []
    for begin in range(0, len(blobs), chunk):
        together = blobs[begin : begin + chunk]
        rows = [(n, b.arrival, e) for b in together for n, e in b.events]
        number = np.array([n for n, _, _ in rows], np.int64)
        arrival = np.array([ticks(a) for _, a, _ in rows], np.int64)
        enqueued = np.array([UNKNOWN if e == UNRECORDED else ticks(e) for _, _, e in rows], np.int64)
        again, groups = numbers.observe(number, arrival, arrival, enqueued)
        duplicates += again.tolist()
        for group in groups:
            if group.may_fill_gaps:
                missing = [gaps.without(number[group.rows], enqueued[group.rows]) for gaps in missing]
            if group.gaps is not None:
                missing.append(group.gaps)
    pairs = [
        pair for gaps in missing for pair in zip(gaps.ranges.first.tolist(), gaps.ranges.last.tolist(), strict=True)
    ]
    return duplicates, sorted(pairs)


def test_consecutive_numbers_are_neither_duplicates_nor_gaps() -> None:
    assert read([blob(0, range(5)), blob(5, range(5, 9)), blob(10, [])]) == ([False] * 9, [])


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_copied_blob_holds_duplicates(chunk: int) -> None:
    original = blob(0, range(5))
    copy = Blob(30, original.events)
    assert read([original, blob(5, range(5, 8)), copy], chunk) == ([False] * 8 + [True] * 5, [])


def test_events_that_were_captured_again_are_duplicates() -> None:
    first = Blob(5, tuple((n, n // 2) for n in range(10)))
    again = Blob(10, tuple((n, n // 2) for n in range(6, 18)))
    assert read([first, again]) == ([False] * 10 + [True] * 4 + [False] * 8, [])


def test_a_number_twice_in_one_arrival_is_a_duplicate() -> None:
    assert read([blob(0, [1, 2, 2, 2, 3])]) == ([False, False, True, True, False], [])


def test_skipped_numbers_are_a_gap_within_a_blob_and_between_two() -> None:
    assert read([blob(0, [1, 2, 5]), blob(5, range(9, 12))]) == ([False] * 6, [(3, 4), (6, 8)])


def test_a_gap_reaches_from_the_highest_number_before_to_the_one_that_overtook_it() -> None:
    assert read([blob(0, [4]), blob(5, [3, 6, 7, 10], -1)]) == ([False] * 5, [(5, 5), (8, 9)])
    assert read([blob(5, [3, 6, 7, 10])]) == ([False] * 4, [(4, 5), (8, 9)]), "no earlier number is known"


def test_late_events_fill_their_gap_or_a_part_of_it() -> None:
    assert read([blob(0, [1]), blob(5, [9]), blob(10, [3, 4, 5], 1)])[1] == [(2, 2), (6, 8)]
    assert read([blob(0, [1]), blob(5, [9]), blob(10, range(2, 9), 1)]) == ([False] * 9, [])


@pytest.mark.parametrize("first", [0, 40])
def test_a_recreated_hub_has_neither_duplicates_nor_gaps_of_the_old_one(first: int) -> None:
    """Its numbers start again while its times continue; duplicates and gaps in its own numbers are found as before."""
    before = [blob(0, range(100)), blob(5, range(100, 200))]
    recreated = [blob(10, range(first, first + 10)), blob(15, range(first + 12, first + 20))]
    duplicates, missing = read([*before, *recreated, Blob(20, recreated[0].events)])
    assert (sum(duplicates), duplicates[-10:]) == (10, [True] * 10)
    assert missing == [(first + 10, first + 11)]


def test_an_event_of_the_old_hub_that_arrives_again_is_a_duplicate() -> None:
    before, recreated = blob(0, range(100)), blob(10, range(50))
    assert read([before, recreated, Blob(15, before.events)])[0] == [False] * 150 + [True] * 100


def test_duplicates_of_some_events_of_the_old_hub_are_not_evidence_of_a_gap() -> None:
    before, part = blob(0, range(3)), blob(1, range(1), enqueued=-1)
    assert read([before, part, blob(8, [2])]) == ([False] * 3 + [True, False], [])


def test_numbers_of_the_new_hub_do_not_fill_the_gaps_of_the_old() -> None:
    assert read([blob(0, [1, 2]), blob(5, [5, 6]), blob(30, range(9))])[1] == [(3, 4)]


def test_a_duplicate_of_a_duplicate_is_a_duplicate_if_each_follows_within_the_hour() -> None:
    first = blob(0, range(3))
    assert read([first, Blob(50, first.events), Blob(100, first.events)])[0] == [False] * 3 + [True] * 6


@pytest.mark.parametrize(("minutes", "duplicate"), [(60, True), (61, False)])
def test_after_an_hour_a_duplicate_is_not_recognised(minutes: int, duplicate: bool) -> None:
    first = blob(0, range(3))
    between = [blob(minute, [minute]) for minute in range(5, minutes, 5)]
    assert read([first, *between, Blob(minutes, first.events)])[0][-3:] == [duplicate] * 3


def test_gaps_are_not_reported_after_an_hour_without_events() -> None:
    assert read([blob(0, [1]), blob(60, [5])])[1] == [(2, 4)]
    assert read([blob(0, [1]), blob(61, [5])])[1] == []


def test_duplicates_of_old_events_are_not_evidence_of_a_gap_whether_or_not_the_originals_are_read() -> None:
    original, part, later = blob(0, range(2)), blob(50, range(1), enqueued=-1), blob(100, range(2, 5))
    assert read([original, part, later])[1] == read([part, later])[1] == []


def test_without_enqueued_times_the_number_alone_decides() -> None:
    untimed = blob(0, range(5), UNRECORDED)
    assert read([untimed, Blob(5, untimed.events), blob(10, range(3))])[0] == [False] * 5 + [True] * 8
    assert read([untimed, blob(5, [7], UNRECORDED), blob(8, [5, 6], UNRECORDED)])[1] == []


def test_the_smallest_and_the_largest_long_are_numbers_like_any_other() -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    duplicates, missing = read([blob(0, [low, 0, high]), blob(5, [low, high], -1)])
    assert duplicates == [False, False, False, True, True]
    assert missing == [(low + 1, -1), (1, high - 1)]


def test_ranges_without_the_numbers_of_other_ranges() -> None:
    ranges = Ranges.of(np.array([1, 2, 3, 7, 8, 20]))
    left = ranges.without(Ranges.of(np.array([0, 2, 8, 9, 20])))
    assert list(zip(left.first.tolist(), left.last.tolist(), strict=True)) == [(1, 1), (3, 3), (7, 7)]


def test_many_numbers_are_remembered_as_few_ranges_and_only_for_an_hour() -> None:
    numbers = SequenceNumbers()
    for minute in range(0, 600, 5):
        arrival = np.full(10_000, ticks(minute))
        numbers.observe(np.arange(minute * 2000, minute * 2000 + 10_000), arrival, arrival, arrival)
    remembered = sum(len(arrived.ranges) for arrived in numbers._arrived)
    assert remembered <= (DUPLICATE_HORIZON + MAX_CLOCK_SKEW) // (5 * MINUTE) + 1


# Against a naive reader


@st.composite
def archives(draw: st.DrawFn, minutes: tuple[int, ...] = (0, 1, 5, 5, 5, 20, 61)) -> list[Blob]:
    """Draw blobs in arrival order, of a hub that loses, delays and recaptures events, and is recreated."""
    minute, number = 0, draw(st.integers(0, 50))
    blobs: list[Blob] = []
    for _ in range(draw(st.integers(1, 25))):
        minute += draw(st.sampled_from(minutes))
        match draw(st.sampled_from(["goes on", "goes on", "goes on", "skips", "copies", "part", "anew", "empty"])):
            case "skips":
                number += draw(st.integers(1, 9))
            case "anew" if minute > 0:
                number = draw(st.integers(0, 9))
                minute += 7
            case "copies" if blobs:
                blobs.append(Blob(minute, draw(st.sampled_from(blobs)).events))
                continue
            case "part" if blobs:
                events = draw(st.sampled_from(blobs)).events
                blobs.append(Blob(minute, events[len(events) // 2 :]))
                continue
            case "empty":
                blobs.append(Blob(minute, ()))
                continue
        count = draw(st.integers(1, 12))
        blobs.append(Blob(minute, tuple((number + n, minute - 1) for n in range(count))))
        number += count
    if len(blobs) > 2 and draw(st.booleans()):
        place = draw(st.integers(0, len(blobs) - 2))
        blobs.append(Blob(minute + 2, blobs.pop(place).events))
    return in_arrival_order(blobs)


def in_arrival_order(blobs: list[Blob]) -> list[Blob]:
    """Return one blob for each arrival, with its events sorted by number."""
    together: dict[int, list[tuple[int, int]]] = {}
    for blob in blobs:
        together.setdefault(blob.arrival, []).extend(blob.events)
    return [Blob(arrival, tuple(sorted(events))) for arrival, events in together.items()]


def naive_duplicates(blobs: list[Blob]) -> list[bool]:
    """Return which events have the number and enqueued time of one that arrived within the hour before."""
    arrived: list[tuple[int, int, int]] = []
    duplicates = []
    for blob in blobs:
        for number, enqueued in blob.events:
            duplicates.append(any((n, e) == (number, enqueued) and blob.arrival - a <= 60 for n, e, a in arrived))
            arrived.append((number, enqueued, blob.arrival))
    return duplicates


@given(blobs=archives(), chunk=st.integers(1, 9))
def test_the_duplicates_are_those_of_a_naive_reader(blobs: list[Blob], chunk: int) -> None:
    assert read(blobs, chunk)[0] == naive_duplicates(blobs)


@given(blobs=archives(), first=st.integers(1, 9), second=st.integers(1, 9))
def test_duplicates_and_gaps_do_not_depend_on_the_chunks(blobs: list[Blob], first: int, second: int) -> None:
    assert read(blobs, first) == read(blobs, second)


@given(blobs=archives(minutes=(0, 1, 2, 5)))
def test_within_an_hour_the_missing_numbers_are_those_that_never_arrived(blobs: list[Blob]) -> None:
    events = sorted({event for blob in blobs for event in blob.events})
    times = [enqueued for _, enqueued in events]
    assume(
        events and times == sorted(times)
    )  # the hub was never recreated, or its new numbers are not below the old ones
    assume(blobs[-1].arrival - blobs[0].arrival <= 60 and max(times) - min(times) <= 60)
    numbers = {number for number, _ in events}
    lost = set(range(min(numbers), max(numbers))) - numbers
    reported = {number for first, last in read(blobs)[1] for number in range(first, last + 1)}
    assert reported <= lost
    if min(numbers) in {number for number, _ in blobs[0].events}:
        assert reported == lost
