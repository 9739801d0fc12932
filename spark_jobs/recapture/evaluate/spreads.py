"""STDEV, STDEVP, VAR and VARP, in the windows that hold the rows of a GROUP BY."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate import folds
from recapture.evaluate.folds import Sums
from recapture.evaluate.ranking import RowRanges
from recapture.evaluate.sums import as_floats, folded
from recapture.evaluate.windowed import WindowedRows, counted, order_by_value
from recapture.ordering.spreads import Spreads, partial_squares, variance
from recapture.query.plan.aggregates import Aggregate, AggregateFunction

_OF_POPULATION = (AggregateFunction.STDEVP, AggregateFunction.VARP)
_ROOTS = (AggregateFunction.STDEV, AggregateFunction.STDEVP)


def spread(aggregate: Aggregate, column: pa.Array, windowed: WindowedRows) -> pa.Array:
    """Return the variance of each window, or its square root; NULL for too few values."""
    spreads = _empty(len(windowed.windows.ends))
    folds.merged_spreads(
        _of_panes(column, aggregate.ordered, windowed), windowed.windows.first, windowed.windows.last, spreads
    )
    return variance(spreads, of_population=aggregate.function in _OF_POPULATION, root=aggregate.function in _ROOTS)


def _of_panes(column: pa.Array, ordered: bool, windowed: WindowedRows) -> Spreads:
    """Return the spread of each pane. Without `ordered`, its values are sorted before they are added."""
    starts = windowed.panes.starts
    values, is_valid = as_floats(column), column.is_valid().to_numpy(zero_copy_only=False)
    if not ordered:
        order = order_by_value(column, windowed)
        values, is_valid = values[order], is_valid[order]
    rows, values = counted(is_valid, RowRanges(starts[:-1], starts[1:])), values[is_valid]
    spreads = _empty(len(rows.first))
    folds.spreads_of_values(values, *rows, not ordered, spreads)
    return _as_partials(spreads, values, rows) if ordered else spreads


def _as_partials(spreads: Spreads, values: NDArray[np.float64], rows: RowRanges) -> Spreads:
    """Return the spreads of panes as Spark's partial aggregates give them: by sum, count, and VAR_POP times count."""
    totals = folded(Sums(values, np.ones(len(values), np.int64)), *rows, from_zero=True).totals
    with np.errstate(all="ignore"):
        means = totals / spreads.n
    return Spreads(spreads.n, means, partial_squares(spreads))


def _empty(count: int) -> Spreads:
    return Spreads(np.empty(count), np.empty(count), np.empty(count))
