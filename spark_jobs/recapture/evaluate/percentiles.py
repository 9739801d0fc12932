"""PERCENTILE_CONT and PERCENTILE_DISC, in the windows that hold the rows of a GROUP BY."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.errors import QueryError
from recapture.evaluate.ranking import Picks, Ranking, RowRanges
from recapture.evaluate.ranks import ranks
from recapture.evaluate.windowed import WindowedRows, counted
from recapture.query.plan.aggregates import Aggregate, AggregateFunction


def percentile(aggregate: Aggregate, column: pa.Array, windowed: WindowedRows) -> pa.Array:
    """Return the percentile of each window; NULL without values. DESC counts from the other end.

    Raise RunError if the difference of two bigints to interpolate between is not a bigint.
    """
    is_valid = column.is_valid().to_numpy(zero_copy_only=False)
    ranges = counted(is_valid, windowed.ranges)
    has_values = ranges.first < ranges.last
    ranges = RowRanges(ranges.first[has_values], ranges.last[has_values])
    numbers, value = ranks(column.drop_null())
    ranking = Ranking([numbers], windowed.codes[is_valid], ranges, by_time=False)
    sizes = ranges.last - ranges.first

    def ranked(places: NDArray[np.int64]) -> pa.Array:
        places = sizes - 1 - places if aggregate.orderings[0].descending else places
        picked = ranking.picked(ranges, Picks(np.arange(len(places) + 1), places))
        return value(numbers[picked], np.zeros(len(picked), np.bool_))

    part, whole = aggregate.share.numerator, aggregate.share.denominator
    if aggregate.function is AggregateFunction.PERCENTILE_DISC:
        result = ranked(np.maximum((part * sizes + whole - 1) // whole, 1) - 1)
    else:
        low, rest = np.divmod(part * (sizes - 1), whole)
        high = np.minimum(low + 1, sizes - 1)
        result = _interpolated(ranked(low), ranked(high), rest.astype(np.float64) / float(whole))
    place = pa.array(np.cumsum(has_values) - 1, mask=~has_values)
    return result.take(place)


def _interpolated(low: pa.Array, high: pa.Array, rest: NDArray[np.float64]) -> pa.Array:
    """Return the values at a share `rest` of the way from `low` to `high`."""
    start, stop = low.to_numpy(), high.to_numpy()
    with np.errstate(all="ignore"):
        difference = stop - start
        if pa.types.is_integer(low.type) and np.any(((stop ^ start) & (stop ^ difference) < 0) & (rest != 0.0)):
            raise QueryError("PERCENTILE_CONT: two bigints are too far apart to interpolate: CAST them to float")
        return pa.array(start + np.where(rest == 0.0, 0.0, difference * rest))
