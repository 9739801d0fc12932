"""The second step of a GROUP BY in the workers of Spark: sorted panes to groups, or to rows.

A worker imports this module when it starts, so it imports neither the compiler of queries nor Spark.
"""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from recapture.model import published_schema
from recapture.ordering.groups import groups_of_panes, rows_of_panes
from recapture.query.merges import MergedGroups, MergedSelect, MergedWindow
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH

GROUP_HASH = "_group_hash"
"""Column of a pane with a hash of its keys."""
MERGED_PANES = 1 << 17
"""Number of panes that are merged at once; more if a slice has more of one group."""
_SLICE_START = pa.field("slice_start", pa.timestamp("us", tz="UTC"))


def rows_schema(select: MergedSelect) -> pa.Schema:
    """Return the columns of `merge_to_rows`: those that are published, and the start of the slice."""
    return published_schema(column for column, _ in select.columns).append(_SLICE_START)


def merge_to_rows(
    select: MergedSelect, window: MergedWindow, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a window of a SELECT, from panes that are sorted by slice and GROUP_HASH."""
    for slice_, panes in _whole_groups(batches):
        start = (slice_.start - UNIX_EPOCH) // TICKS_PER_MICROSECOND
        for rows in rows_of_panes(select, window, slice_, panes):
            yield rows.append_column(_SLICE_START, pa.repeat(pa.scalar(start, _SLICE_START.type), rows.num_rows))


def merge_to_groups(
    groups: MergedGroups, window: MergedWindow, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the groups of a window as rows of their view, from panes that are sorted by slice and GROUP_HASH."""
    for slice_, panes in _whole_groups(batches):
        for batch in groups_of_panes(groups, window, slice_, panes):
            bounds = [pa.repeat(pa.scalar(time, pa.int64()), batch.num_rows) for time in (slice_.start, slice_.end)]
            yield pa.RecordBatch.from_arrays([*bounds, *batch.columns], schema=groups.view_schema)


def _whole_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Slice, pa.Table]]:
    """Yield the panes of each slice in parts of about MERGED_PANES, which divide no group."""
    waiting: list[pa.RecordBatch] = []
    rows, enough = 0, MERGED_PANES
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= enough:
            panes = pa.Table.from_batches(waiting)
            end = _end_of_whole_groups(panes)
            yield from _by_slice(panes.slice(0, end))
            waiting = panes.slice(end).to_batches()
            rows -= end
            enough = max(MERGED_PANES, 2 * rows)
    if waiting:
        yield from _by_slice(pa.Table.from_batches(waiting))


def _end_of_whole_groups(panes: pa.Table) -> int:
    """Return the number of panes before those that have the slice and the hash of the last one."""
    starts, hashes = (panes[name].to_numpy() for name in ("_slice_start", GROUP_HASH))
    return len(panes) - int(np.count_nonzero((starts == starts[-1]) & (hashes == hashes[-1])))


def _by_slice(panes: pa.Table) -> Iterator[tuple[Slice, pa.Table]]:
    starts, ends = (panes[name].to_numpy() for name in ("_slice_start", "_slice_end"))
    panes = panes.drop_columns(GROUP_HASH)
    bounds = [0, *(np.flatnonzero(np.diff(starts)) + 1), len(starts)]
    for first, last in itertools.pairwise(bounds):
        if last > first:
            yield Slice(int(starts[first]), int(ends[first])), panes.slice(first, last - first)
