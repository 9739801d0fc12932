"""Parts of a slice, each of which is computed on its own, so that a slice of any size needs a bounded memory.

A slice is divided into buckets of the keys that all steps of the query share. A bucket is divided into pieces: shorter
slices, each with the events before it that its rows look back to. The rows of all parts are those of the slice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.buckets import buckets_of
from recapture.execute.shared_keys import SharedKeys, pane_columns
from recapture.execute.slice_rows import SliceQuery, SliceSource, rows_of_outputs
from recapture.query.model import CompiledInput
from recapture.time_model.slices import Slice

Int64s = NDArray[np.int64]

SMALLEST_BUCKET = 1_000_000
"""Number of events that are worth a bucket of their own if a core is idle."""
_TIME = "_system_timestamp"
_MOST_TIMES = 1 << 20
"""Largest number of times that are compared to find pieces."""
_LEAST_PROGRESS = 4
"""A piece has at least this part of the events that it may have, however many events its rows look back to."""


@dataclass(frozen=True)
class Bucket:
    """A bucket of the rows of a slice."""

    keys: SharedKeys
    number: int
    """Number of the bucket, from 0."""
    buckets: int

    def holds(self, batch: pa.RecordBatch, columns: Sequence[str]) -> NDArray[np.bool_]:
        """Return which rows of a batch are in the bucket; `columns` are the keys."""
        if self.buckets == 1:
            return np.ones(batch.num_rows, np.bool_)
        return buckets_of(batch, columns, self.buckets) == self.number


def buckets_of_slice(events: int, most: int, workers: int, slices: int) -> int:
    """Return the number of buckets of a slice with shared keys, whose parts may have up to `most` events.

    There is one for each idle worker, too, if the slice has enough events.
    """
    idle = min(workers // max(slices, 1), events // SMALLEST_BUCKET)
    return max(1, -(-events // most), idle)


def rows_of_bucket(
    query: SliceQuery, slice_: Slice, source: SliceSource, bucket: Bucket, most: int
) -> Iterator[list[pa.Table]]:
    """Yield the rows of each output, as `rows_of_outputs` does, for each piece of a bucket with about `most` events."""
    for piece in _pieces_of(query, slice_, source, bucket, most):
        yield [*rows_of_outputs(query, piece, _Part(query, source, bucket, piece))]


def pieces(slice_: Slice, times: Int64s, look_back: int, most: int) -> Iterator[Slice]:
    """Yield pieces of a slice with about `most` events each, those within the look-back before the piece included.

    `times` are those of the events, in order. Events of one time are in one piece.
    """
    start = slice_.start
    while True:
        first, begin = np.searchsorted(times, [start - look_back, start], side="right")
        last = max(first + most, begin + max(1, most // _LEAST_PROGRESS)) - 1
        if last >= len(times) - 1 or times[last] >= slice_.end:
            yield Slice(start, slice_.end)
            return
        yield Slice(start, int(times[last]))
        start = int(times[last])


def _pieces_of(query: SliceQuery, slice_: Slice, source: SliceSource, bucket: Bucket, most: int) -> Iterator[Slice]:
    whole = _Part(query, source, bucket, slice_)
    if sum(len(source.events(read)) for read in query.inputs if not read.aggregations) <= most:
        yield slice_
        return
    times = np.concatenate([np.empty(0, np.int64), *map(whole.times, query.inputs)])
    step = -(-len(times) // _MOST_TIMES) or 1
    look_back = max((read.look_back for read in query.inputs), default=0)
    yield from pieces(slice_, np.sort(times[::step]), look_back, max(1, most // step))


@dataclass(frozen=True)
class _Part:
    """What the tasks computed of a part of a slice."""

    query: SliceQuery
    source: SliceSource
    bucket: Bucket
    piece: Slice

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        panes = self.source.panes(view, number)
        if self.bucket.buckets == 1:
            return panes
        [aggregation] = (read.aggregations[number] for read in self.query.inputs if read.view == view)
        columns = pane_columns(aggregation, self.bucket.keys[view])
        return [_filtered(batch, self.bucket.holds(batch, columns)) for batch in panes]

    def events(self, compiled: CompiledInput) -> pa.Table:
        rows = self.source.events(compiled)
        return pa.Table.from_batches((self._events(compiled, batch) for batch in rows.to_batches()), rows.schema)

    def reference(self, view: str) -> pa.Table:
        return self.source.reference(view)

    def times(self, compiled: CompiledInput) -> Int64s:
        """Return the times of the events of an input; none if its tasks aggregate them."""
        if compiled.aggregations:
            return np.empty(0, np.int64)
        keys = self.bucket.keys.get(compiled.view, ())
        read = self.source.events(compiled).select([*dict.fromkeys([_TIME, *keys])])
        times = [self._events(compiled, batch)[_TIME].to_numpy() for batch in read.to_batches()]
        return np.concatenate([np.empty(0, np.int64), *times])

    def _events(self, compiled: CompiledInput, batch: pa.RecordBatch) -> pa.RecordBatch:
        is_needed = compiled.needs(batch[_TIME].to_numpy(), self.piece.start, self.piece.end)
        return _filtered(batch, is_needed & self.bucket.holds(batch, self.bucket.keys.get(compiled.view, ())))


def _filtered(batch: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(pa.array(mask))
