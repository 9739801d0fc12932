"""The rules that choose the events of a profile's sample.

Each rule gives a value to the events that it applies to, and chooses some with the largest values. Of equal values, the
one with the largest rank comes first, and of equal ranks, the event that arrived first. So the leaders of two sets of
events are among the leaders of each set.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.ordering.tallies import BEFORE_ALL
from recapture.process.compilation import compiled, frozen, inlined
from recapture.time_model.verdicts import Verdict


class Rules(NamedTuple):
    """The rules by number. Compiled code takes it as an argument: Numba compiles a function for each constant."""

    slice_start: int
    """Start of the slice in ticks, exclusive."""
    part_length: int
    """Length of the equal parts of the slice in ticks."""
    late: int = 0
    """Arrival less application time."""
    early: int = 1
    """Application time less arrival."""
    lead: int = 2
    """System.Timestamp less arrival, of processed events."""
    behind: int = 3
    """Disorder, if it is not 0."""
    first_verdict: int = 4
    """First of the rules for the verdicts: the rank."""
    first_part: int = 4 + len(Verdict)
    """First of the rules for the parts: the System.Timestamp of processed events that arrived in the part."""


class RankedEvents(NamedTuple):
    """What the rules look at: arrays with one entry per event, in arrival order; times are ticks."""

    rank: NDArray[np.int64]
    """A number, 0 or more, that looks random and belongs to the event."""
    verdict: NDArray[np.int8]
    time: NDArray[np.int64]
    """Application time; meaningful if `has_time`."""
    has_time: NDArray[np.bool_]
    arrival: NDArray[np.int64]
    system_timestamp: NDArray[np.int64]
    """System.Timestamp; meaningful if the event was processed."""
    behind: NDArray[np.int64]
    """Disorder."""

    def at(self, rows: NDArray[np.intp]) -> "RankedEvents":
        """Return the events at these rows."""
        return RankedEvents._make(frozen(values[rows]) for values in self)

    def followed_by(self, others: "RankedEvents") -> "RankedEvents":
        """Return these events and then the others."""
        first: tuple[NDArray[Any], ...] = self
        second: tuple[NDArray[Any], ...] = others
        return RankedEvents._make(frozen(np.concatenate(columns)) for columns in zip(first, second, strict=True))


_NO_INT64, _NO_BOOL = frozen(np.empty(0, np.int64)), frozen(np.empty(0, np.bool_))
NO_EVENTS = RankedEvents(_NO_INT64, frozen(np.empty(0, np.int8)), _NO_INT64, _NO_BOOL, *[_NO_INT64] * 3)


class Leaders(NamedTuple):
    """The events that each rule has chosen so far, in no particular order; arrays with a row for each rule."""

    limits: NDArray[np.int64]
    """Number of events that a rule chooses, at least 1."""
    counts: NDArray[np.int64]
    """Number of events that a rule has chosen so far."""
    last: NDArray[np.int64]
    """Place of the event that comes last; meaningful if the rule has all its events."""
    floors: NDArray[np.int64]
    """Smallest value that may be chosen."""
    value: NDArray[np.int64]
    rank: NDArray[np.int64]
    number: NDArray[np.int64]
    """Number of the event."""

    @classmethod
    def none(cls, limits: Sequence[int], events: int) -> "Leaders":
        """Return rules that choose from this number of events."""
        rules, most = len(limits), min(max(limits), events)
        value, rank, number = np.zeros((3, rules, most), np.int64)
        counts, last = np.zeros((2, rules), np.int64)
        return cls(np.array(limits), counts, last, np.full(rules, BEFORE_ALL), value, rank, number)

    def numbers(self, rule: int | slice = slice(None)) -> NDArray[np.int64]:
        """Return the numbers of the events that some rules have chosen, ascending, each once."""
        places = np.arange(self.number.shape[1])
        return np.unique(self.number[rule][places < self.counts[rule, None]])


@compiled
def ranks(seeds: NDArray[np.uint64], blob: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of events, which follows from the seeds of their blobs and their numbers in them."""
    result = np.empty(len(number), np.int64)
    for event in range(len(number)):
        mixed = seeds[blob[event]] ^ np.uint64(number[event]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        result[event] = np.int64(mixed >> np.uint64(1))
    return result


@compiled
def offer_all(
    leaders: Leaders, events: RankedEvents, first_number: int, is_processed: NDArray[np.bool_], rules: Rules
) -> None:
    """Offer events, which have numbers from `first_number`, to all rules; `is_processed` has an entry per verdict."""
    floors, begin, end, part = leaders.floors, 0, 0, 0
    for event in range(len(events.rank)):
        number, rank, verdict = first_number + event, events.rank[event], events.verdict[event]
        arrival, behind = events.arrival[event], events.behind[event]
        if rank >= floors[rules.first_verdict + verdict]:
            offer(leaders, rules.first_verdict + verdict, rank, rank, number)
        if events.has_time[event]:
            late = arrival - events.time[event]
            if late >= floors[rules.late]:
                offer(leaders, rules.late, late, rank, number)
            if -late >= floors[rules.early]:
                offer(leaders, rules.early, -late, rank, number)
        if is_processed[verdict]:
            time = events.system_timestamp[event]
            if time - arrival >= floors[rules.lead]:
                offer(leaders, rules.lead, time - arrival, rank, number)
            if not begin < arrival <= end:
                part = (arrival - rules.slice_start - 1) // rules.part_length
                begin = rules.slice_start + part * rules.part_length
                end = begin + rules.part_length
            if time >= floors[rules.first_part + part]:
                offer(leaders, rules.first_part + part, time, rank, number)
        if behind != 0 and behind >= floors[rules.behind]:
            offer(leaders, rules.behind, behind, rank, number)


@inlined
def offer(leaders: Leaders, rule: int, value: int, rank: int, number: int) -> None:
    """Choose an event, whose value is not below the floor, unless a rule has all its events and they come before it.

    It has a larger number than those that were offered before.
    """
    values, ranks, numbers = leaders.value, leaders.rank, leaders.number
    place, limit = leaders.counts[rule], leaders.limits[rule]
    if place < limit:
        leaders.counts[rule] += 1
    else:
        place = leaders.last[rule]
        if value == values[rule, place] and rank <= ranks[rule, place]:
            return
    values[rule, place], ranks[rule, place], numbers[rule, place] = value, rank, number
    if leaders.counts[rule] < limit:
        return
    last, least = 0, values[rule, 0]
    for other in range(1, limit):
        value = values[rule, other]
        if value < least or (value == least and _is_later(leaders, rule, other, last)):
            last, least = other, value
    leaders.last[rule], leaders.floors[rule] = last, least


@inlined
def _is_later(leaders: Leaders, rule: int, place: int, other: int) -> bool:
    """Return whether an event comes after another one with the same value."""
    rank, other_rank = leaders.rank[rule, place], leaders.rank[rule, other]
    return rank < other_rank or (rank == other_rank and leaders.number[rule, place] > leaders.number[rule, other])
