"""Sequence numbers where several sequence partitions share the blobs, as those of a Service Bus entity do.

The events of an Event Hubs partition are numbered by that partition alone.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recapture.formats.events import UNNUMBERED
from recapture.formats.sequence_partition import ROUND, join
from recapture.ordering.sequence import Missing, Numbers, SequenceNumbers, Step


def ranges_of(missing: Missing) -> list[tuple[int, int]]:
    """Return the first and the last number of each missing range, as the service numbered the events."""
    ranges = list(zip(missing.ranges.first.tolist(), missing.ranges.last.tolist(), strict=True))
    partition = missing.sequence_partition
    if partition is None:
        return ranges
    return [(join(partition, first), join(partition, last)) for first, last in ranges]


class UnrolledNumbers:
    """Counts the numbers of each sequence partition on where they roll over, from wherever reading begins."""

    def __init__(self) -> None:
        self._highest: dict[int, int] = {}

    def read(self, number: Numbers, sequence_partition: Numbers) -> Numbers:
        """Return the unrolled number of each event: of two in a partition, the lower one is the earlier.

        An unrolled number is the one nearest to the partition's highest so far that ends in the event's 48 bits:
        after 2**48 - 1 come 2**48 for the number 0, then 2**48 + 1.
        """
        unrolled = number.copy()
        for partition in np.unique(sequence_partition[sequence_partition != UNNUMBERED]).tolist():
            rows = sequence_partition == partition
            low = number[rows] % ROUND
            highest = self._highest.get(partition, int(low[0]))
            unrolled[rows] = highest + (low - highest + ROUND // 2) % ROUND - ROUND // 2
            self._highest[partition] = int(unrolled[rows].max())
        return unrolled


class PartitionedNumbers:
    """Remembers the numbers of each sequence partition, or those of the blobs' own partition if it is the only one."""

    def __init__(self) -> None:
        self._numbers: defaultdict[int | None, SequenceNumbers] = defaultdict(SequenceNumbers)

    def read(
        self,
        unrolled: Numbers,
        sequence_partition: Numbers | None,
        blob_arrival: Numbers,
        arrival: Numbers,
        enqueued: Numbers,
    ) -> tuple[NDArray[np.bool_], list[Step]]:
        """Return what `SequenceNumbers.read` does, for each sequence partition by itself.

        An event without a number is no duplicate.
        """
        if sequence_partition is None:
            return self._numbers[None].read(unrolled, blob_arrival, arrival, enqueued)
        duplicates = np.zeros(len(unrolled), bool)
        steps = []
        for partition in np.unique(sequence_partition[sequence_partition != UNNUMBERED]).tolist():
            rows = np.flatnonzero(sequence_partition == partition)
            duplicates[rows], of_partition = self._numbers[partition].read(
                unrolled[rows], blob_arrival[rows], arrival[rows], enqueued[rows]
            )
            steps += [_among_all(step, rows, partition) for step in of_partition]
        return duplicates, steps


def _among_all(step: Step, rows: NDArray[np.intp], partition: int) -> Step:
    """Return a step of the events in `rows` as one of the whole chunk."""
    missing = None if step.missing is None else replace(step.missing, sequence_partition=partition)
    return replace(
        step, rows=rows[step.rows], overtaking=rows[step.overtaking], missing=missing, sequence_partition=partition
    )
