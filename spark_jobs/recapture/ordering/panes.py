"""The events of a slice as the partial aggregates of panes, folded in arrival order (docs/time-model.md, section 6)."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.errors import QueryError
from recapture.ordering import spreads
from recapture.ordering.keys import Numbered, first_rows, joint_codes, numbered
from recapture.ordering.scalars import evaluate
from recapture.query.plan.expressions import Expr
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import Fold, Key, PaneAggregation, Partial
from recapture.time_model.slices import Slice

FOLD_ROWS = 1 << 18
"""Number of events that a task holds before they are folded into panes; more if the panes are more."""
BATCH_ROWS = 65_536
"""Largest number of panes in a batch."""
_BIGINT_BOUND = 2.0**62
"""Bound below which a sum of absolute values, added as floats, is certainly a bigint."""
_GROUP = "_group"
"""Column that numbers the groups."""
_BIGINTS = np.iinfo(np.int64)


def schema(aggregations: Sequence[PaneAggregation]) -> pa.Schema:
    """Return the columns of the batches: one struct for each aggregation, NULL in the rows of the others."""
    structs = (pa.struct(list(aggregation.schema)) for aggregation in aggregations)
    return pa.schema([(column_name(number), struct) for number, struct in enumerate(structs)])


def column_name(number: int) -> str:
    """Return the name of the column of an aggregation."""
    return f"panes {number}"


class SlicePanes:
    """The panes of one slice in one partition, for each aggregation of its input."""

    def __init__(self, slice_: Slice, partition: str, aggregations: Sequence[PaneAggregation]) -> None:
        """Begin without events."""
        self._slice = slice_
        self._partition = partition
        self._panes = [_FoldedPanes(aggregation) for aggregation in aggregations]
        self._sharing = self._panes

    @classmethod
    def of_slices(
        cls, slices: Iterable[Slice], partition: str, aggregations: Sequence[PaneAggregation]
    ) -> dict[Slice, "SlicePanes"]:
        """Return the panes of the slices of a task, which share FOLD_ROWS."""
        panes = {slice_: cls(slice_, partition, aggregations) for slice_ in slices}
        sharing = [folded for slice_panes in panes.values() for folded in slice_panes._panes]
        for slice_panes in panes.values():
            slice_panes._sharing = sharing
        return panes

    def add(self, events: pa.RecordBatch) -> None:
        """Add events of the slice, with the columns of `order.schema`; they follow those added before.

        Strings may come with the numbers of `StringCodes`, in all batches or in none.
        """
        value = functools.cache(functools.partial(evaluate, rows=events))
        for panes in self._panes:
            panes.add(events, value)
        if sum(panes.events for panes in self._sharing) >= FOLD_ROWS:
            for panes in self._sharing:
                panes.fold_many()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the panes of all events as batches of `schema`, and forget them."""
        columns = schema([panes.aggregation for panes in self._panes])
        for number, panes in enumerate(self._panes):
            for batch in panes.folded().to_batches(max_chunksize=BATCH_ROWS):
                arrays = [pa.nulls(batch.num_rows, column.type) for column in columns]
                arrays[number] = self._struct(panes.aggregation, batch.cast(panes.aggregation.columns))
                yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    def _struct(self, aggregation: PaneAggregation, batch: pa.RecordBatch) -> pa.StructArray:
        count = batch.num_rows
        places = [
            pa.repeat(pa.scalar(self._slice.start, pa.int64()), count),
            pa.repeat(pa.scalar(self._slice.end, pa.int64()), count),
            pa.repeat(self._partition, count),
        ]
        return pa.StructArray.from_arrays([*places, *batch.columns], fields=list(aggregation.schema))


@dataclass
class _FoldedPanes:
    """The panes of one aggregation: those folded so far, and the events that are not yet folded into them."""

    aggregation: PaneAggregation
    events: int = 0
    """Number of rows of `_parts` that are events."""
    _parts: list[pa.RecordBatch] = field(default_factory=list)
    """Panes folded so far, then events; a pane's row stands for the events that were folded into it."""
    _folded: int = 0
    """Number of rows of `_parts` that are panes."""
    _dictionaries: dict[str, pa.Array] = field(default_factory=dict)
    """Strings of the keys that came with numbers, by number. `_parts` have the numbers."""

    @property
    def _columns(self) -> pa.Schema:
        """Columns of `_parts`: those of the panes, with numbers for some keys, and spreads that can be continued."""
        columns = self.aggregation.columns
        for name in self._dictionaries:
            columns = columns.set(columns.get_field_index(name), pa.field(name, pa.int32()))
        for partial in self._spreads:
            columns = columns.set(columns.get_field_index(partial.name), pa.field(partial.name, spreads.SPREAD))
        return columns

    @property
    def _spreads(self) -> list[Partial]:
        return [partial for partial in self.aggregation.partials if partial.fold is Fold.SPREAD]

    def add(self, events: pa.RecordBatch, value: Callable[[Expr], pa.Array]) -> None:
        """Add events; `value` evaluates an expression for them."""
        values = self._values(events, value)
        if not values.num_rows:
            return
        self._parts.append(values)
        self.events += values.num_rows

    def fold_many(self) -> None:
        """Fold the events, if they are at least as many as the panes, so that folding is cheap."""
        if self.events >= self._folded:
            self._fold()

    def folded(self) -> pa.Table:
        """Return the panes of all events, and forget them."""
        self._fold()
        panes = pa.Table.from_batches(self._parts, self._columns)
        self._parts, self._folded = [], 0
        for name, strings in self._dictionaries.items():
            panes = panes.set_column(panes.column_names.index(name), name, strings.take(panes[name]))
        for partial in self._spreads:
            place = panes.column_names.index(partial.name)
            panes = panes.set_column(place, partial.name, spreads.squares(panes[partial.name]))
        return panes

    def _values(self, events: pa.RecordBatch, value: Callable[[Expr], pa.Array]) -> pa.RecordBatch:
        """Return the pane, the keys and what is folded of the events that meet the conditions."""
        times = events["_system_timestamp"].to_numpy()
        panes = times + (self.aggregation.offset - times) % self.aggregation.length
        columns = [pa.array(panes), *(self._key(key, events, value) for key in self.aggregation.keys)]
        columns += [_folded_value(partial, value(partial.argument)) for partial in self.aggregation.partials]
        values = pa.RecordBatch.from_arrays(columns, schema=self._columns)
        if not self.aggregation.conditions:
            return values
        return values.filter(value(Expr(Op.AND, self.aggregation.conditions)))

    def _key(self, key: Key, events: pa.RecordBatch, value: Callable[[Expr], pa.Array]) -> pa.Array:
        """Return a key of the events, as numbers if it came with them."""
        column = events[key.value.name] if key.value.op is Op.COLUMN else value(key.value)
        if not pa.types.is_dictionary(column.type):
            return column
        self._dictionaries[key.name] = column.dictionary
        return column.indices

    def _numbered(self, name: str, column: pa.ChunkedArray) -> Numbered:
        if name not in self._dictionaries:
            return numbered(column)
        null = len(self._dictionaries[name])
        return column.fill_null(null).to_numpy().astype(np.int64), null + 1

    def _fold(self) -> None:
        if not self.events:
            return
        table = pa.Table.from_batches(self._parts, self._columns)
        by = ["_pane", *(key.name for key in self.aggregation.keys)]
        codes = joint_codes([self._numbered(name, table[name]) for name in by])
        keys = table.select(by).take(pa.array(first_rows(codes)))
        partials = merged(table, codes, self.aggregation.partials, spreads.continue_spreads)
        panes = pa.Table.from_arrays([*keys.columns, *partials.columns], schema=self._columns)
        self._parts = panes.combine_chunks().to_batches()
        self.events, self._folded = 0, len(panes)


def merged(
    table: pa.Table, codes: NDArray[np.int64], partials: Sequence[Partial], merge_spreads: spreads.Loop
) -> pa.Table:
    """Return the partial aggregates of each group, merged in the order of the rows.

    `codes` has the number of each row's group. Raise RunError if a sum leaves the bigints.
    """
    count = int(codes.max(initial=-1)) + 1
    for partial in partials:
        if partial.fold is Fold.SUM and pa.types.is_integer(partial.type):
            _require_bigints(table[partial.name], codes)
    values = [_merged_values(partial, table[partial.name], codes, count, merge_spreads) for partial in partials]
    return pa.table(values, [partial.name for partial in partials])


def _merged_values(
    partial: Partial, values: pa.ChunkedArray, codes: NDArray[np.int64], count: int, merge_spreads: spreads.Loop
) -> pa.Array | pa.ChunkedArray:
    """Return the values of each group, merged in the order of the rows; `codes` has the number of each row's group."""
    match partial.fold:
        case Fold.COUNT | Fold.SUM:
            return _sums(values, codes, count)
        case Fold.SPREAD:
            return spreads.merged(merge_spreads, values, codes, count)
    table = pa.table({_GROUP: codes, "": values})
    grouped = pa.TableGroupBy(table, _GROUP, use_threads=False).aggregate([("", partial.fold.value)])
    return grouped.sort_by(_GROUP)[f"_{partial.fold.value}"]


def _sums(values: pa.ChunkedArray, codes: NDArray[np.int64], count: int) -> pa.Array:
    """Return the sum of each group; NULL if it has no values. NumPy adds floats in the order of the rows."""
    numbers = values.fill_null(0).to_numpy()
    if pa.types.is_floating(values.type):
        sums = np.bincount(codes, numbers, count)
    else:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, codes, numbers)
    if not values.null_count:
        return pa.array(sums)
    return pa.array(sums, mask=np.bincount(codes, values.is_valid().to_numpy(), count) == 0)


def _folded_value(partial: Partial, argument: pa.Array) -> pa.Array:
    """Return what is folded for an event: its value or its spread, or for COUNT whether it has a value, as 1 or 0."""
    match partial.fold:
        case Fold.COUNT:
            return pc.is_valid(argument).cast(pa.int64())
        case Fold.SPREAD:
            return spreads.of_values(argument)
    return argument


def _require_bigints(values: pa.ChunkedArray, codes: NDArray[np.int64]) -> None:
    """Raise RunError if a sum of values by group leaves the bigints at some row, as it would in Spark's ANSI mode."""
    sizes: NDArray[np.float64] = np.abs(values.fill_null(0).to_numpy().astype(np.float64))
    if sizes.sum() < _BIGINT_BOUND:
        return
    totals: dict[int, int] = {}
    for group, value in zip(codes.tolist(), values.to_pylist(), strict=True):
        total = totals[group] = totals.get(group, 0) + (value or 0)
        if not _BIGINTS.min <= total <= _BIGINTS.max:
            raise QueryError("SUM: the sum of bigints is too large for a bigint: CAST the values to float")
