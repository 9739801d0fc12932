"""JOIN and LEFT JOIN of streams, and look-ups in reference data (docs/time-model.md, sections 4.4 and 4.5).

A joined row is the number of a row of each side until its columns are taken, at the end. The rows of two sides are
paired by key and by range of time. What else ON demands is computed for the pairs, a bounded number at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate import join_loops
from recapture.evaluate.analytics import analysed
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.conditions import On, parts_of, side_of
from recapture.evaluate.expressions import project
from recapture.evaluate.values import evaluated, flags, has_none, taken, valid
from recapture.ordering.keys import concatenated, key_codes
from recapture.ordering.radix import sorted_order
from recapture.query.model import UNANCHORED_COLUMN
from recapture.query.plan.analytics import ROW
from recapture.query.plan.expressions import Expr, column, columns_of
from recapture.query.plan.joins import VALIDITY, Join, JoinedTable, Lookup, side_column
from recapture.time_model.joins import TimeBound

Int64s = NDArray[np.int64]

MOST_PAIRS = 1 << 20
"""Largest number of pairs for which a condition is computed at a time."""
_TIME = "_system_timestamp"
_ARRIVAL = "_arrival"
_PARTITION = "_partition"
_PAIR = "@pair"
_BIGINTS = np.iinfo(np.int64)


def joined(table: JoinedTable, read: Callable[[str], pa.Table], bounds: SliceBounds, extra_look_back: int) -> pa.Table:
    """Return the rows of the JOINs of a FROM whose System.Timestamps are in (start - `extra_look_back`, end].

    `read` returns the rows of a side by the name of its table; those of reference data have the columns of VALIDITY.
    The columns are those of JoinedTable without the bounds of the slice.

    The rows are in the order of the rows of the first side, then of the next. Those of a new stream come by time and
    arrival. Those of reference data are in Spark's order: the last one first, unless ON compares no keys.
    """
    first, *others = (_side(table, number, read, bounds, extra_look_back) for number in range(len(table.sides)))
    rows = _Rows((first,), (np.arange(len(first)),), first[_TIME].to_numpy())
    for new, join in zip(others, table.joins, strict=True):
        rows = _joined(rows, new, join, bounds) if isinstance(join, Join) else _looked_up(rows, new, join, bounds)
    return _output(table, rows.within(bounds.start - extra_look_back, bounds.end))


@dataclass(frozen=True)
class _Rows:
    """Joined rows of the first sides."""

    sides: tuple[pa.Table, ...]
    """Rows of each side."""
    places: tuple[Int64s, ...]
    """Number of the row of each side in each joined row; -1 for none."""
    times: Int64s
    """System.Timestamp of each joined row."""

    def at(self, chosen: Int64s) -> "_Rows":
        """Return some of the rows, by number."""
        return _Rows(self.sides, tuple(places[chosen] for places in self.places), self.times[chosen])

    def within(self, start: int, end: int) -> "_Rows":
        """Return the rows whose times are in (start, end]."""
        is_within = (self.times > start) & (self.times <= end)
        return self if is_within.all() else self.at(np.flatnonzero(is_within))

    def paired(self, chosen: Int64s, side: pa.Table, places: Int64s, times: Int64s) -> "_Rows":
        """Return some of the rows, by number, each with a row of one more side, and with other times."""
        return _Rows((*self.sides, side), (*(own[chosen] for own in self.places), places), times)

    def integers(self, number: int, name: str) -> Int64s:
        """Return an integer of a side's rows, such as the time; 0 for a side without a row."""
        places, values = self.places[number], self.sides[number][name].to_numpy()
        return (np.append(values, 0) if has_none(places) else values)[places]

    def arrivals(self, number: int) -> Int64s:
        """Return the arrivals of a side's rows; the least bigint for a side without a row."""
        arrivals, places = self.integers(number, _ARRIVAL), self.places[number]
        return np.where(places < 0, _BIGINTS.min, arrivals) if has_none(places) else arrivals

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column by its name in joined rows, such as 0.x."""
        number = side_of(name)
        return taken(self.sides[number][name.removeprefix(side_column(number, ""))], self.places[number])

    def columns(self, names: Iterable[str]) -> pa.Table:
        """Return columns by their names in joined rows."""
        return pa.table({name: self.column(name) for name in names})


def _side(
    table: JoinedTable, number: int, read: Callable[[str], pa.Table], bounds: SliceBounds, extra_look_back: int
) -> pa.Table:
    """Return the rows of a side, as far back as its look-back."""
    side, rows = table.sides[number], read(table.sides[number].table)
    if side.is_reference:
        return rows
    look_back = extra_look_back + table.look_backs[number]
    if side.analytics is not None:
        rows = analysed(rows, side.analytics, bounds, look_back)
    is_read = rows[_TIME].to_numpy() > bounds.start - look_back
    return rows if is_read.all() else rows.filter(pa.array(is_read))


def _joined(rows: _Rows, new: pa.Table, join: Join, bounds: SliceBounds) -> _Rows:
    """Return the rows of a JOIN with a stream."""
    on, times = parts_of(join.condition, len(rows.sides)), new[_TIME].to_numpy()
    span = _Span(times, *_limits(rows, on.bounds))
    on = on if join.latest_match is None else on.without_earlier_guard()
    left, right = _matches(rows, new, on, span, new[_ARRIVAL].to_numpy(), bounds)
    pairs = rows.paired(left, new, right, np.maximum(rows.times[left], times[right]))
    if join.latest_match is None:
        return pairs
    unmatched = _others(left, len(rows.times))
    alone = rows.at(unmatched)
    [latest] = _values(alone, [join.latest_match], bounds)
    return _merged(left, pairs, unmatched, alone, np.maximum(alone.times, latest.to_numpy()))


def _looked_up(rows: _Rows, new: pa.Table, lookup: Lookup, bounds: SliceBounds) -> _Rows:
    """Return the rows of a JOIN with reference data. A row looks into the version that is in force at its time."""
    on = parts_of(lookup.condition, len(rows.sides))
    on = on.without_earlier_guard() if lookup.outer else on
    versions, in_force = _versions(new, rows.times)
    order = np.arange(len(new))
    left, right = _matches(rows, new, on, _Span(versions, in_force, in_force), -order if on.keys else order, bounds)
    pairs = rows.paired(left, new, right, rows.times[left])
    if not lookup.outer:
        return pairs
    unmatched = _others(left, len(rows.times))
    alone = rows.at(unmatched)
    return _merged(left, pairs, unmatched, alone, alone.times)


@dataclass(frozen=True)
class _Span:
    """A number of a new row that has to be in a range of the joined row: its time, or its version."""

    numbers: Int64s
    """Number of each new row."""
    lows: Int64s
    """Start of the range of each joined row, inclusive."""
    highs: Int64s
    """End of the range of each joined row, inclusive."""


def _limits(rows: _Rows, time_bounds: Iterable[TimeBound]) -> tuple[Int64s, Int64s]:
    """Return the earliest and the latest time of a new row that matches each joined row."""
    lows, highs = np.full(len(rows.times), _BIGINTS.min), np.full(len(rows.times), _BIGINTS.max)
    for bound in time_bounds:
        times = rows.integers(bound.side, _TIME)
        if bound.low is not None:
            lows = np.maximum(lows, times + bound.low)
        if bound.high is not None:
            highs = np.minimum(highs, times + bound.high)
        highs = np.where(rows.places[bound.side] < 0, _BIGINTS.min, highs)
    return lows, highs


def _versions(reference: pa.Table, times: Int64s) -> tuple[Int64s, Int64s]:
    """Return the version of each row of reference data, and the version in force at each time.

    They are numbers from 0. -2 stands for a version that is never in force, -1 for a time at which none is. Raise
    ValueError if two versions are in force at one time.
    """
    starts, ends = (reference[name].to_numpy() for name in VALIDITY)
    is_ever = starts < ends
    begin, first, numbers = np.unique(starts[is_ever], return_index=True, return_inverse=True)
    end = ends[is_ever][first]
    if (end[numbers] != ends[is_ever]).any() or (end[:-1] > begin[1:]).any():
        raise ValueError("versions of reference data overlap")
    versions = np.full(len(starts), -2)
    versions[is_ever] = numbers
    places = np.searchsorted(begin, times, side="right") - 1
    return versions, np.where(times < np.append(end, _BIGINTS.min)[places], places, -1)


def _matches(
    rows: _Rows, new: pa.Table, on: On, span: _Span, tie: Int64s, bounds: SliceBounds
) -> tuple[Int64s, Int64s]:
    """Return the pairs for which ON is true: the number of the joined row, and that of the new row.

    They come by joined row, then by the number of the span, then by `tie`.
    """
    new = new.rename_columns([side_column(len(rows.sides), name) for name in new.column_names])
    candidates = _candidates(*_codes(rows, new, on, bounds), span, tie, None if on.rest is None else MOST_PAIRS)
    if on.rest is not None:
        candidates = _fulfilling(on.rest, rows, new, candidates, bounds)
    lefts, rights = zip(*candidates, strict=True)
    return concatenated(lefts), concatenated(rights)


def _candidates(
    codes: Int64s, new_codes: Int64s, span: _Span, tie: Int64s, most: int | None
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the pairs with equal keys and a number in the range, up to `most` at a time; maybe none, but once.

    Nothing is compiled if one side has no rows.
    """
    if not len(codes) or not len(new_codes):
        yield np.empty(0, np.int64), np.empty(0, np.int64)
        return
    order = sorted_order([tie, span.numbers, new_codes])
    # The rows of key c begin after those of smaller keys, and after those without a key.
    starts = np.cumsum(np.bincount(new_codes + 1, minlength=int(codes.max()) + 2))
    firsts, ends = join_loops.ranges(codes, span.lows, span.highs, starts, order, span.numbers)
    remaining = int((ends - firsts).sum())
    row = skipped = 0
    is_first = True
    while is_first or remaining > 0:
        size = remaining if most is None else min(remaining, most)
        left, right, row, skipped = join_loops.pairs(order, firsts, ends, row, skipped, size)
        yield left, right
        remaining -= len(left)
        is_first = False


def _fulfilling(
    condition: Expr, rows: _Rows, new: pa.Table, pairs: Iterable[tuple[Int64s, Int64s]], bounds: SliceBounds
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield those of the pairs for which a condition is true."""
    names = columns_of(condition)
    earlier = {name: rows.column(name) for name in names if name not in new.column_names}
    for left, right in pairs:
        columns = {name: taken(earlier[name], left) if name in earlier else taken(new[name], right) for name in names}
        table = pa.table({_PAIR: np.arange(len(left)), **columns})
        chosen = project(table, [(_PAIR, column(_PAIR))], condition, bounds)[_PAIR].to_numpy()
        yield left[chosen], right[chosen]


def _codes(rows: _Rows, new: pa.Table, on: On, bounds: SliceBounds) -> tuple[Int64s, Int64s]:
    """Return numbers for the keys of joined rows and of new rows: equal for equal keys, -1 if a part is NULL."""
    count, new_count = len(rows.times), len(new)
    if not on.keys:
        return np.zeros(count, np.int64), np.zeros(new_count, np.int64)
    earlier, added = zip(*on.keys, strict=True)
    read = {name for key in (*earlier, *([on.earlier_guard] if on.earlier_guard else [])) for name in columns_of(key)}
    columns = rows.columns(sorted(read))
    values = _guarded(columns, earlier, on.earlier_guard, bounds), _guarded(new, added, on.new_guard, bounds)
    both = [_chained(*parts) for parts in zip(*values, strict=True)]
    codes = np.where(np.logical_and.reduce([valid(column) for column in both]), key_codes(both), -1)
    return codes[:count], codes[count:]


def _guarded(rows: pa.Table, keys: Sequence[Expr], guard: Expr | None, bounds: SliceBounds) -> list[pa.ChunkedArray]:
    """Return keys, which are NULL where the guard is not true: `b.m <> 0 AND a.n = 7 / b.m` never divides by zero."""
    if guard is None or all(key.is_column for key in keys):
        return evaluated(rows, keys, bounds)
    numbered = rows.append_column(_PAIR, pa.array(np.arange(len(rows))))
    chosen = project(numbered, [(_PAIR, column(_PAIR))], guard, bounds)[_PAIR].to_numpy()
    places = np.full(len(rows), -1)
    places[chosen] = np.arange(len(chosen))
    return [taken(values, places) for values in evaluated(rows.take(chosen), keys, bounds)]


def _chained(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of two columns; a bigint that is compared with a float is one."""
    if left.type != right.type and pa.types.is_floating(left.type) | pa.types.is_floating(right.type):
        left, right = left.cast(pa.float64()), right.cast(pa.float64())
    return pa.chunked_array([*left.chunks, *right.chunks], left.type)


def _values(rows: _Rows, expressions: Sequence[Expr], bounds: SliceBounds) -> list[pa.ChunkedArray]:
    """Return the values of expressions over joined rows, each of which reads a column."""
    return evaluated(
        rows.columns({name: None for expression in expressions for name in columns_of(expression)}), expressions, bounds
    )


def _others(numbers: Int64s, count: int) -> Int64s:
    """Return the numbers below `count` that are not among some, in order."""
    is_other = np.ones(count, np.bool_)
    is_other[numbers] = False
    return np.flatnonzero(is_other)


def _merged(left: Int64s, pairs: _Rows, unmatched: Int64s, alone: _Rows, times: Int64s) -> _Rows:
    """Return pairs and rows without a match by the number of the row that they come from: `left` and `unmatched`."""
    order = np.argsort(np.concatenate([left, unmatched]), kind="stable")
    *earlier, new = pairs.places
    places = [np.concatenate(both)[order] for both in zip(earlier, alone.places, strict=True)]
    added = np.append(new, np.full(len(unmatched), -1))[order]
    return _Rows(pairs.sides, (*places, added), np.append(pairs.times, times)[order])


def _output(table: JoinedTable, rows: _Rows) -> pa.Table:
    """Return the columns of joined rows."""
    streams = [number for number, side in enumerate(table.sides) if not side.is_reference]
    arrivals = [rows.arrivals(number) for number in streams]
    partition = rows.column(side_column(0, _PARTITION)) if len(streams) == 1 else pa.repeat("", len(rows.times))
    columns = {_PARTITION: partition, _TIME: rows.times, _ARRIVAL: reduce(np.maximum, arrivals)}
    marked = [number for number in streams if UNANCHORED_COLUMN in rows.sides[number].column_names]
    if marked:
        marks = [rows.column(side_column(number, UNANCHORED_COLUMN)) for number in marked]
        columns[UNANCHORED_COLUMN] = np.logical_or.reduce([flags(mark) for mark in marks])
    if len(streams) == 1 and ROW in rows.sides[0].column_names:
        columns[ROW] = rows.column(side_column(0, ROW))
    names = [side_column(number, name) for number, side in enumerate(table.sides) for name in side.columns]
    return pa.table({**columns, **{name: rows.column(name) for name in names}})
