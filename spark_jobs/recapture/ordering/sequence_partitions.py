"""Sequence numbers where several sequence partitions share the blobs, as those of a Service Bus entity do.

The events of an Event Hubs partition are numbered by that partition alone.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recapture.formats.events import UNNUMBERED
from recapture.formats.sequence_partition import ROUND, join
from recapture.ordering.pieces import Int64s
from recapture.ordering.sequence import AscendingEvents, Gaps, SequenceNumbers


def ranges_of(gaps: Gaps) -> list[tuple[int, int]]:
    """Return the first and the last number of each gap, as the service numbered the events."""
    ranges = list(zip(gaps.ranges.first.tolist(), gaps.ranges.last.tolist(), strict=True))
    partition = gaps.sequence_partition
    if partition is None:
        return ranges
    return [(join(partition, first), join(partition, last)) for first, last in ranges]


class ContinuousNumbers:
    """Continues the numbers of each sequence partition where they roll over to 0, from wherever reading begins."""

    def __init__(self) -> None:
        self._highest: dict[int, int] = {}

    def continued(self, number: Int64s, sequence_partition: Int64s) -> Int64s:
        """Return the continuous number of each event: of two in a partition, the lower one is the earlier.

        It is the number nearest to the partition's highest so far that ends in the event's 48 bits: after 2**48 - 1,
        the number 0 becomes 2**48, then 1 becomes 2**48 + 1.
        """
        continuous = number.copy()
        for partition in np.unique(sequence_partition[sequence_partition != UNNUMBERED]).tolist():
            rows = sequence_partition == partition
            low = number[rows] % ROUND
            highest = self._highest.get(partition, int(low[0]))
            continuous[rows] = highest + (low - highest + ROUND // 2) % ROUND - ROUND // 2
            self._highest[partition] = int(continuous[rows].max())
        return continuous


class PartitionedNumbers:
    """Remembers the numbers of each sequence partition, or those of the blobs' own partition if it is the only one."""

    def __init__(self) -> None:
        self._numbers: defaultdict[int | None, SequenceNumbers] = defaultdict(SequenceNumbers)

    def observe(
        self,
        continuous_number: Int64s,
        sequence_partition: Int64s | None,
        blob_arrival: Int64s,
        arrival: Int64s,
        enqueued: Int64s,
    ) -> tuple[NDArray[np.bool_], list[AscendingEvents]]:
        """Return what `SequenceNumbers.observe` does, for each sequence partition separately.

        An event without a number is not a duplicate.
        """
        if sequence_partition is None:
            return self._numbers[None].observe(continuous_number, blob_arrival, arrival, enqueued)
        duplicates = np.zeros(len(continuous_number), bool)
        groups = []
        for partition in np.unique(sequence_partition[sequence_partition != UNNUMBERED]).tolist():
            rows = np.flatnonzero(sequence_partition == partition)
            duplicates[rows], partition_groups = self._numbers[partition].observe(
                continuous_number[rows], blob_arrival[rows], arrival[rows], enqueued[rows]
            )
            groups += [_in_chunk(group, rows, partition) for group in partition_groups]
        return duplicates, groups


def _in_chunk(group: AscendingEvents, rows: NDArray[np.intp], partition: int) -> AscendingEvents:
    """Return events of one partition, whose rows in the chunk are `rows`, with their rows in the chunk."""
    gaps = None if group.gaps is None else replace(group.gaps, sequence_partition=partition)
    return replace(
        group, rows=rows[group.rows], gaps=gaps, overtaking=rows[group.overtaking], sequence_partition=partition
    )
