"""TopOne, CollectTop, Collect, and the events of JavaScript aggregates: what they take of the rows of windows."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.json_arrays import json_arrays
from recapture.evaluate.ranking import Picks, Ranking, RowRanges
from recapture.evaluate.ranks import sort_keys
from recapture.evaluate.windowed import Columns, WindowedRows
from recapture.javascript.columns import DATE
from recapture.query.plan.aggregates import Aggregate, AggregateFunction
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, UNIX_EPOCH

_TIMESTAMP = pa.struct([(DATE, pa.int64())])
BATCH_EVENTS = 1 << 20
"""Number of events that are collected at once, in all windows; one window may have more."""
BATCH_BYTES = 1 << 30
"""Number of bytes that the texts collected at once have at most."""


def collected(aggregate: Aggregate, columns: Columns, windowed: WindowedRows) -> pa.ChunkedArray:
    """Return what an aggregate collects in each window of a GROUP BY: see `ranked`."""
    assert aggregate.argument is not None
    values, rows = columns(aggregate.argument), windowed.panes.rows
    order = _order(aggregate, values, columns, windowed)
    ranking = Ranking(order, windowed.codes, windowed.ranges, by_time=not aggregate.orderings)
    return ranked(aggregate, values, windowed.rows.times, rows, ranking, windowed.ranges)


def ranked(
    aggregate: Aggregate,
    values: pa.Array,
    times: NDArray[np.int64],
    rows: NDArray[np.int64],
    ranking: Ranking,
    windows: RowRanges,
) -> pa.ChunkedArray:
    """Return what an aggregate takes of the values in each window: one of them, JSON, or a list of events.

    `rows` are the places of the ranked rows in `values` and `times`. Each window has rows. An event that a JavaScript
    aggregate takes is a struct of `value` and `timestamp`; see `javascript.columns`.
    """
    if aggregate.function is AggregateFunction.TOPONE:
        count = len(windows.first)
        first = ranking.picked(windows, Picks(np.arange(count + 1), np.zeros(count, np.int64)))
        return pa.chunked_array([values.take(pa.array(rows[first]))])
    chunks = (
        _lists(aggregate.function, values, times, rows[picked], picks)
        for picked, picks in _batches(aggregate.limit, values, ranking, windows)
    )
    nothing = np.zeros(0, np.int64)
    none = _lists(aggregate.function, values[:0], times[:0], nothing, Picks(np.zeros(1, np.int64), nothing))
    return pa.chunked_array([none, *chunks])


def event_type(value: pa.DataType) -> pa.DataType:
    """Return the type of an event that a JavaScript aggregate takes."""
    return pa.struct([("value", value), ("timestamp", _TIMESTAMP)])


def _order(aggregate: Aggregate, values: pa.Array, columns: Columns, windowed: WindowedRows) -> list[NDArray[np.int64]]:
    """Return what orders the rows of a window; the last comes first.

    It is what ORDER BY says, then time, arrival and partition, then the order in which the rows came. If they came in
    no order, it is the value.
    """
    rows = windowed.panes.rows
    keys = [] if aggregate.ordered else [*_compared(values.take(pa.array(rows)))]
    keys += [column[rows] for column in (windowed.rows.partitions, windowed.arrivals, windowed.rows.times)]
    for ordering in reversed(aggregate.orderings):
        keys += sort_keys(columns(ordering.value).take(pa.array(rows)), descending=ordering.descending)
    return keys


def _compared(values: pa.Array) -> Iterator[NDArray[np.int64]]:
    """Yield what orders values, NULL first, and structs by their fields; the last comes first."""
    if pa.types.is_struct(values.type):
        for field in reversed(values.flatten()):
            yield from _compared(field)
    else:
        yield from sort_keys(values)


def _batches(
    limit: int, values: pa.Array, ranking: Ranking, windows: RowRanges
) -> Iterator[tuple[NDArray[np.int64], Picks]]:
    """Yield the rows that windows collect, in order, and their places in each window. Each batch has some windows."""
    counts = windows.last - windows.first
    counts = np.minimum(counts, limit) if limit else counts
    longest = (
        pc.max(pc.binary_length(values)).as_py() if isinstance(values, pa.StringArray | pa.LargeStringArray) else None
    )
    most = max(1, min(BATCH_EVENTS, BATCH_BYTES // (longest or 1)))
    batch = np.cumsum(counts) // most
    for windows_of_batch in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(batch)) + 1):
        first, last = windows.first[windows_of_batch], windows.last[windows_of_batch]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[windows_of_batch])])
        picks = Picks(starts, np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts)))
        yield ranking.picked(RowRanges(first, last), picks), picks


def _lists(
    function: AggregateFunction, values: pa.Array, times: NDArray[np.int64], rows: NDArray[np.int64], picks: Picks
) -> pa.Array:
    """Return the list of the values of each window, as JSON unless the function is defined by the user.

    `rows` are the places of the picked values and of their times.
    """
    if function is AggregateFunction.COLLECT:
        return json_arrays(values, rows, picks.starts)
    taken = values.take(pa.array(rows))
    if function is AggregateFunction.COLLECTTOP:
        ranks = pa.array(picks.places + 1).cast(pa.string())
        ranked_values = pc.binary_join_element_wise('{"rank":', ranks, ',"value":', taken, "}", "")
        return json_arrays(ranked_values, np.arange(len(rows)), picks.starts)
    milliseconds = pa.array(times[rows] // TICKS_PER_MILLISECOND - UNIX_EPOCH // TICKS_PER_MILLISECOND)
    timestamps = pa.StructArray.from_arrays([milliseconds], fields=list(_TIMESTAMP))
    events = pa.StructArray.from_arrays([taken, timestamps], fields=list(event_type(taken.type)))
    return pa.ListArray.from_arrays(pa.array(picks.starts.astype(np.int32)), events)
