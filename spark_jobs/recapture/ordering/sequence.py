"""A partition's sequence numbers as they arrive: which stand there twice, and which never came.

The hub numbers the events of a partition one by one (capture format, the file). Only ranges of numbers are kept, and
only while a copy of them may follow: what is known of an event follows from the REMEMBERED before its arrival, so from
what is read for its slice, whatever else the task reads (time model, section 3).

A copy has the sequence number and the enqueued time of its event. A hub that was created anew gives out the same
numbers again, but at later times.
"""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recapture.archive.manifest import CLOCKS_APART
from recapture.formats.events import UNKNOWN
from recapture.time_model.slices import REMEMBERED
from recapture.time_model.ticks import LARGEST

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """Whole numbers, as ranges in ascending order that do not overlap; both ends belong to a range."""

    first: Numbers
    last: Numbers

    @classmethod
    def of(cls, numbers: Numbers, ends: NDArray[np.bool_] | None = None) -> "Ranges":
        """The ranges that ascending numbers form, which also end where `ends` says: one entry less than there are."""
        broken = np.diff(numbers) != 1
        places = np.flatnonzero(broken if ends is None else broken | ends)
        return cls(numbers[np.append(0, places + 1)], numbers[np.append(places, len(numbers) - 1)])

    def hold(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which of the numbers lie in a range."""
        return self.place(numbers) >= 0

    def place(self, numbers: Numbers) -> NDArray[np.intp]:
        """In which range each number lies; -1 for none."""
        if not len(self.first):
            return np.full(len(numbers), -1)
        place = np.searchsorted(self.first, numbers, side="right") - 1
        return np.where(numbers <= self.last[place], place, -1)

    def without(self, taken: "Ranges") -> "Ranges":
        edges = np.unique(np.concatenate([self.first, self.last + 1, taken.first, taken.last + 1]))
        first, last = edges[:-1], edges[1:] - 1
        left = self.hold(first) & ~taken.hold(first)
        return Ranges(first[left], last[left])


@dataclass(frozen=True)
class Missing:
    """Numbers that had not come when a higher one arrived."""

    ranges: Ranges
    enqueued: int
    """When the newest event around them was; they are older, up to the brokers' clocks."""
    entity: int | None = None
    """Whose numbers these are, where several partitions of an entity share the blobs."""

    def of(self, which: NDArray[np.bool_]) -> "Missing":
        """Some of the ranges."""
        return replace(self, ranges=Ranges(self.ranges.first[which], self.ranges.last[which]))

    def without(self, numbers: Numbers, enqueued: Numbers) -> "Missing":
        """What is still missing once these numbers, which ascend, have arrived."""
        came = numbers[enqueued <= self.enqueued + CLOCKS_APART]
        return replace(self, ranges=self.ranges.without(Ranges.of(came))) if len(came) else self


@dataclass(frozen=True)
class Step:
    """Events whose numbers ascend, of one blob or of several with the same arrival, without copies."""

    rows: NDArray[np.intp]
    """Where they stand in the chunk."""
    missing: Missing | None
    """What was skipped on the way up."""
    before: NDArray[np.intp]
    """Of each range that is missing, the row of the event that came instead."""
    goes_back: bool
    """Whether some of them may have been missed before."""
    entity: int | None = None
    """As in Missing."""


@dataclass
class _Seen:
    """Numbers that arrived together, copies included."""

    ranges: Ranges
    """Each of one enqueued time."""
    enqueued: Numbers
    """Of each range."""
    arrival: int
    """The newest."""
    superseded: bool = False
    """Whether the hub was created anew since: what follows does not continue them."""

    def highest(self, oldest: int) -> int | None:
        """Of those that were not enqueued before `oldest`: copies of older ones say nothing of what came meanwhile."""
        recent = (self.enqueued >= oldest) | (self.enqueued == UNKNOWN)
        return int(self.ranges.last[recent][-1]) if recent.any() else None


class SequenceNumbers:
    """What is remembered of the numbers of one partition, while its events are read in arrival order."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()
        self._highest = np.iinfo(np.int64).min

    def read(
        self, number: Numbers, group: Numbers, arrival: Numbers, enqueued: Numbers
    ) -> tuple[NDArray[np.bool_], list[Step]]:
        """Which events of a chunk are copies of ones that arrived before, and how the others' numbers follow.

        One entry for each event: `group` is its blob's arrival, `enqueued` a whole second or UNKNOWN; all in ticks.
        Within a group the events are sorted by number. Steps that miss nothing and bring nothing back are left out.
        """
        copies = np.zeros(len(number), bool)
        if not len(number):
            return copies, []
        while self._seen and self._seen[0].arrival < group[0] - CLOCKS_APART - REMEMBERED:
            self._seen.popleft()
        copies[1:] = (np.diff(number) == 0) & (np.diff(group) == 0) & (np.diff(enqueued) == 0)
        steps = []
        for rows in _ascending(np.flatnonzero(~copies), number, group):
            piece = number[rows], arrival[rows], enqueued[rows]
            self._supersede(*piece)
            copies[rows] = found = self._copies(*piece)
            step = self._step(rows[~found], number, arrival, enqueued)
            self._remember(*piece)
            if step is not None and (step.missing is not None or step.goes_back):
                steps.append(step)
        return copies, steps

    def _copies(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> NDArray[np.bool_]:
        """Which events carry the number and the enqueued time of one that arrived no longer than REMEMBERED before."""
        found = np.zeros(len(number), bool)
        lowest, highest = number[0], number[-1]
        for seen in self._seen:
            if seen.ranges.first[0] <= highest and seen.ranges.last[-1] >= lowest:
                place = seen.ranges.place(number)
                then = seen.enqueued[place]
                same = (then == enqueued) | (then == UNKNOWN) | (enqueued == UNKNOWN)
                found |= (place >= 0) & same & (arrival <= seen.arrival + REMEMBERED)
        return found

    def _supersede(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> None:
        """Numbers that begin again at later times are a new hub's: all that is no newer than those is of the old."""
        since, oldest = arrival[0] - REMEMBERED, enqueued.min()
        repeated = [seen for seen in self._seen if seen.ranges.last[-1] >= number[0] and seen.arrival >= since]
        until = max((newest for seen in repeated if (newest := _newest(seen.enqueued)) < oldest), default=None)
        if until is not None:
            for seen in self._seen:
                seen.superseded |= _newest(seen.enqueued) <= until

    def _step(self, rows: NDArray[np.intp], number: Numbers, arrival: Numbers, enqueued: Numbers) -> Step | None:
        if not len(rows):
            return None
        numbers, times = number[rows], enqueued[rows]
        since, oldest = arrival[rows[0]] - REMEMBERED, times.min() - REMEMBERED
        heights = [seen.highest(oldest) for seen in self._seen if seen.arrival >= since and not seen.superseded]
        below = max((height for height in heights if height is not None), default=None)
        above = numbers if below is None else np.append(below, numbers[numbers > below])
        jumps = np.flatnonzero(above[1:] - 1 > above[:-1])
        missing = None
        if len(jumps):
            missing = Missing(Ranges(above[jumps] + 1, above[jumps + 1] - 1), _newest(times))
        goes_back = bool(numbers[0] <= self._highest)
        self._highest = max(self._highest, int(numbers[-1]))
        return Step(rows, missing, rows[jumps + 1 + len(numbers) - len(above)], goes_back)

    def _remember(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> None:
        ranges = Ranges.of(number, np.diff(enqueued) != 0)
        times = enqueued[np.searchsorted(number, ranges.first)]
        self._seen.append(_Seen(ranges, times, int(arrival.max())))


def _newest(enqueued: Numbers) -> int:
    return LARGEST if enqueued.min() == UNKNOWN else int(enqueued.max())


def _ascending(rows: NDArray[np.intp], number: Numbers, group: Numbers) -> Iterator[NDArray[np.intp]]:
    """The rows in pieces of one group each, in which the numbers ascend."""
    breaks = np.flatnonzero((np.diff(number[rows]) <= 0) | (np.diff(group[rows]) != 0)) + 1
    bounds = [0, *breaks.tolist(), len(rows)]
    for begin, end in itertools.pairwise(bounds):
        if begin < end:
            yield rows[begin:end]
