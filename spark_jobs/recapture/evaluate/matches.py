"""MATCH_RECOGNIZE: the matches of a pattern in the rows of a table (docs/time-model.md, section 4.6).

All matches are searched at once, one row further in each round. A thread is one way in which a match can go on; the
threads of a match come in the order of preference. A condition that reads only its row is computed once for each row
that a thread reaches.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.errors import QueryError
from recapture.evaluate.analytics import Histories
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.ranks import ranks
from recapture.evaluate.values import evaluated, flags, taken
from recapture.formats.duckdb_sql import one_array
from recapture.ordering.keys import key_codes
from recapture.query.model import UNANCHORED_COLUMN
from recapture.query.plan.analytics import Analytics, History
from recapture.query.plan.expressions import Expr, columns_of
from recapture.query.plan.matches import CLASSIFIER, MatchAggregate, MatchedTable, Taken, aggregate_name

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

STARTS_AT_ONCE = 1 << 17
"""Number of matches that are searched at once, so that the memory for the search is small."""
MOST_WAYS = 1000
"""Largest number of threads of a match."""
_TIME = "_system_timestamp"
_UNKNOWN, _FALSE, _TRUE = 0, 1, 2


@dataclass(frozen=True)
class Matches:
    """Matches in rows that are ordered by key and time."""

    rows: pa.Table
    """Rows in this order."""
    first: Int64s
    """First row of each match."""
    last: Int64s
    """Last row of each match."""
    taken: Int64s
    """Row that each aggregate takes, by aggregate and match; -1 for none."""
    classes: pa.Array
    """JSON with the names of the variables of the rows of each match; NULL if nothing reads them."""

    @property
    def times(self) -> pa.ChunkedArray:
        """System.Timestamp of each match."""
        return self.rows[_TIME].take(pa.array(self.last))


def matched(table: MatchedTable, rows: pa.Table, bounds: SliceBounds, extra_look_back: int) -> pa.Table:
    """Return the matches whose System.Timestamps are in (start - `extra_look_back`, end].

    Raise RunError if a condition or a measure fails for a value, or if a match can go on in too many ways.
    """
    return measured(table, matches_in(table, rows, bounds, extra_look_back), bounds)


def measured(table: MatchedTable, matches: Matches, bounds: SliceBounds) -> pa.Table:
    """Return matches as rows with the columns of their measures."""
    values = _values(matches.rows, [aggregate.value for aggregate in table.aggregates], bounds)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {_TIME: matches.times, CLASSIFIER: matches.classes}
    for number, value in enumerate(values):
        columns[aggregate_name(number)] = taken(value, matches.taken[number])
    measures = evaluated(pa.table(columns), [value for _, value in table.measures], bounds) if table.measures else []
    made: dict[str, pa.Array | pa.ChunkedArray] = {
        "_partition": pa.repeat(pa.scalar("", pa.string()), len(matches.last)),
        _TIME: columns[_TIME],
        "_arrival": columns[_TIME],
    }
    if UNANCHORED_COLUMN in matches.rows.column_names:
        marks = np.append(0, np.cumsum(flags(matches.rows[UNANCHORED_COLUMN])))
        made[UNANCHORED_COLUMN] = pa.array(marks[matches.last + 1] > marks[matches.first])
    return pa.table({**made, **{name: value for (name, _), value in zip(table.measures, measures, strict=True)}})


def matches_in(table: MatchedTable, rows: pa.Table, bounds: SliceBounds, extra_look_back: int) -> Matches:
    """Return the matches whose System.Timestamps are in (start - `extra_look_back`, end]."""
    after = bounds.start - extra_look_back
    times = rows[_TIME].to_numpy()
    rows = rows.filter(pa.array((times > after - table.length) & (times <= bounds.end)))
    history = History(table.keys, table.length, None)
    histories = Histories.of(rows, Analytics((), table.ties), bounds, table.keys)
    order = histories.order(history)
    rows = histories.rows.take(pa.array(order.places))
    search = _Search.of(table, rows, order.codes[order.places], after, bounds)
    for start in range(0, len(rows), STARTS_AT_ONCE):
        search.run(np.arange(start, min(start + STARTS_AT_ONCE, len(rows))))
    return search.result()


@dataclass(frozen=True)
class _Threads:
    """Ways in which matches go on, by match and preference."""

    starts: Int64s
    """First row of the match of each thread."""
    places: Int64s
    """Place of the automaton."""
    taken: Int64s
    """Row that each aggregate takes so far, by aggregate and thread; -1 for none."""
    before: Int64s
    """Number of the thread in the round before that it comes from."""

    def at(self, chosen: Int64s | Bools) -> "_Threads":
        return _Threads(self.starts[chosen], self.places[chosen], self.taken[:, chosen], self.before[chosen])


@dataclass(frozen=True)
class _Found:
    """The matches of one length."""

    first: Int64s
    last: Int64s
    taken: Int64s
    threads: Int64s
    """Number of the thread of each match in its round."""


@dataclass
class _Search:
    """The search for the matches that begin with each row."""

    table: MatchedTable
    rows: pa.Table
    """Rows by key and time."""
    after: int
    """Time after which a match ends, if it is not left out."""
    bounds: SliceBounds
    times: Int64s
    ends: Int64s
    """Row after the last one of the key of each row."""
    numbers: Sequence[tuple[Int64s, Bools] | None]
    """For MIN and MAX, numbers in the order of the values of the rows, the best least, and which are not NULL."""
    values: Sequence[pa.ChunkedArray]
    """Value of each aggregate in each row."""
    known: Int64s
    """What is known of the condition of each variable for each row, if it reads only the row."""
    found: list[_Found] = field(default_factory=list)
    """Matches, of each round some."""
    classes: list[pa.Array] = field(default_factory=list)
    """JSON of the classes of the matches, in their order."""

    def __post_init__(self) -> None:
        places = self.table.automaton.places
        self.variables = np.array([place.variable for place in places])
        self.is_complete = np.array([place.is_complete for place in places])
        self.next_counts = np.array([len(place.next) for place in places])
        self.next_starts = np.append(0, np.cumsum(self.next_counts))[:-1]
        self.next = np.array([number for place in places for number in place.next], np.int64)
        self.reads_aggregates = [self._aggregates_of(condition) for condition in self.table.conditions]
        self.shared = sorted({number for numbers in self.reads_aggregates for number in numbers})
        self.needs_classes = any(CLASSIFIER in columns_of(value) for _, value in self.table.measures)

    @classmethod
    def of(cls, table: MatchedTable, rows: pa.Table, codes: Int64s, after: int, bounds: SliceBounds) -> "_Search":
        """Return a search in rows that are ordered by key and time; `codes` are the numbers of their keys."""
        count = len(rows)
        values = _values(rows, [aggregate.value for aggregate in table.aggregates], bounds)
        numbers = [_numbers(aggregate, value) for aggregate, value in zip(table.aggregates, values, strict=True)]
        borders = np.flatnonzero(np.diff(codes)) + 1
        sizes = np.diff(np.concatenate([[0], borders, [count]]))
        ends = np.repeat(np.append(borders, count), sizes)
        times, known = rows[_TIME].to_numpy(), np.full((len(table.conditions), count), _UNKNOWN)
        return cls(table, rows, after, bounds, times, ends, numbers, values, known)

    def _aggregates_of(self, condition: Expr) -> list[int]:
        names = {aggregate_name(number): number for number in range(len(self.table.aggregates))}
        return [names[name] for name in columns_of(condition) if name in names]

    def run(self, starts: Int64s) -> None:
        """Search for the matches that begin with some rows."""
        begin = np.array(self.table.automaton.begin)
        threads = _Threads(
            np.repeat(starts, len(begin)),
            np.tile(begin, len(starts)),
            np.full((len(self.table.aggregates), len(starts) * len(begin)), -1),
            np.full(len(starts) * len(begin), -1),
        )
        trace: list[_Threads] = []
        found: list[_Found] = []
        while len(threads.starts):
            threads = self._within_reach(threads, len(trace))
            rows = threads.starts + len(trace)
            threads = self._fulfilling(self._taking(threads, rows), rows)
            threads = self._distinct(threads, int(starts[0]))
            found.append(self._complete(threads, len(trace)))
            trace.append(threads if self.needs_classes else threads.at(np.arange(0)))
            threads = self._further(threads)
        self.found += found
        if self.needs_classes:
            self.classes.append(self._classes(found, trace))

    def _within_reach(self, threads: _Threads, offset: int) -> _Threads:
        """Return the threads with a further row of the key within LIMIT DURATION of the first row."""
        starts, rows = threads.starts, threads.starts + offset
        is_reached = rows < self.ends[starts]
        is_reached[is_reached] = self.times[rows[is_reached]] < self.times[starts[is_reached]] + self.table.length
        return threads if is_reached.all() else threads.at(is_reached)

    def _taking(self, threads: _Threads, rows: Int64s) -> _Threads:
        """Return the threads with what the aggregates take if each takes its row."""
        variables, best = self.variables[threads.places], threads.taken.copy()
        for number, aggregate in enumerate(self.table.aggregates):
            chosen = np.flatnonzero(variables == aggregate.variable)
            row, before = rows[chosen], best[number, chosen]
            ordered = self.numbers[number]
            if aggregate.function is Taken.FIRST:
                row = np.where(before < 0, row, before)
            elif ordered is not None:
                order, counted = ordered
                row = np.where(counted[row] & ((before < 0) | (order[row] < order[before])), row, before)
            best[number, chosen] = row
        return _Threads(threads.starts, threads.places, best, threads.before)

    def _fulfilling(self, threads: _Threads, rows: Int64s) -> _Threads:
        """Return the threads whose variable has a condition that is true for the row."""
        variables, holds = self.variables[threads.places], np.zeros(len(rows), np.bool_)
        for variable, condition in enumerate(self.table.conditions):
            chosen = np.flatnonzero(variables == variable)
            if not len(chosen):
                continue
            numbers = self.reads_aggregates[variable]
            if numbers:
                columns = {aggregate_name(n): taken(self.values[n], threads.taken[n, chosen]) for n in numbers}
                holds[chosen] = self._computed(condition, rows[chosen], columns)
                continue
            known = self.known[variable]
            missing = np.unique(rows[chosen][known[rows[chosen]] == _UNKNOWN])
            if len(missing):
                known[missing] = np.where(self._computed(condition, missing, {}), _TRUE, _FALSE)
            holds[chosen] = known[rows[chosen]] == _TRUE
        return threads.at(holds)

    def _computed(self, condition: Expr, rows: Int64s, columns: dict[str, pa.ChunkedArray]) -> Bools:
        read = [name for name in columns_of(condition) if name not in columns]
        table = self.rows.select(list(dict.fromkeys([_TIME, *read]))).take(pa.array(rows))
        for name, column in columns.items():
            table = table.append_column(name, column)
        [holds] = evaluated(table, [condition], self.bounds)
        return flags(holds)

    def _distinct(self, threads: _Threads, first: int) -> _Threads:
        """Return of the threads of a match that go on in the same way only the preferred one."""
        starts = threads.starts
        if (np.diff(starts) > 0).all():
            return threads
        keys = [starts, threads.places, *threads.taken[self.shared]]
        _, chosen = np.unique(key_codes([pa.array(key) for key in keys]), return_index=True)
        chosen.sort()
        if self.shared and np.bincount(starts[chosen] - first).max() > MOST_WAYS:
            reason = f"MATCH_RECOGNIZE: the events of one match fit the pattern in more than {MOST_WAYS:,} ways"
            raise QueryError(f"{reason}: make the conditions in DEFINE exclude each other, or shorten LIMIT DURATION")
        return threads.at(chosen)

    def _complete(self, threads: _Threads, offset: int) -> _Found:
        """Return the matches that end with their row: of the threads of a match, the preferred one."""
        is_complete = self.is_complete[threads.places]
        is_complete &= self.times[threads.starts + offset] > self.after
        complete = np.flatnonzero(is_complete)
        starts, first = np.unique(threads.starts[complete], return_index=True)
        return _Found(starts, starts + offset, threads.taken[:, complete[first]], complete[first])

    def _further(self, threads: _Threads) -> _Threads:
        """Return the threads for the next row: each thread becomes one for each place that may come next."""
        counts = self.next_counts[threads.places]
        parents = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = self.next[self.next_starts[threads.places[parents]] + within]
        return _Threads(threads.starts[parents], places, threads.taken[:, parents], parents)

    def _classes(self, found: Sequence[_Found], trace: Sequence[_Threads]) -> pa.Array:
        """Return JSON with the names of the variables of the rows of each match."""
        threads = np.concatenate([matches.threads for matches in found])
        lengths = np.repeat(np.arange(len(found)) + 1, [len(matches.threads) for matches in found])
        offsets = np.append(0, np.cumsum(lengths))
        variables = np.zeros(offsets[-1], np.int64)
        for place in range(len(trace) - 1, -1, -1):
            reached = np.flatnonzero(lengths > place)
            chosen = threads[reached]
            variables[offsets[reached] + place] = self.variables[trace[place].places[chosen]]
            threads[reached] = trace[place].before[chosen]
        names = pa.array([json.dumps(name, ensure_ascii=False) for name in self.table.automaton.variables])
        listed = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), names.take(pa.array(variables)))
        return pc.binary_join_element_wise("[", pc.binary_join(listed, ","), "]", "")

    def result(self) -> Matches:
        """Return the matches that were found."""
        none = np.empty(0, np.int64)
        first = np.concatenate([none, *(matches.first for matches in self.found)])
        last = np.concatenate([none, *(matches.last for matches in self.found)])
        no_rows = np.empty((len(self.table.aggregates), 0), np.int64)
        taken_rows = np.concatenate([no_rows, *(matches.taken for matches in self.found)], axis=1)
        listed = [pa.nulls(0, pa.string()), *self.classes]
        classes = pa.concat_arrays(listed) if self.needs_classes else pa.nulls(len(first), pa.string())
        return Matches(self.rows, first, last, taken_rows, classes)


def _numbers(aggregate: MatchAggregate, values: pa.ChunkedArray) -> tuple[Int64s, Bools] | None:
    """Return what MIN or MAX compares in each row, the best least, and which rows count; None for FIRST and LAST."""
    if aggregate.function in (Taken.FIRST, Taken.LAST):
        return None
    column = one_array(values)
    numbers, _ = ranks(column)
    counted = column.is_valid().to_numpy(zero_copy_only=False)
    return (numbers if aggregate.function is Taken.MIN else ~numbers), counted


def _values(rows: pa.Table, expressions: Iterable[Expr], bounds: SliceBounds) -> list[pa.ChunkedArray]:
    """Return the values of expressions over rows; none for no expression."""
    expressions = list(expressions)
    return evaluated(rows, expressions, bounds) if expressions else []
