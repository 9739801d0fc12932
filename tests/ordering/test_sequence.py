"""Duplicates and gaps by sequence number: chunk by chunk, the same as a naive reader finds."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recapture.archive.manifest import CLOCKS_APART
from recapture.formats.events import UNKNOWN
from recapture.ordering.sequence import Missing, Ranges, SequenceNumbers
from recapture.time_model.slices import REMEMBERED
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.worlds import TEN

UNTOLD = -999
"""An enqueued time that the file does not tell."""
MINUTE = from_seconds(60)
START = from_datetime(TEN)


@dataclass(frozen=True)
class Blob:
    """What arrived at once: its events' numbers and when these were enqueued, in minutes after ten."""

    arrival: int
    events: tuple[tuple[int, int], ...]


def blob(arrival: int, numbers: range | list[int], enqueued: int | None = None) -> Blob:
    """Enqueued a minute before the arrival, where nothing else is said."""
    when = arrival - 1 if enqueued is None else enqueued
    return Blob(arrival, tuple((number, when) for number in numbers))


def ticks(minutes: int) -> int:
    return START + minutes * MINUTE


def read(blobs: list[Blob], chunk: int = 1) -> tuple[list[bool], list[tuple[int, int]]]:
    """Which events are copies, and the ranges that are missing in the end, by their first number."""
    numbers = SequenceNumbers()
    copies: list[bool] = []
    missing: list[Missing] = []
    for begin in range(0, len(blobs), chunk):
        together = blobs[begin : begin + chunk]
        rows = [(n, b.arrival, e) for b in together for n, e in b.events]
        number = np.array([n for n, _, _ in rows], np.int64)
        arrival = np.array([ticks(a) for _, a, _ in rows], np.int64)
        enqueued = np.array([UNKNOWN if e == UNTOLD else ticks(e) for _, _, e in rows], np.int64)
        found, steps = numbers.read(number, arrival, arrival, enqueued)
        copies += found.tolist()
        for step in steps:
            if step.goes_back:
                missing = [each.without(number[step.rows], enqueued[step.rows]) for each in missing]
            if step.missing is not None:
                missing.append(step.missing)
    pairs = [
        pair for each in missing for pair in zip(each.ranges.first.tolist(), each.ranges.last.tolist(), strict=True)
    ]
    return copies, sorted(pairs)


def test_numbers_that_go_on_are_neither_copies_nor_gaps() -> None:
    assert read([blob(0, range(5)), blob(5, range(5, 9)), blob(10, [])]) == ([False] * 9, [])


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_blob_that_was_copied_is_of_copies(chunk: int) -> None:
    copied = blob(0, range(5))
    again = Blob(30, copied.events)
    assert read([copied, blob(5, range(5, 8)), again], chunk) == ([False] * 8 + [True] * 5, [])


def test_a_part_that_was_captured_again_is_of_copies() -> None:
    first = Blob(5, tuple((n, n // 2) for n in range(10)))
    again = Blob(10, tuple((n, n // 2) for n in range(6, 18)))
    assert read([first, again]) == ([False] * 10 + [True] * 4 + [False] * 8, [])


def test_a_number_twice_in_one_arrival_is_one_copy() -> None:
    assert read([blob(0, [1, 2, 2, 2, 3])]) == ([False, False, True, True, False], [])


def test_what_is_skipped_is_a_gap_within_a_blob_and_between_two() -> None:
    assert read([blob(0, [1, 2, 5]), blob(5, range(9, 12))]) == ([False] * 6, [(3, 4), (6, 8)])


def test_what_arrives_late_fills_its_gap_or_a_part_of_it() -> None:
    assert read([blob(0, [1]), blob(5, [9]), blob(10, [3, 4, 5], 1)])[1] == [(2, 2), (6, 8)]
    assert read([blob(0, [1]), blob(5, [9]), blob(10, range(2, 9), 1)]) == ([False] * 9, [])


@pytest.mark.parametrize("first", [0, 40])
def test_a_hub_created_anew_is_neither_copied_nor_missing_anything(first: int) -> None:
    """Its numbers begin again, its times go on; in its own numbers copies and gaps are found as before."""
    before = [blob(0, range(100)), blob(5, range(100, 200))]
    anew = [blob(10, range(first, first + 10)), blob(15, range(first + 12, first + 20))]
    copies, missing = read([*before, *anew, Blob(20, anew[0].events)])
    assert (sum(copies), copies[-10:]) == (10, [True] * 10)
    assert missing == [(first + 10, first + 11)]


def test_a_copy_from_before_the_hub_was_created_anew_is_one() -> None:
    before, anew = blob(0, range(100)), blob(10, range(50))
    assert read([before, anew, Blob(15, before.events)])[0] == [False] * 150 + [True] * 100


def test_a_copy_of_a_part_from_before_the_hub_was_created_anew_tells_no_gap() -> None:
    before, part = blob(0, range(3)), blob(1, range(1), enqueued=-1)
    assert read([before, part, blob(8, [2])]) == ([False] * 3 + [True, False], [])


def test_numbers_of_the_new_hub_do_not_fill_the_gaps_of_the_old() -> None:
    assert read([blob(0, [1, 2]), blob(5, [5, 6]), blob(30, range(9))])[1] == [(3, 4)]


def test_a_copy_of_a_copy_is_one_while_each_follows_within_the_hour() -> None:
    first = blob(0, range(3))
    assert read([first, Blob(50, first.events), Blob(100, first.events)])[0] == [False] * 3 + [True] * 6


@pytest.mark.parametrize(("minutes", "copied"), [(60, True), (61, False)])
def test_after_an_hour_a_copy_is_not_known(minutes: int, copied: bool) -> None:
    first = blob(0, range(3))
    between = [blob(minute, [minute]) for minute in range(5, minutes, 5)]
    assert read([first, *between, Blob(minutes, first.events)])[0][-3:] == [copied] * 3


def test_after_an_hour_without_events_nothing_is_said_of_a_gap() -> None:
    assert read([blob(0, [1]), blob(60, [5])])[1] == [(2, 4)]
    assert read([blob(0, [1]), blob(61, [5])])[1] == []


def test_a_copy_of_a_part_tells_no_gap_whether_its_original_is_read_or_not() -> None:
    original, part, later = blob(0, range(2)), blob(50, range(1), enqueued=-1), blob(100, range(2, 5))
    assert read([original, part, later])[1] == read([part, later])[1] == []


def test_where_a_file_tells_no_times_the_number_alone_decides() -> None:
    nameless = blob(0, range(5), UNTOLD)
    assert read([nameless, Blob(5, nameless.events), blob(10, range(3))])[0] == [False] * 5 + [True] * 8
    assert read([nameless, blob(5, [7], UNTOLD), blob(8, [5, 6], UNTOLD)])[1] == []


def test_numbers_at_the_ends_of_what_a_long_holds_are_numbers() -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    copies, missing = read([blob(0, [low, 0, high]), blob(5, [low, high], -1)])
    assert copies == [False, False, False, True, True]
    assert missing == [(low + 1, -1), (1, high - 1)]


def test_ranges_without_others() -> None:
    ranges = Ranges.of(np.array([1, 2, 3, 7, 8, 20]))
    left = ranges.without(Ranges.of(np.array([0, 2, 8, 9, 20])))
    assert list(zip(left.first.tolist(), left.last.tolist(), strict=True)) == [(1, 1), (3, 3), (7, 7)]


def test_many_numbers_are_kept_as_few_ranges_and_only_for_an_hour() -> None:
    numbers = SequenceNumbers()
    for minute in range(0, 600, 5):
        arrival = np.full(10_000, ticks(minute))
        numbers.read(np.arange(minute * 2000, minute * 2000 + 10_000), arrival, arrival, arrival)
    assert numbers.remembered <= (REMEMBERED + CLOCKS_APART) // (5 * MINUTE) + 1


# Against a naive reader


@st.composite
def archives(draw: st.DrawFn, minutes: tuple[int, ...] = (0, 1, 5, 5, 5, 20, 61)) -> list[Blob]:
    """Blobs in arrival order: of a hub that loses, captures again, delays, and is created anew."""
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
    """Blobs that arrived together are sorted by number as one."""
    together: dict[int, list[tuple[int, int]]] = {}
    for each in blobs:
        together.setdefault(each.arrival, []).extend(each.events)
    return [Blob(arrival, tuple(sorted(events))) for arrival, events in together.items()]


def naive_copies(blobs: list[Blob]) -> list[bool]:
    """An event is a copy where one of its number and time arrived within the hour before."""
    arrived: list[tuple[int, int, int]] = []
    copies = []
    for each in blobs:
        for number, enqueued in each.events:
            copies.append(any((n, e) == (number, enqueued) and each.arrival - a <= 60 for n, e, a in arrived))
            arrived.append((number, enqueued, each.arrival))
    return copies


@given(blobs=archives(), chunk=st.integers(1, 9))
def test_the_copies_are_those_of_a_naive_reader(blobs: list[Blob], chunk: int) -> None:
    assert read(blobs, chunk)[0] == naive_copies(blobs)


@given(blobs=archives(), chunk=st.integers(1, 9), other=st.integers(1, 9))
def test_neither_depends_on_the_chunks(blobs: list[Blob], chunk: int, other: int) -> None:
    assert read(blobs, chunk) == read(blobs, other)


@given(blobs=archives(minutes=(0, 1, 2, 5)))
def test_within_an_hour_missing_is_what_never_arrived(blobs: list[Blob]) -> None:
    events = sorted({event for each in blobs for event in each.events})
    times = [enqueued for _, enqueued in events]
    assume(events and times == sorted(times))  # never created anew, or above all that was lost
    assume(blobs[-1].arrival - blobs[0].arrival <= 60 and max(times) - min(times) <= 60)
    numbers = {number for number, _ in events}
    lost = set(range(min(numbers), max(numbers))) - numbers
    told = {number for first, last in read(blobs)[1] for number in range(first, last + 1)}
    assert told <= lost
    if min(numbers) in {number for number, _ in blobs[0].events}:
        assert told == lost
