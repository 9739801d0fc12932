"""Find the intervals that must have a blob and have none.

If Capture writes empty blobs, every interval of every partition has a blob. The times in the names show where one is
missing:

    interval 5 min     10:00  10:05                10:25  10:30
    missing                          10:10 to 10:25              3 blobs

Whether events are missing, too, is another question: the sequence numbers before and after the pause answer it (see
`recapture.archive.holes`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recapture.archive.definitions import InputDefinition
from recapture.time_model.slices import Slice

_MISSING_FROM = 1.5
"""Time between two successive names, in intervals, from which a blob is missing between them.

Capture writes a blob some seconds early or late.
"""


@dataclass(frozen=True, slots=True)
class Pause:
    """Successive intervals of a partition that have no blob."""

    partition: str
    start: int
    """Start of the first of these intervals, in ticks."""
    end: int
    """End of the last of these intervals, in ticks."""
    blobs: int
    """Number of these intervals."""
    before: int | None
    """Time in the name of the last blob before the pause, in ticks; None if none is listed."""
    after: int | None
    """Time in the name of the first blob after the pause, in ticks; None if none is listed."""

    @property
    def ends(self) -> list[int]:
        """Ends of the intervals, in ticks."""
        length = (self.end - self.start) / self.blobs
        return [self.start + round(length * number) for number in range(1, self.blobs + 1)]


def pauses(
    definition: InputDefinition,
    partitions: Iterable[str],
    name_times: Mapping[str, Sequence[int]],
    first: int,
    last: int,
) -> Iterator[Pause]:
    """Yield the pauses of these partitions, as far as their last arrivals would lie in (first, last]; both in ticks.

    `name_times` has the times in the names of each partition's listed blobs, in any order.
    """
    if not definition.has_blob_in_each_interval:
        return
    for partition in partitions:
        times = sorted(set(name_times.get(partition, ())))
        for pause in _of_partition(partition, times, definition.interval, first, last):
            yield from within(pause, definition, first, last)


def missing_blobs(definition: InputDefinition, pause: Pause, slice_: Slice) -> int:
    """Return how many of a pause's blobs would have had their last arrivals in a slice."""
    return sum(slice_.start < definition.last_arrival(end) <= slice_.end for end in pause.ends)


def within(pause: Pause, definition: InputDefinition, first: int, last: int) -> Iterator[Pause]:
    """Yield the part of a pause whose last arrivals would lie in (first, last], in ticks; nothing if there is none."""
    ends = [end for end in pause.ends if first < definition.last_arrival(end) <= last]
    if ends:
        length = (pause.end - pause.start) // pause.blobs
        start = max(pause.start, ends[0] - length)
        yield Pause(pause.partition, start, ends[-1], len(ends), pause.before, pause.after)


def _of_partition(partition: str, times: Sequence[int], interval: int, first: int, last: int) -> Iterator[Pause]:
    """Yield the pauses of a partition, whose blobs have these times in their names, in ascending order.

    A pause without a blob before or after it reaches to the end of the range or some intervals beyond it.
    """
    if not times:
        yield from _open_pause(partition, first - interval, last, interval)
        return
    yield from _open_pause(partition, first - 2 * interval, times[0], interval, after=times[0])
    for before, after in pairwise(times):
        if after - before >= _MISSING_FROM * interval:
            blobs = round((after - before) / interval) - 1
            yield Pause(partition, before + (after - before) // (blobs + 1), after, blobs, before, after)
    start = times[-1] + interval
    start += max(0, (first - start) // interval - 1) * interval
    yield from _open_pause(partition, start, last, interval, before=times[-1])


def _open_pause(
    partition: str, start: int, end: int, interval: int, before: int | None = None, after: int | None = None
) -> Iterator[Pause]:
    """Yield the pause of the whole intervals between two times, counted from the blob next to it; or nothing."""
    blobs = (end - start) // interval
    if blobs > 0:
        length = blobs * interval
        start, end = (start, start + length) if after is None else (end - length, end)
        yield Pause(partition, start, end, blobs, before, after)
