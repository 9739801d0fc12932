"""What is missing from an archive, by section 5.3 of the time model alone: slow, and plain enough to be checked by eye.

Times are minutes. The archive is read by LastModified, and each partition numbers its own events.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

HOUR = 60
EARLY = 5


@dataclass(frozen=True)
class Event:
    """An event that a hub numbered."""

    number: int
    enqueued: float


@dataclass(frozen=True)
class Blob:
    """A blob that Capture wrote for one interval of one partition."""

    partition: str
    opened: float
    """Start of its interval: the time in its name."""
    arrival: float
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Archive:
    """The blobs of an input, and what is promised about them."""

    interval: float
    empty_blobs: bool
    late: float
    """Late tolerance."""
    look_back: float
    """How far the query's windows look back."""
    blobs: tuple[Blob, ...]


@dataclass(frozen=True)
class Arrived:
    """Events of a partition that arrived in one slice, as the archive or a publication has them."""

    slice: tuple[float, float]
    events: tuple[Event, ...]
    arrivals: tuple[float, ...]
    opened: tuple[float, ...]
    """Names of the blobs that hold the events: one for each event."""


@dataclass(frozen=True)
class Found:
    """A hole that has to be named."""

    kind: str
    partition: str
    first: int | None = None
    """First missing number; or the first number of a new hub or of a partition that begins."""
    last: int | None = None
    blobs: tuple[int, int] = (0, 0)
    """Least and largest number of missing blobs that may be named."""
    severities: frozenset[str] = frozenset({"critical"})
    """Severities that the section allows: several if nothing tells in which slice the missing events would be."""
    need_not_be_named: bool = False
    """Whether SequenceGaps may count it instead, because the events around it are an hour apart, to the minute; or
    whether it is before the run, where an archive may begin; or whether it is next to the run, and publications know
    numbers of the missing blobs themselves."""


def arrived(blobs: Iterable[Blob], partition: str, slices: Iterable[tuple[float, float]]) -> list[Arrived]:
    """Return what arrived of a partition in each slice."""
    return [
        Arrived(
            (start, end),
            tuple(event for blob in inside for event in blob.events),
            tuple(blob.arrival for blob in inside for _ in blob.events),
            tuple(blob.opened for blob in inside for _ in blob.events),
        )
        for start, end in slices
        for inside in [[blob for blob in blobs if blob.partition == partition and start < blob.arrival <= end]]
    ]


@dataclass(frozen=True)
class _Seen:
    number: int
    enqueued: float
    arrival: float
    opened: float

    def is_in(self, archive: Archive, partition: str) -> bool:
        """Return whether the archive still has the event."""
        return any(
            (blob.partition, blob.opened) == (partition, self.opened) and blob.arrival == self.arrival
            for blob in archive.blobs
        )


def holes(
    archive: Archive,
    partitions: Sequence[str],
    run: tuple[float, float],
    published: Mapping[str, Sequence[Arrived]],
) -> list[Found]:
    """Return the holes that a run of the slices of an hour in `run` has to name, in no order.

    `published` has what the published slices that follow the run without a break, or that it follows, have read of
    each partition.
    """
    return [
        hole
        for partition in partitions
        for hole in _Partition(archive, partitions, run, partition, published.get(partition, ())).holes()
    ]


@dataclass(frozen=True)
class _Partition:
    archive: Archive
    partitions: Sequence[str]
    run: tuple[float, float]
    name: str
    published: Sequence[Arrived]

    @property
    def first_needed(self) -> float:
        """Earliest arrival on which the rows depend (section 3)."""
        return self.run[0] - EARLY - self.archive.look_back

    @property
    def last_needed(self) -> float:
        return self.run[1] + self.archive.late

    def holes(self) -> list[Found]:
        missing = self.missing_intervals()
        found: list[Found] = []
        for before, after in self.number_holes():
            inside = [opened for opened in missing if before.opened < opened < after.opened]
            missing = [opened for opened in missing if opened not in inside]
            hole = self.numbers_missing(before, after, inside)
            if hole is not None:
                found.append(hole)
        seen = self.chain()
        for pause in self.pauses(missing):
            has_before = any(event.opened < pause[0] for event in seen)
            if not (has_before and any(event.opened > pause[-1] for event in seen)):
                hole = self.open_pause(pause, seen)
                is_known = any(event.opened in pause for event in seen)
                outside = hole.blobs[0] == 0
                found.append(replace(hole, need_not_be_named=hole.need_not_be_named or (is_known and outside)))
        if not self.archive.empty_blobs:
            found += self.silences(seen)
        return found

    # Names

    def times(self, partition: str) -> list[float]:
        return sorted(blob.opened for blob in self.archive.blobs if blob.partition == partition)

    def missing_intervals(self) -> list[float]:
        """Return the starts of the intervals that must have a blob on which the rows depend, and have none."""
        if not self.archive.empty_blobs:
            return []
        interval, times = self.archive.interval, self.times(self.name)
        first, last = self.first_needed - interval, self.last_needed - interval
        return [
            interval * n
            for n in range(math.ceil(first / interval), math.floor(last / interval) + 1)
            if all(abs(interval * n - time) >= interval / 2 for time in times)
        ]

    def pauses(self, intervals: Sequence[float]) -> list[list[float]]:
        """Return the intervals that follow each other, together."""
        pauses: list[list[float]] = []
        for opened in intervals:
            if pauses and opened == pauses[-1][-1] + self.archive.interval:
                pauses[-1].append(opened)
            else:
                pauses.append([opened])
        return pauses

    def open_pause(self, pause: list[float], seen: list[_Seen]) -> Found:
        """Return the hole of missing blobs of which a side has no known number."""
        unknown = Found("unknown", self.name, None, None, self.count(pause), self.severity_of_intervals(pause))
        earlier = any(time < pause[0] for time in self.times(self.name)) or any(
            event.opened < pause[0] for event in seen
        )
        if earlier:
            return unknown
        outside = unknown.blobs[0] == 0
        following = [event for event in seen if event.opened > pause[-1]]
        first = min(following, key=lambda event: event.opened).number if following else None
        if first == 0:
            return replace(unknown, kind="begins", first=0, severities=frozenset({"info"}), need_not_be_named=outside)
        others = [time for other in self.partitions if other != self.name for time in self.times(other)]
        begins_last = not any(time < pause[-1] + self.archive.interval / 2 for time in others)
        begins_here = any(blob.partition == self.name and blob.arrival <= self.run[1] for blob in self.archive.blobs)
        if begins_last and begins_here:
            severities = frozenset({"warning"})
            return replace(unknown, kind="begins", first=first, severities=severities, need_not_be_named=outside)
        return unknown if first is None else replace(unknown, last=first - 1)

    def count(self, pause: Iterable[float]) -> tuple[int, int]:
        """Return how many blobs are missing in the run, and in all that its rows depend on."""
        ends = [opened + self.archive.interval for opened in pause]
        return sum(self.run[0] < end < self.run[1] for end in ends), len(ends)

    def severity_of_intervals(self, pause: Iterable[float]) -> frozenset[str]:
        """Return critical if a missing blob would have arrived in the run, and warning if all are next to it."""
        ends = [opened + self.archive.interval for opened in pause]
        start, end = self.run
        if any(start < time < end for time in ends):
            return frozenset({"critical"})
        if any(time in (start, end) for time in ends):
            return frozenset({"critical", "warning"})
        return frozenset({"warning"})

    # Sequence numbers

    def chain(self) -> list[_Seen]:
        """Return all events that are known, in the order in which they were enqueued."""
        slices = [(self.run[0] + HOUR * n, self.run[0] + HOUR * (n + 1)) for n in range(self.hours)]
        everything = [*self.published, *arrived(self.archive.blobs, self.name, slices)]
        return sorted(
            (
                _Seen(event.number, event.enqueued, arrival, opened)
                for slice_events in everything
                for event, arrival, opened in zip(
                    slice_events.events, slice_events.arrivals, slice_events.opened, strict=True
                )
            ),
            key=lambda event: (event.enqueued, event.number),
        )

    @property
    def hours(self) -> int:
        return round((self.run[1] - self.run[0]) / HOUR)

    def generations(self) -> list[list[_Seen]]:
        """Return the events of each hub: numbers that are not higher, and later by more than the clocks, are new."""
        generations: list[list[_Seen]] = []
        for event in self.chain():
            if not generations or (event.number <= generations[-1][-1].number):
                generations.append([])
            generations[-1].append(event)
        return generations

    def number_holes(self) -> list[tuple[_Seen, _Seen]]:
        """Return the two events around each range of missing numbers, and around each change of the hub."""
        generations = self.generations()
        within = [
            (before, after)
            for generation in generations
            for before, after in pairwise(generation)
            if after.number > before.number + 1
        ]
        return within + [(old[-1], new[0]) for old, new in pairwise(generations)]

    def numbers_missing(self, before: _Seen, after: _Seen, intervals: Sequence[float]) -> Found | None:
        start, end = self.run
        if after.arrival <= start or before.arrival > end:
            return None  # inside the neighbours
        possible = self.severity_of_numbers(before, after, intervals)
        if after.number <= before.number:
            return Found("recreated", self.name, after.number, None, (len(intervals),) * 2, frozenset({"warning"}))
        distance = after.arrival - before.arrival
        is_read = before.is_in(self.archive, self.name)
        counted = is_read and start < after.arrival <= end and not intervals
        if counted and distance < HOUR - 1:
            return None
        return Found(
            "lost",
            self.name,
            before.number + 1,
            after.number - 1,
            (len(intervals),) * 2,
            possible,
            need_not_be_named=counted and distance < HOUR + 1,
        )

    def severity_of_numbers(self, before: _Seen, after: _Seen, intervals: Sequence[float]) -> frozenset[str]:
        """Return the severities of missing events that arrived after one event and before another."""
        if intervals:
            return self.severity_of_intervals(intervals)
        start, end = self.run
        if before.arrival > start and after.arrival <= end:
            return frozenset({"critical"})
        return frozenset({"critical", "warning"})

    def silences(self, seen: list[_Seen]) -> list[Found]:
        """Return the slices in which no blob arrived, of the input or of the partition, and no numbers go across."""
        kinds = []
        for n in range(self.hours):
            start, end = self.run[0] + HOUR * n, self.run[0] + HOUR * (n + 1)
            blobs = [blob.partition for blob in self.archive.blobs if start < blob.arrival <= end]
            goes_across = any(event.arrival <= start for event in seen) and any(event.arrival > end for event in seen)
            is_named = self.name not in blobs and not goes_across
            kinds.append(("quiet" if blobs else "silent") if is_named else None)
        runs = [kind for kind, _ in itertools.groupby(kinds)]
        severities = {"quiet": frozenset({"info"}), "silent": frozenset({"warning"})}
        return [Found(kind, self.name, severities=severities[kind]) for kind in runs if kind is not None]
