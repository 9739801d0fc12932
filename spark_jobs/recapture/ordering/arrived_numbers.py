"""The sequence numbers of the events that arrived in a slice, as ranges (see `recapture.archive.holes`)."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from recapture.formats.events import UNKNOWN
from recapture.ordering.pieces import Int64s
from recapture.process.compilation import compiled, frozen
from recapture.time_model.partition_metrics import ArrivedNumbers

MAX_RANGES = 1_000
"""Number of ranges that are kept of one partition and slice; what is between the last ones counts as arrived."""


class NumberCollector:
    """Collects the numbers of one partition and slice, those of each sequence partition by themselves."""

    def __init__(self) -> None:
        self._ranges: defaultdict[int | None, list[Int64s]] = defaultdict(list)
        """Rows of (first number, last number, earliest and latest enqueued time), in any order."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberCollector) and self.values() == other.values()

    def add(self, sequence_partition: int | None, number: Int64s, enqueued: Int64s) -> None:
        """Add events in arrival order; `enqueued` is in ticks, or UNKNOWN."""
        if not len(number):
            return
        ranges = self._ranges[sequence_partition]
        ranges.append(in_ranges(frozen(number), frozen(enqueued), UNKNOWN))
        if sum(map(len, ranges)) > 2 * MAX_RANGES:
            self._ranges[sequence_partition] = [_bounded(_merged(ranges))]

    def values(self) -> tuple[ArrivedNumbers, ...]:
        """Return the numbers of each sequence partition, in the order of the enqueued times."""
        return tuple(
            ArrivedNumbers(tuple(map(tuple, _bounded(_merged(ranges)).tolist())), partition)
            for partition, ranges in sorted(self._ranges.items(), key=lambda item: -1 if item[0] is None else item[0])
        )


@compiled
def in_ranges(number: Int64s, enqueued: Int64s, unknown: int) -> NDArray[np.int64]:
    """Return the numbers as rows of (first number, last number, earliest and latest enqueued time).

    The latest time is `unknown` if one of the times is; `unknown` is less than any other time.
    """
    begins = np.empty(len(number) + 1, np.int64)
    earliest, latest = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
    count = 0
    for row in range(len(number)):
        time = enqueued[row]
        if row == 0 or number[row] != number[row - 1] + 1:
            begins[count], earliest[count], latest[count] = row, time, time
            count += 1
        else:
            earliest[count - 1] = min(earliest[count - 1], time)
            latest[count - 1] = max(latest[count - 1], time)
    begins[count] = len(number)
    ranges = np.empty((count, 4), np.int64)
    for place in range(count):
        ranges[place, 0], ranges[place, 1] = number[begins[place]], number[begins[place + 1] - 1]
        ranges[place, 2] = earliest[place]
        ranges[place, 3] = unknown if earliest[place] == unknown else latest[place]
    return ranges


def _merged(ranges: list[Int64s]) -> Int64s:
    """Return the ranges in the order of their enqueued times, successive ones as one if their numbers continue."""
    rows = np.concatenate(ranges)
    rows = rows[np.lexsort((rows[:, 0], rows[:, 2]))]
    begins = np.flatnonzero(np.append(True, rows[1:, 0] != rows[:-1, 1] + 1))
    ends = np.append(begins[1:], len(rows)) - 1
    earliest, latest = np.minimum.reduceat(rows[:, 2], begins), np.maximum.reduceat(rows[:, 3], begins)
    latest[earliest == UNKNOWN] = UNKNOWN
    return np.stack([rows[begins, 0], rows[ends, 1], earliest, latest], axis=1)


def _bounded(rows: Int64s) -> Int64s:
    """Return at most MAX_RANGES ranges: the last one covers all that would be too many."""
    rest = rows[MAX_RANGES - 1 :]
    if len(rest) < 2:
        return rows
    latest = UNKNOWN if (rest[:, 3] == UNKNOWN).any() else rest[:, 3].max()
    last = [rest[:, 0].min(), rest[:, 1].max(), rest[:, 2].min(), latest]
    return np.concatenate([rows[: MAX_RANGES - 1], np.array([last], np.int64)])
