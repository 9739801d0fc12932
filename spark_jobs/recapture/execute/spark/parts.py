"""How a run is divided among Spark's partitions. A part is what is computed at once: a slice, or one of its buckets.

Rows whose keys are equal are in one bucket, so the buckets of a slice are computed one by one.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from recapture.time_model.slices import Slice

PART_BYTES = 256 * 1024 * 1024
"""Size of the blobs that a part is planned for; bytes. Python holds the events or the panes of one part."""
MOST_PARTITIONS = 200
"""Largest number of Spark's partitions; each costs a tenth of a second."""

Source = tuple[str, int | None]
"""What tasks compute: the view of an input, and the number of an aggregation, or None for events."""


@dataclass(frozen=True)
class Division:
    """The parts of a run."""

    slices: tuple[Slice, ...]
    """In the order of time."""
    sources: tuple[Source, ...]
    buckets: int
    """Number of buckets of each slice."""
    keys: Mapping[Source, tuple[str, ...]]
    """Columns that divide the rows of a source among the buckets. Without an entry, all rows are in the first one."""

    @property
    def partitions(self) -> int:
        """Number of Spark's partitions; part n is in partition n, modulo this number."""
        return min(len(self.slices) * self.buckets, MOST_PARTITIONS)

    def slice_of(self, part: int) -> Slice:
        return self.slices[part // self.buckets]

    def divided(self, source: Source, slice_start: int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of each part, in their order. All are of the slice with this start, in ticks."""
        first = bisect_left(self.slices, slice_start, key=lambda slice_: slice_.start) * self.buckets
        if self.buckets == 1 or source not in self.keys:
            yield first, rows
            return
        from recapture.evaluate.buckets import buckets_of

        buckets = buckets_of(rows, self.keys[source], self.buckets)
        order = np.argsort(buckets, kind="stable")
        rows = rows.take(pa.array(order))
        bounds = np.searchsorted(buckets[order], np.arange(self.buckets + 1))
        for bucket in np.unique(buckets).tolist():
            begin, end = bounds[bucket : bucket + 2].tolist()
            yield first + bucket, rows.slice(begin, end - begin)
