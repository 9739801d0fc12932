"""The panes of a slice, from all tasks, as groups and as the rows of an output (docs/time-model.md, section 6)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.model import TYPES, AsaType, OutputColumn, published_schema
from recapture.ordering import spreads
from recapture.ordering.keys import Numbered, first_rows, joint_codes, ranks
from recapture.ordering.panes import BATCH_ROWS, merged
from recapture.ordering.radix import sorted_order
from recapture.ordering.row_order import with_large_strings
from recapture.ordering.scalars import evaluate
from recapture.query.model import CompiledOutput
from recapture.query.plan.expressions import Expr
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import MergedGroups, MergedSelect, MergedWindow, Result, SpreadResult
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from recapture.time_model.windows import HoppingWindow

MERGED_ROWS = 1 << 20
"""Number of panes that are merged at once, each counted once for each of its windows. No window is divided."""
ENDS = 1 << 20
"""Approximate upper bound on the (pane, window end) pairs that are held in memory at once."""

PaneReader = Callable[[str, int], list[pa.RecordBatch]]
"""Returns the panes of a slice, given the view of an input and the number of an aggregation."""


def rows_of_slice(output: CompiledOutput, slice_: Slice, read_panes: PaneReader) -> pa.Table:
    """Return the published rows of an output in a slice.

    Raise RunError if a sum leaves the bigints.
    """
    schema = published_schema(output.columns)
    batches: list[pa.RecordBatch] = []
    for select in output.selects:
        for window in select.groups.windows:
            table = pa.Table.from_batches(read_panes(window.view, window.number), window.aggregation.schema)
            batches += rows_of_panes(select, window, slice_, table)
    return pa.Table.from_batches(batches, schema)


def rows_of_panes(
    select: MergedSelect, window: MergedWindow, slice_: Slice, panes: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the windows of a SELECT that end in a slice, from panes of the slice that hold whole groups.

    Raise RunError if a sum leaves the bigints.
    """
    for groups in groups_of_panes(select.groups, window, slice_, panes):
        if select.conditions:
            groups = groups.filter(evaluate(Expr(Op.AND, select.conditions), groups))
        yield rows_of_groups(select, groups)


def rows_of_groups(select: MergedSelect, groups: pa.RecordBatch) -> pa.RecordBatch:
    """Return the row of each group, whether it meets the conditions of the SELECT or not."""
    return pa.RecordBatch.from_arrays(
        [_published(column, evaluate(value, groups)) for column, value in select.columns],
        schema=published_schema(column for column, _ in select.columns),
    )


def groups_of_panes(
    merged_groups: MergedGroups, window: MergedWindow, slice_: Slice, panes: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Yield the groups of the windows that end in a slice or within the look-back before it; see `rows_of_panes`."""
    span = Slice(slice_.start - merged_groups.look_back, slice_.end)
    panes = _with_spreads(merged_groups, with_large_strings(panes)).combine_chunks()
    keys = {key.name: ranks(panes[key.name]) for key in window.aggregation.keys}
    for windowed in _windowed(window.window, span, panes):
        groups = _groups(merged_groups, window, panes, keys, windowed).cast(merged_groups.schema)
        yield from groups.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)


class _Windowed(NamedTuple):
    """The panes of some windows. A pane comes once for each window that holds it."""

    rows: NDArray[np.int64]
    """Rows of the panes, in the order of window, pane and partition."""
    windows: NDArray[np.int64]
    """Number of the window of each of them, from 0 without gaps."""
    ends: NDArray[np.int64]
    """End of each window in ticks."""


def _with_spreads(groups: MergedGroups, panes: pa.Table) -> pa.Table:
    """Return the panes with spreads in the columns of squared differences."""
    for m2, result in {result.m2.name: result for result in groups.spreads}.items():
        parts = (panes[name].combine_chunks() for name in (result.count.name, result.total.name, m2))
        panes = panes.set_column(panes.column_names.index(m2), m2, spreads.of_panes(*parts))
    return panes


def _windowed(window: HoppingWindow, slice_: Slice, panes: pa.Table) -> Iterator[_Windowed]:
    """Yield the panes of the windows that end in a slice, in groups that divide no window."""
    numbers, count = ranks(panes["_pane"])
    partitions, partition_count = ranks(panes["_partition"])
    order = sorted_order([numbers * partition_count + partitions])
    starts = np.append(0, np.cumsum(np.bincount(numbers, minlength=count)))
    times = panes["_pane"].to_numpy()[order[starts[:-1]]]
    for ends in _window_ends(window, slice_, times):
        first = starts[np.searchsorted(times, ends - window.size, side="right")]
        counts = starts[np.searchsorted(times, ends, side="right")] - first
        for part in _divided(counts):
            count = counts[part]
            before = np.cumsum(count) - count
            places = np.arange(count.sum()) + np.repeat(first[part] - before, count)
            yield _Windowed(order[places], np.repeat(np.arange(len(part)), count), ends[part])


def _window_ends(window: HoppingWindow, slice_: Slice, panes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield, in order, the ends of the windows that end in a slice and hold panes with these ends, in ticks."""
    hop, size = window.hop, window.size
    most = min(size // hop, (slice_.end - slice_.start) // hop) + 1
    last = slice_.start
    for part in np.array_split(panes, -(-len(panes) * most // ENDS)) if len(panes) else ():
        earliest = np.maximum(part, slice_.start + 1)
        ends = (earliest + (window.offset - earliest) % hop)[:, np.newaxis] + hop * np.arange(most)
        ends = np.unique(ends[ends < part[:, np.newaxis] + size])
        ends = ends[(ends > last) & (ends <= slice_.end)]
        if len(ends):
            last = ends[-1]
            yield ends


def _divided(counts: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of windows with panes in groups that have about MERGED_ROWS panes."""
    (filled,) = np.nonzero(counts)
    if len(filled):
        group = np.cumsum(counts[filled]) // MERGED_ROWS
        yield from np.split(filled, np.flatnonzero(np.diff(group)) + 1)


def _groups(
    merged_groups: MergedGroups,
    window: MergedWindow,
    panes: pa.Table,
    keys: Mapping[str, Numbered],
    windowed: _Windowed,
) -> pa.Table:
    """Return the groups of some windows, in the order of their ends and keys. Floats are added in that of the rows.

    `keys` are those of the panes, as ranks.
    """
    rows, windows, ends = windowed
    codes = joint_codes([(windows, len(ends)), *((values[rows], count) for values, count in keys.values())])
    partials = [partial.name for partial in merged_groups.partials]
    results = merged(panes.select(partials).take(pa.array(rows)), codes, merged_groups.partials, spreads.add_spreads)
    first = first_rows(codes)
    columns = {WINDOW_END: pa.array(ends[windows[first]])}
    columns[WINDOW_ID] = pa.repeat(pa.scalar(window.id, pa.string()), len(first))
    columns |= {key: panes[key].take(pa.array(rows[first])) for key in keys}
    return pa.table(columns | {result.name: _result(result, results) for result in merged_groups.results})


def _result(result: Result | SpreadResult, groups: pa.Table) -> pa.ChunkedArray:
    if isinstance(result, SpreadResult):
        return spreads.variance(spreads.fields_of(groups[result.m2.name]), result.of_population, result.root)
    value = groups[result.partial.name]
    if result.count is None:
        return value
    return pc.divide(value, pc.cast(groups[result.count.name], pa.float64()))


def _published(column: OutputColumn, value: pa.Array) -> pa.Array:
    """Return a column as it is published: ticks become a timestamp, truncated to microseconds."""
    if column.type is AsaType.DATETIME:
        value = pc.subtract(pc.divide(value, TICKS_PER_MICROSECOND), UNIX_EPOCH // TICKS_PER_MICROSECOND)
    return value.cast(TYPES[column.type].published)
