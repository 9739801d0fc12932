"""A partition's sequence numbers as they arrive: which are duplicates, and which never arrived.

The hub numbers the events of a partition one by one. Numbers are remembered as ranges, and only for as long as a
duplicate may follow. So whether an event is a duplicate, and which gap it reveals, depends only on what arrived in the
DUPLICATE_HORIZON before it. That is always read for the event's slice, whatever else the task reads
(docs/time-model.md, sections 5.1 and 5.2).

A duplicate has the sequence number and the enqueued time of its event; if one of the enqueued times is unknown, the
number decides alone. A hub that was deleted and created again gives out the same numbers once more, but at later times.
"""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recapture.archive.manifest import MAX_CLOCK_SKEW
from recapture.formats.events import UNKNOWN
from recapture.time_model.slices import DUPLICATE_HORIZON
from recapture.time_model.ticks import LARGEST

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """Whole numbers, as ranges in ascending order that do not overlap; both ends belong to a range."""

    first: Numbers
    last: Numbers

    @classmethod
    def of(cls, numbers: Numbers, ends: NDArray[np.bool_] | None = None) -> "Ranges":
        """Return the ranges that ascending numbers form.

        `ends` says after which of them a range ends in any case; it has no entry for the last number.
        """
        broken = np.diff(numbers) != 1
        last = np.flatnonzero(broken if ends is None else broken | ends)
        return cls(numbers[np.append(0, last + 1)], numbers[np.append(last, len(numbers) - 1)])

    def __len__(self) -> int:
        return len(self.first)

    def hold(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Return which of the numbers lie in a range."""
        return self.index(numbers) >= 0

    def index(self, numbers: Numbers) -> NDArray[np.intp]:
        """Return the index of the range that each number lies in; -1 for none."""
        if not len(self):
            return np.full(len(numbers), -1)
        index = np.searchsorted(self.first, numbers, side="right") - 1
        return np.where(numbers <= self.last[index], index, -1)

    def without(self, others: "Ranges") -> "Ranges":
        """Return the numbers that are in none of the others."""
        edges = np.unique(np.concatenate([self.first, self.last + 1, others.first, others.last + 1]))
        first, last = edges[:-1], edges[1:] - 1
        remaining = self.hold(first) & ~others.hold(first)
        return Ranges(first[remaining], last[remaining])


@dataclass(frozen=True)
class Missing:
    """Numbers that had not arrived when a higher one did."""

    ranges: Ranges
    enqueued_by: int
    """Latest enqueued time of the events next to the gaps, in ticks. What is missing is older, give or take clocks."""
    sequence_partition: int | None = None
    """Partition that gave out the numbers, if several share the blobs."""

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self.ranges)

    def of(self, chosen: NDArray[np.bool_]) -> "Missing":
        """Return some of the ranges."""
        return replace(self, ranges=Ranges(self.ranges.first[chosen], self.ranges.last[chosen]))

    def without(self, numbers: Numbers, enqueued: Numbers) -> "Missing":
        """Return what is still missing after these numbers, which ascend, have arrived."""
        arrived = numbers[enqueued <= self.enqueued_by + MAX_CLOCK_SKEW]
        return replace(self, ranges=self.ranges.without(Ranges.of(arrived))) if len(arrived) else self


@dataclass(frozen=True)
class Step:
    """Events without duplicates whose numbers ascend, of one blob or of several with the same arrival."""

    rows: NDArray[np.intp]
    """Where the events are in the chunk."""
    missing: Missing | None
    """What was skipped on the way up."""
    overtaking: NDArray[np.intp]
    """Row of the event after each range that is missing."""
    goes_back: bool
    """Whether some of the events may have been missing before."""
    sequence_partition: int | None = None
    """Partition that numbered the events, if several share the blobs."""


@dataclass
class _Arrived:
    """Numbers that arrived together, duplicates included."""

    ranges: Ranges
    """Ranges within which all events have the same enqueued time."""
    enqueued: Numbers
    """Enqueued time of each range in ticks."""
    last_arrival: int
    """Arrival of the event that arrived last, in ticks."""
    superseded: bool = False
    """Whether the hub was created again since: what follows does not continue these numbers."""

    def highest(self, oldest: int) -> int | None:
        """Return the highest number that was not enqueued before `oldest`.

        Duplicates of older events do not say which numbers arrived since.
        """
        recent = (self.enqueued >= oldest) | (self.enqueued == UNKNOWN)
        return int(self.ranges.last[recent][-1]) if recent.any() else None


class SequenceNumbers:
    """Remembers the numbers of one partition while its events are read in arrival order."""

    def __init__(self) -> None:
        self._arrived: deque[_Arrived] = deque()
        self._highest = np.iinfo(np.int64).min

    @property
    def remembered(self) -> int:
        """Number of ranges that are remembered."""
        return sum(len(arrived.ranges) for arrived in self._arrived)

    def read(
        self, number: Numbers, blob_arrival: Numbers, arrival: Numbers, enqueued: Numbers
    ) -> tuple[NDArray[np.bool_], list[Step]]:
        """Return which events of a chunk are duplicates, and how the numbers of the others follow.

        Each array has one entry for each event; times are ticks, `enqueued` is a whole second or UNKNOWN. Events with
        the same blob arrival are sorted by number. Steps without gaps that cannot fill one either are left out.
        """
        duplicates = np.zeros(len(number), bool)
        if not len(number):
            return duplicates, []
        while self._arrived and self._arrived[0].last_arrival < blob_arrival[0] - MAX_CLOCK_SKEW - DUPLICATE_HORIZON:
            self._arrived.popleft()
        duplicates[1:] = (np.diff(number) == 0) & (np.diff(blob_arrival) == 0) & (np.diff(enqueued) == 0)
        steps = []
        for rows in _ascending(np.flatnonzero(~duplicates), number, blob_arrival):
            piece = number[rows], arrival[rows], enqueued[rows]
            self._supersede(*piece)
            again = self._arrived_before(*piece)
            duplicates[rows] = again
            step = self._step(rows[~again], number, arrival, enqueued)
            self._remember(*piece)
            if step is not None and (step.missing is not None or step.goes_back):
                steps.append(step)
        return duplicates, steps

    def _arrived_before(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> NDArray[np.bool_]:
        """Return which events have the number and the enqueued time of one that arrived within DUPLICATE_HORIZON."""
        again = np.zeros(len(number), bool)
        lowest, highest = number[0], number[-1]
        for earlier in self._arrived:
            if earlier.ranges.first[0] <= highest and earlier.ranges.last[-1] >= lowest:
                index = earlier.ranges.index(number)
                then = earlier.enqueued[index]
                same = (then == enqueued) | (then == UNKNOWN) | (enqueued == UNKNOWN)
                again |= (index >= 0) & same & (arrival <= earlier.last_arrival + DUPLICATE_HORIZON)
        return again

    def _supersede(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> None:
        """Mark the remembered numbers of an old hub as superseded, if these events come from a new one.

        That is so if, within DUPLICATE_HORIZON, numbers that reach at least as high as the first of these arrived
        together, and all of them were enqueued before any of these: the hub has started its numbers again. For example:

            arrived before   100-104 enqueued 10:00,  105-109 enqueued 10:05
            now              0-3     enqueued 10:20   100-104 and 105-109 are superseded
            now              103-104 enqueued 10:00   nothing is superseded: these are duplicates
        """
        since, first_enqueued = arrival[0] - DUPLICATE_HORIZON, enqueued.min()
        reached = [
            _last_enqueued(earlier.enqueued)
            for earlier in self._arrived
            if earlier.ranges.last[-1] >= number[0] and earlier.last_arrival >= since
        ]
        old_hub_until = max((last for last in reached if last < first_enqueued), default=None)
        if old_hub_until is not None:
            for earlier in self._arrived:
                earlier.superseded |= _last_enqueued(earlier.enqueued) <= old_hub_until

    def _step(self, rows: NDArray[np.intp], number: Numbers, arrival: Numbers, enqueued: Numbers) -> Step | None:
        """Return how the numbers of some rows, which ascend, follow the highest one before; None without rows.

        For example, after 4 as the highest number within DUPLICATE_HORIZON:

            numbers      3  6  7  10
            missing      5 (overtaken by 6) and 8-9 (overtaken by 10)
            goes back    since 3 is below 4, it may have been missing

        If no number arrived within DUPLICATE_HORIZON, gaps count from the 3 on: 4-5 and 8-9 are missing.
        """
        if not len(rows):
            return None
        numbers, times = number[rows], enqueued[rows]
        highest = self._highest_since(int(arrival[rows[0]]) - DUPLICATE_HORIZON, int(times.min()) - DUPLICATE_HORIZON)
        # following[i] is numbers[first + i], and preceding[i] is the highest number before it.
        first = 1 if highest is None else int(np.searchsorted(numbers, highest, side="right"))
        following = numbers[first:]
        preceding = numbers[:-1] if highest is None else np.append(highest, following)[:-1]
        skipping = np.flatnonzero(following - 1 > preceding)
        missing = None
        if len(skipping):
            missing = Missing(Ranges(preceding[skipping] + 1, following[skipping] - 1), _last_enqueued(times))
        goes_back = bool(numbers[0] <= self._highest)
        self._highest = max(self._highest, int(numbers[-1]))
        return Step(rows, missing, rows[first + skipping], goes_back)

    def _highest_since(self, arrived: int, enqueued: int) -> int | None:
        """Return the highest number of the present hub that arrived and was enqueued since."""
        heights = [
            earlier.highest(enqueued)
            for earlier in self._arrived
            if earlier.last_arrival >= arrived and not earlier.superseded
        ]
        return max((height for height in heights if height is not None), default=None)

    def _remember(self, number: Numbers, arrival: Numbers, enqueued: Numbers) -> None:
        ranges = Ranges.of(number, np.diff(enqueued) != 0)
        times = enqueued[np.searchsorted(number, ranges.first)]
        self._arrived.append(_Arrived(ranges, times, int(arrival.max())))


def _last_enqueued(enqueued: Numbers) -> int:
    """Return the latest of some enqueued times; one that is UNKNOWN may be later than any other."""
    return LARGEST if enqueued.min() == UNKNOWN else int(enqueued.max())


def _ascending(rows: NDArray[np.intp], number: Numbers, blob_arrival: Numbers) -> Iterator[NDArray[np.intp]]:
    """Yield the rows in pieces of one blob arrival, in which the numbers ascend."""
    breaks = np.flatnonzero((np.diff(number[rows]) <= 0) | (np.diff(blob_arrival[rows]) != 0)) + 1
    bounds = [0, *breaks.tolist(), len(rows)]
    for begin, end in itertools.pairwise(bounds):
        if begin < end:
            yield rows[begin:end]
