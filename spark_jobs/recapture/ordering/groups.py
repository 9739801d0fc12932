"""The panes of a slice, from all tasks, as groups and as the rows of an output (docs/time-model.md, section 6)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.model import TYPES, AsaType, OutputColumn, published_schema
from recapture.ordering import spreads
from recapture.ordering.keys import Numbered, first_rows, joint_codes, ranks, sorted_order
from recapture.ordering.panes import BATCH_ROWS, merged
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
_SAMPLE = 1 << 12
"""Number of rows that tell whether the strings of a column occur often."""


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
    panes = _with_spreads(merged_groups, _with_large_texts(panes)).combine_chunks()
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


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Return rows in the order of `row_order`."""
    return in_row_order(rows, row_order(rows))


def row_order(rows: pa.Table) -> pa.Array:
    """Return the places of rows, sorted by all columns. NULL comes first, and NaN after all other floats.

    Rows that differ only in the sign of a zero or in the bits of a NaN are sorted by these bits, so the sorted rows do
    not depend on the order of the rows.
    """
    if _ascend(rows):
        return pa.array(np.arange(len(rows)))
    keys: dict[str, pa.ChunkedArray | pa.Array] = {}
    for number, column in enumerate(rows.columns):
        if column.null_count:
            keys[f"{number} is given"] = pc.is_valid(column)
        keys[f"{number}"] = pa.array(ranks(column.cast(pa.large_string()))[0]) if _is_repeated(column) else column
    for number, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type) and (bits := _bits_of_equals(column)) is not None:
            keys[f"{number} as bits"] = bits
    return pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])


def _ascend(rows: pa.Table) -> bool:
    """Return whether rows are certainly sorted, with a difference before the first float and the first NULL."""
    earlier, later = rows.slice(0, max(len(rows) - 1, 0)), rows.slice(1)
    is_tie = pa.scalar(True)
    for column, before, after in zip(rows.columns, earlier.columns, later.columns, strict=True):
        if column.null_count or pa.types.is_floating(column.type):
            return False
        if pc.any(pc.and_(is_tie, pc.less(after, before))).as_py():
            return False
        is_tie = pc.and_(is_tie, pc.equal(after, before))
        if not pc.any(is_tie).as_py():
            return True
    return False


def in_row_order(rows: pa.Table, order: pa.Array) -> pa.Table:
    """Return rows in an order, in batches of MERGED_ROWS."""
    batches = _with_large_texts(rows).take(order).to_batches(max_chunksize=MERGED_ROWS)
    return pa.Table.from_batches([batch.cast(rows.schema) for batch in batches], rows.schema)


def _is_repeated(column: pa.ChunkedArray) -> bool:
    """Return whether a column has strings, most of which occur often, as far as a sample shows."""
    if not pa.types.is_string(column.type) or len(column) < _SAMPLE:
        return False
    sample = column.take(pa.array(np.arange(_SAMPLE) * (len(column) // _SAMPLE)))
    return len(sample.unique()) <= _SAMPLE // 2


def _bits_of_equals(column: pa.ChunkedArray) -> pa.Array | None:
    """Return the bits of zeros and of NaN, which are equal to others with other bits; 0 for all other floats.

    Return None if no two equal floats have other bits.
    """
    floats: NDArray[np.float64] = column.fill_null(0.0).to_numpy()
    is_nan, is_zero = np.isnan(floats), floats == 0.0
    if not is_nan.any() and not np.signbit(floats[is_zero]).any():
        return None
    return pa.array(np.where(is_zero | is_nan, floats.view(np.int64), 0))


def _with_large_texts(table: pa.Table) -> pa.Table:
    """Return a table whose texts may have more than 2 GB together."""
    large = {pa.string(): pa.large_string()}
    return table.cast(pa.schema([field.with_type(large.get(field.type, field.type)) for field in table.schema]))
