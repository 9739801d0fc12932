"""Put the sequence numbers of a partition in order, over successive slices, and find where they jump.

The hub numbers the events of a partition one by one. So the numbers that arrived in successive slices form one range,
however long a pause was; a number between them that never arrived is an event that the archive lacks:

    slice      01:00          02:00    03:00    04:00
    numbers    1440 to 2880   none     none     5759 to 7199      2881 to 5758 are lost

A hub that was deleted and recreated starts its numbers again, while its times continue. Its numbers are compared with
each other only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.time_model.partition_metrics import ArrivedNumbers
from recapture.time_model.slices import Slice


@dataclass(frozen=True, slots=True)
class Numbers:
    """Successive sequence numbers that arrived in one slice."""

    first: int
    last: int
    enqueued: int | None
    """Earliest enqueued time of these events, in ticks; None if one of them is not known."""
    enqueued_until: int | None
    """Latest enqueued time of these events, in ticks; None if one of them is not known."""


@dataclass(frozen=True)
class SliceNumbers:
    """Numbers that arrived in a slice, of the events that one partition numbered."""

    slice: Slice
    numbers: tuple[Numbers, ...]

    @classmethod
    def of(cls, slice_: Slice, arrived: ArrivedNumbers) -> "SliceNumbers":
        return cls(
            slice_,
            tuple(
                Numbers(first, last, None if earliest < 0 else earliest, None if latest < 0 else latest)
                for first, last, earliest, latest in arrived.ranges
            ),
        )


@dataclass(frozen=True)
class Placed:
    """Successive numbers with the slices in which they arrived."""

    numbers: Numbers
    slice: Slice
    last_slice: Slice


@dataclass(frozen=True)
class Jump:
    """Two ranges of numbers between which others are missing, or the numbers start again."""

    before: Placed
    after: Placed
    recreated: bool


@dataclass(frozen=True)
class Chain:
    """The numbers of one partition over successive slices, in order, and where they jump."""

    placed: tuple[Placed, ...]
    """Ranges in the order in which the events were enqueued."""
    jumps: tuple[Jump, ...]

    @classmethod
    def of(cls, slices: Iterable[SliceNumbers], modulus: int | None = None) -> "Chain":
        """Return the chain of these slices; `modulus` is how many numbers there are before they start again at 0."""
        placed = [
            Placed(numbers, slice_numbers.slice, slice_numbers.slice)
            for slice_numbers in slices
            for numbers in slice_numbers.numbers
        ]
        ordered = sorted(
            placed, key=lambda item: (or_default(item.numbers.enqueued, item.slice.start), item.numbers.first)
        )
        jumps: list[Jump] = []
        ranges: list[Placed] = []
        for generation in _generations(ordered, modulus):
            merged = _merged(generation)
            if ranges:
                jumps.append(Jump(ranges[-1], merged[0], recreated=True))
            jumps += [Jump(before, after, recreated=False) for before, after in pairwise(merged)]
            ranges += merged
        return cls(tuple(ranges), tuple(jumps))

    def at(self, time: int) -> "tuple[Placed | None, Placed | None, Jump | None]":
        """Return the ranges before and after a time, which are the same if one goes on through it, and their jump.

        The time is in ticks. Ranges without enqueued times are passed over.
        """
        known = [item for item in self.placed if item.numbers.enqueued is not None]
        before = next((item for item in reversed(known) if or_default(item.numbers.enqueued, 0) <= time), None)
        after = next((item for item in known if or_default(item.numbers.enqueued_until, 0) >= time), None)
        jump = next((jump for jump in self.jumps if jump.before is before and jump.after is after), None)
        return before, after, jump


def or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def _generations(placed: Iterable[Placed], modulus: int | None) -> Iterator[list[Placed]]:
    """Yield the ranges of each hub that gave numbers, one after the other; `placed` are in order of enqueued times."""
    generation: list[Placed] = []
    highest = -1
    for item in placed:
        if generation and modulus is not None:
            item = _continued(item, highest, modulus)
        if any(_contradicts(item.numbers, earlier.numbers) for earlier in generation):
            yield generation
            generation, highest = [], -1
        generation.append(item)
        highest = max(highest, item.numbers.last)
    if generation:
        yield generation


def _continued(item: Placed, highest: int, modulus: int) -> Placed:
    """Return the range with the numbers nearest to the highest so far that are the same modulo `modulus`."""
    shift = round((highest + 1 - item.numbers.first) / modulus) * modulus
    numbers = replace(item.numbers, first=item.numbers.first + shift, last=item.numbers.last + shift)
    return replace(item, numbers=numbers)


def _contradicts(numbers: Numbers, earlier: Numbers) -> bool:
    """Return whether one hub cannot have given both, despite clock skew: numbers that are not higher came later."""
    if numbers.first > earlier.last or numbers.enqueued is None:
        return False
    bound = earlier.enqueued if earlier.first > numbers.last else earlier.enqueued_until
    return bound is not None and numbers.enqueued > bound + MAX_CLOCK_SKEW


def _merged(generation: Iterable[Placed]) -> list[Placed]:
    """Return the ranges of one hub in ascending order, those that touch or overlap as one."""
    merged: list[Placed] = []
    for item in sorted(generation, key=lambda item: (item.numbers.first, item.slice.start)):
        if merged and item.numbers.first <= merged[-1].numbers.last + 1:
            merged[-1] = _joined(merged[-1], item)
        else:
            merged.append(item)
    return merged


def _joined(lower: Placed, higher: Placed) -> Placed:
    """Return two ranges that touch or overlap as one; `lower` has the lower first number."""
    known = None not in (lower.numbers.enqueued, higher.numbers.enqueued)
    numbers = Numbers(
        lower.numbers.first,
        max(lower.numbers.last, higher.numbers.last),
        min(or_default(lower.numbers.enqueued, 0), or_default(higher.numbers.enqueued, 0)) if known else None,
        max(or_default(lower.numbers.enqueued_until, 0), or_default(higher.numbers.enqueued_until, 0))
        if known
        else None,
    )
    has_last = higher if higher.numbers.last >= lower.numbers.last else lower
    return Placed(numbers, lower.slice, has_last.last_slice)
