"""The aggregates of a GROUP BY, in the windows that hold its rows.

The rows of each pane are folded in the order in which they came, then the panes of each window in the order of time and
partition: floats added in another order differ in their last bits.
"""

from functools import cache

import numpy as np
import pyarrow as pa

from recapture.evaluate import folds
from recapture.evaluate.collected import collected, event_type
from recapture.evaluate.percentiles import percentile
from recapture.evaluate.ranking import RowRanges
from recapture.evaluate.ranks import ranks
from recapture.evaluate.spreads import spread
from recapture.evaluate.sums import sum_of_bigints, sums_of_floats
from recapture.evaluate.windowed import Columns, WindowedRows, counted
from recapture.ordering.keys import key_codes
from recapture.query.plan.aggregates import COLLECTIONS, PERCENTILES, SPREADS, Aggregate, AggregateFunction
from recapture.query.plan.expressions import Expr


def result_type(aggregate: Aggregate, argument: pa.DataType) -> pa.DataType:
    """Return the type of an aggregate's results, given that of its argument; see `groups.groups`."""
    match aggregate.function:
        case AggregateFunction.COUNT | AggregateFunction.COUNT_DISTINCT:
            return pa.int64()
        case AggregateFunction.AVG | AggregateFunction.PERCENTILE_CONT:
            return pa.float64()
        case AggregateFunction.COLLECT | AggregateFunction.COLLECTTOP:
            return pa.string()
        case AggregateFunction.USER_DEFINED:
            return pa.list_(event_type(argument))
    return pa.float64() if aggregate.function in SPREADS else argument


class Results:
    """The results of aggregates in the windows of a GROUP BY. Aggregates of the same argument share its column."""

    def __init__(self, columns: Columns, windowed: WindowedRows) -> None:
        self._columns = columns
        self._windowed = windowed
        self._column = cache(lambda node: columns(node).take(pa.array(windowed.panes.rows)))
        self._sums = cache(lambda node, ordered: sums_of_floats(self._column(node), ordered, windowed))

    def of(self, aggregate: Aggregate) -> pa.ChunkedArray:
        """Return an aggregate of each window. Raise RunError if Spark's sum of bigints would leave the bigints."""
        if aggregate.function in COLLECTIONS:
            return collected(aggregate, self._columns, self._windowed)
        if aggregate.argument is None:
            rows = self._windowed.ranges
            return pa.chunked_array([pa.array(rows.last - rows.first)])
        return pa.chunked_array([self._of_values(aggregate, aggregate.argument)])

    def _of_values(self, aggregate: Aggregate, argument: Expr) -> pa.Array:
        column, windowed = self._column(argument), self._windowed
        match aggregate.function:
            case AggregateFunction.SUM if not pa.types.is_floating(column.type):
                return sum_of_bigints(column, windowed)
            case AggregateFunction.SUM:
                sums = self._sums(argument, aggregate.ordered)
                return pa.array(sums.totals, mask=sums.counts == 0)
            case AggregateFunction.AVG:
                sums = self._sums(argument, aggregate.ordered)
                with np.errstate(all="ignore"):
                    return pa.array(sums.totals / sums.counts, mask=sums.counts == 0)
            case function if function in SPREADS:
                return spread(aggregate, column, windowed)
            case function if function in PERCENTILES:
                return percentile(aggregate, column, windowed)
        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        return _of_present(aggregate.function, column.drop_null(), counted(is_valid, windowed.ranges))


def _of_present(function: AggregateFunction, values: pa.Array, windows: RowRanges) -> pa.Array:
    """Return an aggregate that does not depend on the order of the values, which are not NULL."""
    if function is AggregateFunction.COUNT:
        return pa.array(windows.last - windows.first)
    folded = np.empty(len(windows.first), np.int64)
    if function is AggregateFunction.COUNT_DISTINCT:
        folds.distinct(key_codes([values]), *windows, folded)
        return pa.array(folded)
    numbers, value = ranks(values)
    is_greatest = function is AggregateFunction.MAX
    folds.least(~numbers if is_greatest else numbers, *windows, folded)
    is_null = windows.first == windows.last
    return value(np.where(is_null, 0, ~folded if is_greatest else folded), is_null)
