"""The rows that analytic functions look at (docs/time-model.md, section 4.3)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.analytics import Histories, value_of
from recapture.evaluate.ranks import ranks
from recapture.evaluate.values import valid
from recapture.ordering.radix import sorted_order
from recapture.query.plan.aggregates import COLLECTIONS, RANKED, AggregateFunction
from recapture.query.plan.analytics import AnalyticFunction, EarlierValue, IsFirst
from recapture.query.plan.expressions import columns_of
from recapture.tools.events.roles import Role

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


def columns_of_function(function: AnalyticFunction) -> set[str]:
    """Return the columns that an analytic function reads of each row."""
    read = [*function.history.keys, *([function.history.when] if function.history.when is not None else [])]
    if isinstance(function, EarlierValue):
        read += [function.value, function.default]
    elif not isinstance(function, IsFirst):
        read += [function.aggregate.prepared(), *function.aggregate.inputs]
    return set[str]().union(*map(columns_of, read))


@dataclass
class LookedAt:
    """The rows that an analytic function looks at."""

    histories: Histories
    function: AnalyticFunction

    @cached_property
    def places(self) -> Int64s:
        """Rows in the order of key and time."""
        return self.histories.order(self.function.history).places

    @cached_property
    def positions(self) -> Int64s:
        """Place of each row in that order."""
        positions = np.empty_like(self.places)
        positions[self.places] = np.arange(len(self.places))
        return positions

    @cached_property
    def codes(self) -> Int64s:
        """Keys in that order."""
        return self.histories.order(self.function.history).codes[self.places]

    @cached_property
    def times(self) -> Int64s:
        """Times in that order."""
        return self.histories.times[self.places]

    @cached_property
    def counts(self) -> Bools:
        """Whether each row, in that order, meets WHEN; an aggregate that skips NULL needs a value there, too."""
        if isinstance(self.function, EarlierValue | IsFirst) or self.function.aggregate.function in COLLECTIONS:
            return self.histories.met(self.function.history)[self.places]
        return valid(self.histories.values[value_of(self.function)])[self.places]

    def missing(self, row: int) -> tuple[int, int] | None:
        """Return the range (after, until] of times in which the function found too few rows; None if it found enough.

        Nothing is missing for an aggregate, whose value depends on what there is.
        """
        after, rows = self._range(row)
        time = int(self.histories.times[row])
        match self.function:
            case EarlierValue(steps=steps):
                return (after, time) if len(rows) < max(steps, 1) else None
            case IsFirst():
                return (after, time) if len(rows) and rows[0] == row else None
        return None

    def _range(self, row: int) -> tuple[int, Int64s]:
        """Return the time after which the function looks for rows, and those that count."""
        end = int(self.positions[row]) + 1
        time, length = self.times[end - 1], self.function.history.length
        after = (time - 1) // length * length if isinstance(self.function, IsFirst) else time - length
        start = int(np.searchsorted(self.codes, self.codes[end - 1]))
        start += int(np.searchsorted(self.times[start:end], after, side="right"))
        if isinstance(self.function, EarlierValue) and self.function.steps:
            end -= 1
        return int(after), self.places[start:end][self.counts[start:end]]

    def by(self, row: int) -> list[tuple[Int64s, Role]]:
        """Return the rows, and their roles, that the function looks at for a row."""
        _, rows = self._range(row)
        match self.function:
            case EarlierValue(steps=steps):
                rows_needed = max(steps, 1)
                return [(rows[-rows_needed:], Role.DECIDING)] if len(rows) >= rows_needed else []
            case IsFirst():
                is_flagged = self.counts[self.positions[row]]
                return [(rows[:1], Role.DECIDING), (rows[1:], Role.CONSIDERED)] if is_flagged else []
        aggregate = self.function.aggregate
        if aggregate.function in RANKED and len(rows):
            ranked = rows[sorted_order(self.histories.sort_keys(aggregate, rows))]
            count = 1 if aggregate.function is AggregateFunction.TOPONE else aggregate.limit
            return [(ranked[:count], Role.DECIDING), (ranked[count:], Role.CONSIDERED)]
        if aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX) and len(rows):
            numbers, _ = ranks(self.histories.values[value_of(self.function)].take(pa.array(rows)))
            is_least = aggregate.function is AggregateFunction.MIN
            chosen = np.argmin(numbers) if is_least else np.argmax(numbers)
            return [(rows[[chosen]], Role.DECIDING), (np.delete(rows, chosen), Role.CONSIDERED)]
        return [(rows, Role.DECIDING)]
