"""Analytic functions: what a row takes from the rows before it (docs/time-model.md, section 4.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.errors import QueryError
from recapture.evaluate import history_loops
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.collected import ranked
from recapture.evaluate.ranking import Ranking, RowRanges
from recapture.evaluate.ranks import ranks, sort_keys
from recapture.evaluate.values import evaluated, taken, valid
from recapture.ordering.keys import arrival_order, key_codes, partition_ranks
from recapture.ordering.radix import sorted_order
from recapture.query.plan.aggregates import COLLECTIONS, Aggregate, AggregateFunction
from recapture.query.plan.analytics import (
    ROW,
    Analytics,
    EarlierValue,
    History,
    HistoryAggregate,
    IsFirst,
    result_name,
)
from recapture.query.plan.expressions import NULL, Expr, bigint

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LARGEST = np.iinfo(np.int64).max


def analysed(rows: pa.Table, analytics: Analytics, bounds: SliceBounds, extra_look_back: int) -> pa.Table:
    """Return rows, each with the results `@f0`, … of the analytic functions of a SELECT.

    Rows at or before slice start - `extra_look_back` ticks are left out, because their history was not read
    completely. Raise RunError if a sum leaves the bigints.
    """
    histories = Histories.of(rows, analytics, bounds)
    is_kept = histories.times > bounds.start - extra_look_back
    kept = pa.array(is_kept)
    rows = histories.rows.filter(kept)
    columns: list[pa.Array | pa.ChunkedArray] = []
    for function in analytics.functions:
        match function:
            case EarlierValue():
                found = histories.earlier_rows(function)[is_kept]
                values = taken(histories.values[value_of(function)], found)
                columns.append(_with_default(rows, values, found < 0, function.default, bounds))
            case IsFirst():
                columns.append(pa.array(histories.first_flags(function)[is_kept]))
            case HistoryAggregate():
                columns.append(histories.aggregate(function).filter(kept))
    for number, column in enumerate(columns):
        rows = rows.append_column(result_name(number), column)
    return rows


def _inputs(analytics: Analytics) -> list[Expr]:
    """Return the distinct expressions that analytic functions read of each row."""
    inputs: dict[Expr, None] = {}
    for function in analytics.functions:
        values = [] if isinstance(function, IsFirst) else [value_of(function)]
        if isinstance(function, HistoryAggregate):
            values += [ordering.value for ordering in function.aggregate.orderings]
        inputs |= dict.fromkeys([*function.history.keys, _met(function.history), *values])
    return list(inputs)


def _met(history: History) -> Expr:
    """Return 1 for a row that meets the condition of a history, otherwise NULL."""
    return history.met(bigint(1))


def value_of(function: EarlierValue | HistoryAggregate) -> Expr:
    """Return the value that a function takes or aggregates in each row; NULL unless the row meets the condition."""
    value = function.value if isinstance(function, EarlierValue) else function.aggregate.prepared()
    return function.history.met(value)


def _with_default(
    rows: pa.Table, values: pa.ChunkedArray, missing: Bools, default: Expr, bounds: SliceBounds
) -> pa.ChunkedArray:
    """Return the values, and the default where a value is missing."""
    if default == NULL:
        return values
    mask = pa.array(missing)
    [defaults] = evaluated(rows.filter(mask), [default], bounds)
    return pc.replace_with_mask(values.combine_chunks(), mask, defaults.combine_chunks().cast(values.type))


@dataclass(frozen=True)
class RowOrder:
    """Rows by key and time."""

    codes: Int64s
    """Number of each row's key."""
    places: Int64s
    """Rows in the order of key, time, arrival, partition and place in the partition."""


@dataclass
class Histories:
    """The histories of rows."""

    rows: pa.Table
    ties: Sequence[str]
    """Columns that order rows of one partition that arrived at the same time, after the column `_row`."""
    values: Mapping[Expr, pa.ChunkedArray]
    """Values of the expressions of `_inputs`."""
    orders: dict[tuple[Expr, ...], RowOrder] = field(default_factory=dict)
    """Orders of the rows that have been computed, by the keys of their histories."""

    @classmethod
    def of(cls, rows: pa.Table, analytics: Analytics, bounds: SliceBounds, keys: Sequence[Expr] = ()) -> "Histories":
        """Return the histories of rows, which get the column `_row` if they come in order and lack it.

        `keys` are further expressions that are keys of histories.
        """
        if analytics.ties is None:
            rows = rows.append_column(ROW, pa.array(np.arange(len(rows))))
        inputs = list(dict.fromkeys([*_inputs(analytics), *keys]))
        ties = [tie for tie in analytics.ties or () if tie != ROW]
        return cls(rows, ties, dict(zip(inputs, evaluated(rows, inputs, bounds), strict=True)))

    @property
    def times(self) -> Int64s:
        times: Int64s = self.rows["_system_timestamp"].to_numpy()
        return times

    def order(self, history: History) -> RowOrder:
        """Return the order of the rows by the keys of a history."""
        order = self.orders.get(history.keys)
        if order is None:
            keys = [self.values[key] for key in history.keys]
            codes = key_codes(keys) if keys else np.zeros(len(self.rows), np.int64)
            order = self.orders[history.keys] = RowOrder(codes, self._places(codes))
        return order

    def met(self, history: History) -> Bools:
        """Return which rows meet the condition of a history."""
        if history.when is None:
            return np.ones(len(self.rows), np.bool_)
        return valid(self.values[_met(history)])

    def earlier_rows(self, function: EarlierValue) -> Int64s:
        """Return the row that LAG or LAST finds for each row; -1 for none."""
        history = function.history
        return self._of_loop(history_loops.nth_earlier, history, self.met(history), function.steps)

    def first_flags(self, function: IsFirst) -> Int64s:
        """Return 1 for the rows that ISFIRST finds, otherwise 0."""
        return self._of_loop(history_loops.is_first, function.history, self.met(function.history))

    def aggregate(self, function: HistoryAggregate) -> pa.Array | pa.ChunkedArray:
        """Return the aggregate of each row's history. Raise RunError if a sum leaves the bigints."""
        if function.aggregate.function in COLLECTIONS:
            return self._collected(function)
        history = function.history
        column = self.values[value_of(function)].combine_chunks()
        counted = column.is_valid().to_numpy(zero_copy_only=False)
        counts = self._of_loop(history_loops.counts, history, counted)
        match function.aggregate.function:
            case AggregateFunction.COUNT:
                return pa.array(counts)
            case AggregateFunction.MIN | AggregateFunction.MAX as extreme:
                numbers, values_of = ranks(column)
                numbers = numbers if extreme is AggregateFunction.MIN else ~numbers
                least = self._of_loop(history_loops.least, history, np.where(counted, numbers, _LARGEST))
                chosen = least if extreme is AggregateFunction.MIN else ~least
                return values_of(np.where(counts > 0, chosen, 0), counts == 0)
        values = column.fill_null(pa.scalar(0, column.type)).to_numpy(zero_copy_only=False)
        try:
            totals = self._of_loop(history_loops.sums, history, counted, values).view(values.dtype)
        except OverflowError as error:
            raise QueryError("SUM: the sum of bigints is too large for a bigint: CAST the values to float") from error
        if function.aggregate.function is AggregateFunction.AVG:
            totals = totals / np.maximum(counts, 1)
        return pa.array(totals, mask=counts == 0)

    def _collected(self, function: HistoryAggregate) -> pa.ChunkedArray:
        """Return what Collect, TopOne or CollectTop takes of each row's history."""
        if not len(self.rows):
            return self.values[value_of(function)]
        history, aggregate = function.history, function.aggregate
        order, met = self.order(history), self.met(history)
        members = order.places[met[order.places]]
        ends = np.cumsum(met[order.places].astype(np.int64))
        sizes = self._of_loop(history_loops.counts, history, met)[order.places]
        has_members = sizes > 0
        windows = RowRanges((ends - sizes)[has_members], ends[has_members])
        values = self.values[value_of(function)].take(pa.array(members)).combine_chunks()
        keys = self.sort_keys(aggregate, members)
        ranking = Ranking(keys, order.codes[members], windows, by_time=not aggregate.orderings)
        results = ranked(aggregate, values, self.times[members], ranking, windows)
        places = np.full(len(self.rows), -1)
        places[order.places[has_members]] = np.arange(len(windows.first))
        found = taken(results, places)
        return found if aggregate.function is AggregateFunction.TOPONE else found.fill_null("[]")

    def sort_keys(self, aggregate: Aggregate, rows: Int64s) -> list[Int64s]:
        """Return what orders some rows by the ORDER BY of an aggregate; the last comes first."""
        columns = ((self.values[by.value].take(pa.array(rows)), by.descending) for by in reversed(aggregate.orderings))
        return [
            key for column, descending in columns for key in sort_keys(column.combine_chunks(), descending=descending)
        ]

    def _of_loop(self, loop: Callable[..., Int64s], history: History, *arguments: object) -> Int64s:
        """Return the result of a loop over the rows of a history; nothing is compiled if there are none."""
        if not len(self.rows):
            return np.empty(0, np.int64)
        order = self.order(history)
        return loop(order.places, order.codes, self.times, *arguments, history.length)

    def _places(self, codes: Int64s) -> Int64s:
        """Return the rows in order; `codes` are the numbers of their keys."""
        places = arrival_order(self.rows, codes)
        if not self.ties:
            return places
        numbers = [codes, self.times, self.rows["_arrival"].to_numpy(), partition_ranks(self.rows["_partition"])]
        if ROW in self.rows.column_names:
            numbers.append(self.rows[ROW].to_numpy())
        differs = np.logical_or.reduce([np.diff(values[places]) != 0 for values in numbers])
        tied = np.flatnonzero(~np.append(True, differs) | ~np.append(differs, True))
        if len(tied):
            rows = places[tied]
            groups = np.cumsum(np.append(True, differs))[tied]
            keys = [
                key
                for name in reversed(self.ties)
                for key in sort_keys(self.rows[name].take(pa.array(rows)).combine_chunks())
            ]
            places[tied] = rows[sorted_order([*keys, groups])]
        return places
