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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.formats.events import UNKNOWN
from recapture.ordering.pieces import Int64s, NumberedEvents, Pieces, cut
from recapture.process.compilation import frozen
from recapture.time_model.slices import DUPLICATE_HORIZON
from recapture.time_model.ticks import LARGEST


@dataclass(frozen=True)
class Ranges:
    """Whole numbers, as ranges in ascending order that do not overlap; both ends belong to a range."""

    first: Int64s
    last: Int64s

    @classmethod
    def of(cls, numbers: Int64s) -> "Ranges":
        """Return the ranges that ascending numbers form."""
        last = np.flatnonzero(np.diff(numbers) != 1)
        return cls(numbers[np.append(0, last + 1)], numbers[np.append(last, len(numbers) - 1)])

    def __len__(self) -> int:
        return len(self.first)

    def contains(self, numbers: Int64s) -> NDArray[np.bool_]:
        """Return which of the numbers lie in a range."""
        return self.index(numbers) >= 0

    def index(self, numbers: Int64s) -> NDArray[np.intp]:
        """Return the index of the range that each number lies in; -1 for none."""
        if not len(self):
            return np.full(len(numbers), -1)
        index = np.searchsorted(self.first, numbers, side="right") - 1
        return np.where(numbers <= self.last[index], index, -1)

    def without(self, others: "Ranges") -> "Ranges":
        """Return the numbers that are in none of the others."""
        edges = np.unique(np.concatenate([self.first, self.last + 1, others.first, others.last + 1]))
        first, last = edges[:-1], edges[1:] - 1
        remaining = self.contains(first) & ~others.contains(first)
        return Ranges(first[remaining], last[remaining])


@dataclass(frozen=True)
class Gaps:
    """Ranges of numbers that had not arrived when a higher number did."""

    ranges: Ranges
    """Missing numbers; each range is a gap."""
    enqueued_by: int
    """Latest enqueued time of the events that reveal the gaps, in ticks; LARGEST if one of them is unknown.

    The missing events are older, give or take clock skew.
    """
    sequence_partition: int | None = None
    """Partition that gave out the numbers, if several share the blobs."""

    def __len__(self) -> int:
        """Return the number of gaps."""
        return len(self.ranges)

    def select(self, mask: NDArray[np.bool_]) -> "Gaps":
        """Return the gaps for which the mask is True."""
        return replace(self, ranges=Ranges(self.ranges.first[mask], self.ranges.last[mask]))

    def without(self, numbers: Int64s, enqueued: Int64s) -> "Gaps":
        """Return the gaps that are left after these numbers, which ascend, have arrived."""
        arrived = numbers[enqueued <= self.enqueued_by + MAX_CLOCK_SKEW]
        return replace(self, ranges=self.ranges.without(Ranges.of(arrived))) if len(arrived) else self


@dataclass(frozen=True)
class AscendingEvents:
    """Events without duplicates whose numbers ascend, of one blob or of several with the same arrival."""

    rows: NDArray[np.intp]
    """Rows of the events in the chunk."""
    gaps: Gaps | None
    """Gaps that these events reveal, because they skip numbers; None if there are none."""
    overtaking: NDArray[np.intp]
    """Row of the event after each of the gaps."""
    may_fill_gaps: bool
    """Whether some numbers are not above the highest one so far, so that they may fill earlier gaps."""
    sequence_partition: int | None = None
    """Partition that gave the events their numbers, if several share the blobs."""


@dataclass
class _Arrived:
    """Numbers that arrived together, duplicates included."""

    ranges: Ranges
    """Ranges within which all events have the same enqueued time."""
    enqueued: Int64s
    """Enqueued time of each range in ticks."""
    last_arrival: int
    """Arrival of the event that arrived last, in ticks."""
    superseded: bool = False
    """Whether the hub has been created again since. If so, later numbers do not continue these."""

    def highest(self, oldest: int) -> int | None:
        """Return the highest number that was not enqueued before `oldest`.

        An older event may be a duplicate whose original was not read, and a duplicate does not show how far the numbers
        had got when it arrived. So every older event is ignored.
        """
        if self.enqueued[-1] >= oldest:
            return int(self.ranges.last[-1])
        recent = (self.enqueued >= oldest) | (self.enqueued == UNKNOWN)
        return int(self.ranges.last[recent][-1]) if recent.any() else None


class SequenceNumbers:
    """Remembers the numbers of one partition while its events are read in arrival order."""

    def __init__(self) -> None:
        self._arrived: deque[_Arrived] = deque()
        self._highest = np.iinfo(np.int64).min

    def observe(
        self, number: Int64s, blob_arrival: Int64s, arrival: Int64s, enqueued: Int64s
    ) -> tuple[NDArray[np.bool_], list[AscendingEvents]]:
        """Return which events of a chunk are duplicates, and the others in groups of ascending numbers.

        Each array has one entry for each event; times are ticks, `enqueued` is a whole second or UNKNOWN. Events with
        the same blob arrival are sorted by number. A group that neither reveals a gap nor can fill one is left out.
        """
        if not len(number):
            return np.zeros(0, bool), []
        while self._arrived and self._arrived[0].last_arrival < blob_arrival[0] - MAX_CLOCK_SKEW - DUPLICATE_HORIZON:
            self._arrived.popleft()
        pieces = cut(NumberedEvents(frozen(number), frozen(blob_arrival), frozen(arrival), frozen(enqueued)))
        duplicates = pieces.repeats
        groups = []
        for piece, (begin, end) in enumerate(itertools.pairwise(pieces.bounds.tolist())):
            if not self._continues(pieces, piece, int(arrival[begin])):
                rows = begin + np.flatnonzero(~duplicates[begin:end])
                events = number[rows], arrival[rows], enqueued[rows]
                self._supersede(*events)
                is_duplicate = self._arrived_before(*events)
                duplicates[rows] = is_duplicate
                group = self._group(rows[~is_duplicate], number, arrival, enqueued)
                if group is not None and (group.gaps is not None or group.may_fill_gaps):
                    groups.append(group)
            self._remember(pieces, piece)
        return duplicates, groups

    def _continues(self, pieces: Pieces, piece: int, arrival: int) -> bool:
        """Return whether a piece, whose first event arrived at `arrival`, follows the highest number without a gap.

        So it is usually. Such a piece has neither duplicates nor gaps, and fills none.
        """
        if pieces.has_skips[piece] or not self._arrived:
            return False
        first, before = int(pieces.first[pieces.range_bounds[piece]]), self._arrived[-1]
        return (
            first == self._highest + 1
            and before.last_arrival >= arrival - DUPLICATE_HORIZON
            and not before.superseded
            and before.highest(int(pieces.earliest_enqueued[piece]) - DUPLICATE_HORIZON) == self._highest
        )

    def _arrived_before(self, number: Int64s, arrival: Int64s, enqueued: Int64s) -> NDArray[np.bool_]:
        """Return which events have the number and the enqueued time of one that arrived within DUPLICATE_HORIZON."""
        is_duplicate = np.zeros(len(number), bool)
        lowest, highest = number[0], number[-1]
        for earlier in self._arrived:
            if earlier.ranges.first[0] <= highest and earlier.ranges.last[-1] >= lowest:
                index = earlier.ranges.index(number)
                remembered = earlier.enqueued[index]
                same = (remembered == enqueued) | (remembered == UNKNOWN) | (enqueued == UNKNOWN)
                is_duplicate |= (index >= 0) & same & (arrival <= earlier.last_arrival + DUPLICATE_HORIZON)
        return is_duplicate

    def _supersede(self, number: Int64s, arrival: Int64s, enqueued: Int64s) -> None:
        """Mark the remembered numbers of an old hub as superseded, if these events come from a new one.

        That is so if an earlier group, within DUPLICATE_HORIZON, was enqueued entirely before the first of these
        events, and its highest number is not below the lowest of theirs: the hub has started its numbers again. For
        example:

            arrived before   100-104 enqueued 10:00,  105-109 enqueued 10:05
            now              0-3     enqueued 10:20   100-104 and 105-109 are superseded
            now              103-104 enqueued 10:00   nothing is superseded: these are duplicates
        """
        since, first_enqueued = arrival[0] - DUPLICATE_HORIZON, enqueued.min()
        last_enqueued = [
            _last_enqueued(earlier.enqueued)
            for earlier in self._arrived
            if earlier.ranges.last[-1] >= number[0] and earlier.last_arrival >= since
        ]
        old_hub_until = max((last for last in last_enqueued if last < first_enqueued), default=None)
        if old_hub_until is not None:
            for earlier in self._arrived:
                earlier.superseded |= _last_enqueued(earlier.enqueued) <= old_hub_until

    def _group(
        self, rows: NDArray[np.intp], number: Int64s, arrival: Int64s, enqueued: Int64s
    ) -> AscendingEvents | None:
        """Return these rows, whose numbers ascend, with the gaps that they reveal; None if `rows` is empty.

        For example, after 4 as the highest number that arrived, and was enqueued, within DUPLICATE_HORIZON:

            numbers    3  6  7  10
            gaps       5 (overtaken by 6) and 8-9 (overtaken by 10)

        The 3 may fill an earlier gap, because it is not above 4. If no number arrived, and was enqueued, within
        DUPLICATE_HORIZON, gaps are reported only above the 3: 4-5 and 8-9.
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
        gaps = None
        if len(skipping):
            gaps = Gaps(Ranges(preceding[skipping] + 1, following[skipping] - 1), _last_enqueued(times))
        return AscendingEvents(rows, gaps, rows[first + skipping], bool(numbers[0] <= self._highest))

    def _highest_since(self, arrived: int, enqueued: int) -> int | None:
        """Return the highest number of the current hub that arrived and was enqueued at these times or later."""
        highest = [
            earlier.highest(enqueued)
            for earlier in self._arrived
            if earlier.last_arrival >= arrived and not earlier.superseded
        ]
        return max((number for number in highest if number is not None), default=None)

    def _remember(self, pieces: Pieces, piece: int) -> None:
        begin, end = pieces.range_bounds[piece : piece + 2]
        ranges = Ranges(pieces.first[begin:end], pieces.last[begin:end])
        self._arrived.append(_Arrived(ranges, pieces.enqueued[begin:end], int(pieces.last_arrival[piece])))
        self._highest = max(self._highest, int(ranges.last[-1]))


def _last_enqueued(enqueued: Int64s) -> int:
    """Return the latest of some enqueued times; one that is UNKNOWN may be later than any other."""
    return LARGEST if enqueued.min() == UNKNOWN else int(enqueued.max())
