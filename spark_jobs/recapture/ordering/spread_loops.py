"""Merge the spreads of groups one by one, in compiled code.

`merged` receives the fields of each group's spread, in three rows: n, mean and m2.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled


class GroupedRows(NamedTuple):
    """The rows of groups."""

    starts: NDArray[np.int32]
    """The rows of group g are at `starts[g]` to `starts[g + 1]` of `rows`."""
    rows: NDArray[np.int64]
    """The rows of each group, in order."""


class Spreads(NamedTuple):
    """The fields of the spread in each row."""

    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]


@compiled
def continue_spreads(groups: GroupedRows, spreads: Spreads, merged: NDArray[np.float64]) -> None:
    """Add single values to spreads by Welford's algorithm, as Spark's CentralMomentAgg does.

    A spread of more than one value must be the first of its group.
    """
    starts, n, mean, m2 = groups.starts, spreads.n, spreads.mean, spreads.m2
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = groups.rows[place]
            if n[row] == 1.0:
                count += 1.0
                delta = mean[row] - average
                step = delta / count
                average += step
                squares += delta * (delta - step)
            elif n[row] > 1.0:
                count, average, squares = n[row], mean[row], m2[row]
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares


@compiled
def add_spreads(groups: GroupedRows, spreads: Spreads, merged: NDArray[np.float64]) -> None:
    """Add spreads by Chan's algorithm, as `aggregates._merged_spreads` writes it for Spark."""
    starts, n, mean, m2 = groups.starts, spreads.n, spreads.mean, spreads.m2
    for group in range(len(starts) - 1):
        count = average = squares = 0.0
        for place in range(starts[group], starts[group + 1]):
            row = groups.rows[place]
            if n[row] > 0.0:
                total = count + n[row]
                delta = mean[row] - average
                squares = squares + m2[row] + delta * delta * count * n[row] / total
                average += delta * n[row] / total
                count = total
        merged[0, group], merged[1, group], merged[2, group] = count, average, squares
