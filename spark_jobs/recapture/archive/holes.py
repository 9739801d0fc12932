"""Tell what is missing from an archive, from its pauses and from the sequence numbers of its partitions.

`archive.number_chain` says where the numbers jump.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Literal

from recapture.archive.definitions import InputDefinition
from recapture.archive.listing import FAR
from recapture.archive.number_chain import Chain, Jump, Numbers, Placed, SliceNumbers, or_default
from recapture.archive.pauses import Pause, within
from recapture.time_model.slices import DUPLICATE_HORIZON, Slice
from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND

MAX_HOLES = 20
"""Number of holes that a report lists."""


class Kind(StrEnum):
    """What is known about a hole."""

    LOST = "lost"
    """Sequence numbers are missing: the archive lacks these events."""
    UNKNOWN = "unknown"
    """Blobs are missing, and it is not known whether they held events."""
    RECREATED = "recreated"
    """The numbers start again: the hub was recreated. The last events of the old hub may be missing."""
    BEGINS = "begins"
    """The partition's first blob: no earlier event is missing, or it is not known whether one is."""
    DISPLACED = "displaced"
    """Blobs exist, but were written in another slice, so their events count there."""
    SILENT = "silent"
    """No blob of the input arrived in a slice, none had to, and it is not known whether events are missing."""
    QUIET = "quiet"
    """The same for one partition, while blobs of others arrived."""
    PAUSED = "paused"
    """Blobs are missing, but the sequence numbers continue: no event is missing."""


@dataclass(frozen=True)
class Hole:
    """Something that is missing from a partition, or may be."""

    kind: Kind
    input: str
    partition: str
    slice_start: int
    """Start of the slice that has the next arrival after the hole, in ticks."""
    events: int | None = None
    """Number of missing events; None if it is not known."""
    blobs: int = 0
    """Number of intervals without the blob that they must have."""
    first: int | None = None
    """First missing number; or first number of a hub or of a partition that begins. None if it is not known."""
    last: int | None = None
    start: int | None = None
    """Time after which something is missing, in ticks; None if it is not known."""
    end: int | None = None
    """Time up to which something is missing, in ticks; None if it is not known."""
    sequence_partition: int | None = None
    """Partition that gives the numbers, if several share the blobs."""
    in_run: bool = True
    """Whether the hole lies in the slices of the run; otherwise only next to them, in what their rows depend on."""
    written: int | None = None
    """Time at which the first of the displaced blobs was written, in ticks."""
    is_whole: bool = False
    """Whether the partition has no other blob in the slice than displaced ones."""
    from_hub: bool = True
    """Whether a hub gave the events to the archive, so that it may still hold them."""

    @property
    def severity(self) -> Literal["critical", "warning", "info"]:
        """How much the hole matters.

        It is critical if the run lacks events or, for an unknown reason, blobs; info if no event is missing, or if it
        is usual that a partition is quiet.
        """
        if self.kind in (Kind.LOST, Kind.UNKNOWN):
            return "critical" if self.in_run else "warning"
        if self.kind is Kind.DISPLACED:
            return "critical" if self.is_whole else "warning"
        return "info" if self.events == 0 or self.kind is Kind.QUIET else "warning"


@dataclass(frozen=True)
class Partition:
    """What the archive and the publications say about one partition of an input."""

    name: str
    slices: Sequence[SliceNumbers]
    """Numbers that arrived in the run's slices, in order of time."""
    before: Sequence[SliceNumbers] = ()
    """Numbers of the published slices right before the run, in order of time."""
    after: Sequence[SliceNumbers] = ()
    """Numbers of the published slices right after the run, in order of time."""
    pauses: Sequence[Pause] = ()
    silent: Sequence[Slice] = ()
    """Slices of the run in which no blob of the input arrived, although none had to."""
    quiet: Sequence[Slice] = ()
    """Slices of the run in which blobs of the input arrived, but none of this partition, although none had to."""
    gaps: Collection[tuple[int, int]] = ()
    """First and last missing numbers of gaps that SequenceGaps counts; these are not reported again."""
    more_gaps_in: Collection[Slice] = ()
    """Slices that have more gaps than `gaps` lists."""
    sequence_partition: int | None = None
    """Partition that gives the numbers, if several share the blobs."""
    modulus: int | None = None
    """Number of numbers after which they start again at 0; None if they never do."""

    @property
    def begins_at(self) -> int:
        """Time in the name of the first blob, in ticks; 0 if blobs were there before, and LARGEST if there is none."""
        first = next((pause for pause in self.pauses if pause.before is None), None)
        return 0 if first is None else or_default(first.after, LARGEST)


def find_holes(definition: InputDefinition, partitions: Sequence[Partition]) -> list[Hole]:
    """Return what is missing from the partitions of an input, or may be, by partition and time."""
    begins = [partition.begins_at for partition in partitions]
    return [hole for partition in partitions for hole in _Finder(definition, partition, min(begins, default=0)).holes()]


def _add(holes: list[Hole], hole: Hole) -> None:
    """Add a hole around no missing numbers, or make it one with the last hole."""
    last = holes[-1] if holes else None
    if (
        last is not None
        and last.end is not None
        and hole.start is not None
        and hole.start - last.end < TICKS_PER_SECOND
        and (last.kind, last.first, last.last) == (hole.kind, hole.first, hole.last)
    ):
        holes[-1] = _with_next(last, hole)
    else:
        holes.append(hole)


def _with_next(hole: Hole, following: Hole) -> Hole:
    in_run = hole.in_run or following.in_run
    return replace(hole, blobs=hole.blobs + following.blobs, end=following.end, in_run=in_run)


@dataclass(frozen=True)
class _Finder:
    """Finds the holes of one partition."""

    definition: InputDefinition
    partition: Partition
    input_begins_at: int
    """Time in the name of the first blob of any partition, in ticks; see `Partition.begins_at`."""

    def holes(self) -> list[Hole]:
        chain = Chain.of(
            [*self.partition.before, *self.partition.slices, *self.partition.after], self.partition.modulus
        )
        holes: list[Hole] = []
        by_jump: dict[int, int] = {}
        """Index in `holes` of the hole that has a jump, by the index of the jump."""
        for pause in self._parts():
            before, after, jump = chain.at((pause.start + pause.end) // 2)
            hole = self._of_pause(pause, before, after, jump)
            number = None if jump is None else chain.jumps.index(jump)
            if hole is None:
                continue
            if number in by_jump:
                holes[by_jump[number]] = _with_next(holes[by_jump[number]], hole)
            elif number is None:
                _add(holes, hole)
            else:
                by_jump[number] = len(holes)
                holes.append(hole)
        holes += self._blobless(chain, Kind.SILENT, self.partition.silent)
        holes += self._blobless(chain, Kind.QUIET, self.partition.quiet)
        others = (jump for number, jump in enumerate(chain.jumps) if number not in by_jump)
        holes += [self._of_jump(jump) for jump in others if self._is_reported(jump)]
        return sorted(holes, key=lambda hole: (or_default(hole.start, hole.slice_start), hole.kind))

    def _blobless(self, chain: Chain, kind: Kind, slices: Sequence[Slice]) -> list[Hole]:
        """Return the slices without a blob across which no numbers continue; successive ones are one hole."""
        holes: list[Hole] = []
        for slice_ in slices:
            before, after, _ = chain.at((slice_.start + slice_.end) // 2)
            if before is not None and after is not None:
                continue
            _add(holes, self._hole(kind, slice_.start, start=slice_.start, end=slice_.end))
        return holes

    @property
    def _own(self) -> Slice:
        return Slice(self.partition.slices[0].slice.start, self.partition.slices[-1].slice.end)

    def _parts(self) -> Iterator[Pause]:
        """Yield the pauses, divided at the bounds of the run: within them, its own numbers tell."""
        bounds = [0, self._own.start, self._own.end, LARGEST]
        for pause in self.partition.pauses:
            for first, last in pairwise(bounds):
                yield from within(pause, self.definition, first, last)

    def _of_pause(self, pause: Pause, before: Placed | None, after: Placed | None, jump: Jump | None) -> Hole | None:
        """Return what a pause is; None if nothing is to be said about it."""
        in_run = self._own.start < self.definition.last_arrival(pause.end) <= self._own.end
        bounds = {"start": pause.start, "end": pause.end}
        hole = self._hole(Kind.UNKNOWN, self._slice_of(pause), blobs=pause.blobs, in_run=in_run, **bounds)
        if before is not None and before is after:
            return replace(hole, kind=Kind.PAUSED, events=0) if hole.in_run else None
        if jump is not None:
            lost = self._of_jump(jump)
            return replace(hole, kind=lost.kind, events=lost.events, first=lost.first, last=lost.last)
        if before is not None or pause.before is not None:
            return hole
        first = None if after is None else after.numbers.first
        begins = replace(hole, kind=Kind.BEGINS, first=first, events=0 if first == 0 else None)
        if first == 0 or (pause.after is not None and self._begins_with_input(pause.after)):
            return begins if pause.end > self._own.start else None
        return replace(hole, last=None if first is None else first - 1)

    def _begins_with_input(self, begin: int) -> bool:
        """Return whether a partition begins in the run, and no other one begins an interval before it."""
        is_read = self.definition.last_arrival(begin) <= self._own.end
        return is_read and begin - self.input_begins_at < self.definition.interval

    def _hole(self, kind: Kind, slice_start: int, **fields: Any) -> Hole:
        alias, giver = self.definition.alias, self.partition.sequence_partition
        hole = Hole(kind, alias, self.partition.name, slice_start, sequence_partition=giver, **fields)
        return replace(hole, from_hub=self.definition.names.on_schedule)

    def _of_jump(self, jump: Jump) -> Hole:
        before, after = jump.before.numbers, jump.after.numbers
        own = [slice_numbers.slice for slice_numbers in self.partition.slices]
        slice_start = min(max(jump.after.slice, own[0]), own[-1]).start
        bounds = {"start": before.enqueued_until, "end": after.enqueued}
        hole = self._hole(Kind.RECREATED, slice_start, first=after.first, **bounds)
        if jump.recreated:
            return hole
        missing = range(before.last + 1, after.first)
        in_run = jump.before.last_slice >= own[0] or not self._begins_with(own[0], after)
        return replace(hole, kind=Kind.LOST, events=len(missing), first=missing[0], last=missing[-1], in_run=in_run)

    def _begins_with(self, slice_: Slice, numbers: Numbers) -> bool:
        """Return whether these are the first events that a slice can have, so that what is missing lies before it."""
        latest = slice_.start + (self.definition.interval if self.definition.by_enqueued_time else 0)
        return numbers.enqueued is not None and numbers.enqueued <= latest

    def _is_reported(self, jump: Jump) -> bool:
        """Return whether a jump is a hole of the run that nothing else reports."""
        own = [slice_numbers.slice for slice_numbers in self.partition.slices]
        if jump.after.slice < own[0] or jump.before.last_slice > own[-1]:
            return False
        if self._is_counted(jump):
            return False
        return bool(self.partition.before) or not self._is_old(jump.before)

    def _is_counted(self, jump: Jump) -> bool:
        """Return whether SequenceGaps counts a jump."""
        if jump.recreated:
            return False
        if (jump.before.numbers.last + 1, jump.after.numbers.first - 1) in self.partition.gaps:
            return True
        since, until = jump.before.numbers.enqueued_until, jump.after.numbers.enqueued
        is_short = since is not None and until is not None and until - since < DUPLICATE_HORIZON
        return is_short and jump.after.slice in self.partition.more_gaps_in

    def _is_old(self, placed: Placed) -> bool:
        """Return whether events were enqueued long before their slice, so that they may be copies of earlier ones."""
        until, start = placed.numbers.enqueued_until, placed.slice.start
        return until is not None and until < start - self.definition.interval - FAR

    def _slice_of(self, pause: Pause) -> int:
        arrival = self.definition.last_arrival(pause.ends[0])
        own = [slice_numbers.slice for slice_numbers in self.partition.slices]
        return next((slice_.start for slice_ in own if arrival <= slice_.end), own[-1].start)
