"""Spreads of groups: number, mean and sum of squared differences from the mean, as Spark computes them to the last bit.

A task adds events to the spread of their pane one by one. In the end its m2 is Spark's VAR_POP times COUNT. The spreads
of panes are then merged in the order of pane and partition. Numba compiles the loops over groups when they are first
called.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.process.compilation import compiled, inlined

SPREAD = pa.struct([("n", pa.float64()), ("mean", pa.float64()), ("m2", pa.float64())])
"""Type of a spread; n is an integer, 0 if there are no values."""


class GroupedRows(NamedTuple):
    """The rows of groups."""

    starts: NDArray[np.int64]
    """The rows of group g are at `starts[g]` to `starts[g + 1]` of `rows`."""
    rows: NDArray[np.int64]
    """The rows of each group, in order."""


class Spreads(NamedTuple):
    """The fields of the spread in each row."""

    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]


Loop: TypeAlias = Callable[[GroupedRows, Spreads, NDArray[np.float64]], None]
"""Merges the spreads of each group: `continue_spreads` for those of values, `add_spreads` for those of panes."""


def of_values(values: pa.Array) -> pa.StructArray:
    """Return the spread of each float alone; NULL does not count."""
    n = pc.is_valid(values).cast(pa.float64())
    return _spreads(n, pc.fill_null(values, 0.0), pa.repeat(0.0, len(values)))


def of_panes(n: pa.Array, total: pa.Array, m2: pa.Array) -> pa.StructArray:
    """Return the spreads of panes from their number of values, their sum and their squared differences."""
    n = n.cast(pa.float64())
    return _spreads(n, pc.fill_null(pc.divide(total, n), 0.0), pc.fill_null(m2, 0.0))


def squares(spreads: pa.ChunkedArray) -> pa.Array:
    """Return the squared differences of the spreads of values as `partial_squares` does; NULL without values."""
    parts = fields_of(spreads)
    return pa.array(partial_squares(parts), mask=parts.n == 0)


def partial_squares(spreads: Spreads) -> NDArray[np.float64]:
    """Return the squared differences of the spreads of values, as VAR_POP(x) * COUNT(x) in Spark.

    Spark merges the spread with an empty one, then divides by the number of values. The merge gives NaN if the square
    of the mean is infinite.
    """
    n, mean, m2 = spreads
    with np.errstate(all="ignore"):
        return (m2 + mean * (mean / n) * 0.0 * n) / n * n


def variance(spreads: Spreads, of_population: bool, root: bool) -> pa.Array:
    """Return the variance of each spread, or its square root; NULL for too few values.

    Without `of_population`, the values are a sample, and the divisor is one less than their number.
    """
    divisor = spreads.n if of_population else spreads.n - 1.0
    with np.errstate(all="ignore"):
        result = spreads.m2 / divisor
        return pa.array(np.sqrt(result) if root else result, mask=divisor <= 0)


def fields_of(spreads: pa.ChunkedArray) -> Spreads:
    """Return the fields of spreads without NULL."""
    return Spreads(*(part.to_numpy() for part in spreads.combine_chunks().flatten()))


def merged(loop: Loop, spreads: pa.ChunkedArray, codes: NDArray[np.int64], count: int) -> pa.StructArray:
    """Return the merged spread of each group; `codes` has the number of each row's group."""
    starts = np.append(0, np.cumsum(np.bincount(codes, minlength=count)))
    result = np.empty((len(SPREAD), count))
    loop(GroupedRows(starts, np.argsort(codes, kind="stable")), fields_of(spreads), result)
    return _spreads(*map(pa.array, result))


def _spreads(n: pa.Array, mean: pa.Array, m2: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([n, mean, m2], fields=list(SPREAD))


@compiled
def continue_spreads(groups: GroupedRows, spreads: Spreads, merged: NDArray[np.float64]) -> None:
    """Add single values to spreads.

    A spread of more than one value must be the first of its group.
    """
    starts, n, mean, m2 = groups.starts, spreads.n, spreads.mean, spreads.m2
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = groups.rows[place]
            if n[row] == 1.0:
                count, average, squares = with_value(count, average, squares, mean[row])
            elif n[row] > 1.0:
                count, average, squares = n[row], mean[row], m2[row]
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares


@compiled
def add_spreads(groups: GroupedRows, spreads: Spreads, merged: NDArray[np.float64]) -> None:
    """Add spreads."""
    starts, n, mean, m2 = groups.starts, spreads.n, spreads.mean, spreads.m2
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = groups.rows[place]
            if n[row] > 0.0:
                count, average, squares = with_spread(count, average, squares, n[row], mean[row], m2[row])
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares


@inlined
def with_value(n: float, mean: float, m2: float, value: float) -> tuple[float, float, float]:
    """Return a spread with one more value, by Welford's algorithm, as Spark's CentralMomentAgg computes it."""
    n += 1.0
    delta = value - mean
    step = delta / n
    return n, mean + step, m2 + delta * (delta - step)


@inlined
def with_spread(
    n: float, mean: float, m2: float, other_n: float, other_mean: float, other_m2: float
) -> tuple[float, float, float]:
    """Return two spreads as one, by Chan's algorithm."""
    total = n + other_n
    delta = other_mean - mean
    return total, mean + delta * other_n / total, m2 + other_m2 + delta * delta * n * other_n / total
