"""SUM and AVG, in the windows that hold the rows of a GROUP BY."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.errors import QueryError
from recapture.evaluate import folds
from recapture.evaluate.folds import Sums
from recapture.evaluate.windowed import Halves, WindowedRows, counted, order_by_value
from recapture.evaluate.windows import Windows

Parts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Bigints, and the bounds of the ranges of them that are added."""
_SAFE = 2.0**62
"""Sums of bigints are bigints if their absolute values, added as floats, stay below this."""


def sum_of_bigints(column: pa.Array, windowed: WindowedRows) -> pa.Array:
    """Return the sum of bigints in each window. Raise RunError if Spark's sum would leave the bigints on the way."""
    numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if np.abs(numbers.astype(np.float64)).sum() >= _SAFE:
        _require_bigints(numbers, windowed)
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers)])
    first, last = windowed.ranges
    values = counted(column.is_valid().to_numpy(zero_copy_only=False), windowed.ranges)
    return pa.array(totals[last] - totals[first], mask=values.first == values.last)


def _require_bigints(numbers: NDArray[np.int64], windowed: WindowedRows) -> None:
    """Raise QueryError if the sum of a pane, or of a window or a half of it, leaves the bigints on the way."""
    panes, windows, halves = windowed.panes, windowed.windows, windowed.halves
    pane_sums = np.add.reduceat(numbers, panes.starts[:-1])
    ranges: list[Parts] = [(numbers, panes.starts[:-1], panes.starts[1:])]
    if halves is None:
        ranges.append((pane_sums, windows.first, windows.last))
    else:
        starts = halves.instants[halves.blocks]
        back_to_front = len(pane_sums) - starts[::-1]
        ranges.append((pane_sums, starts[:-1], starts[1:]))
        ranges.append((pane_sums[::-1].copy(), back_to_front[:-1], back_to_front[1:]))
        ranges.append(_pairs_of_halves(pane_sums, windows, starts, halves))
    if any(folds.overflows(*parts) for parts in ranges):
        raise QueryError("SUM: the sum of bigints is too large for a bigint: CAST the values to float")


def _pairs_of_halves(
    pane_sums: NDArray[np.int64], windows: Windows, starts: NDArray[np.int64], halves: Halves
) -> Parts:
    """Return the sums of the two halves of each window as a range of two parts."""
    start_of_block = starts[np.searchsorted(starts, windows.last - 1, side="right") - 1]
    between = np.where(halves.has_later, start_of_block, windows.last)
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(pane_sums)])
    parts = np.stack([totals[between] - totals[windows.first], totals[windows.last] - totals[between]], axis=1)
    pairs = np.arange(0, parts.size + 1, 2)
    return parts.ravel(), pairs[:-1], pairs[1:]


def sums_of_floats(column: pa.Array, ordered: bool, windowed: WindowedRows) -> Sums:
    """Return the sum of floats, or of bigints as floats, in each window.

    Without `ordered`, the values of a pane are sorted before they are added.
    """
    panes, windows = windowed.panes, windowed.windows
    values = Sums(as_floats(column), column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64))
    if not ordered:
        order = order_by_value(column, windowed)
        values = Sums(values.totals[order], values.counts[order])
    pane_sums = folded(values, panes.starts[:-1], panes.starts[1:], ordered)
    if windowed.halves is not None:
        return _from_halves(pane_sums, windowed.halves)
    return folded(pane_sums, windows.first, windows.last, False)


def as_floats(column: pa.Array) -> NDArray[np.float64]:
    """Return a column of floats or bigints as floats; arbitrary for NULL."""
    return np.array(column.fill_null(0)).astype(np.float64)


def folded(parts: Sums, first: NDArray[np.int64], last: NDArray[np.int64], from_zero: bool) -> Sums:
    """Return the sum of each range of parts; see `folds.sums`."""
    sums = _empty(len(first))
    folds.sums(parts, first, last, from_zero, sums)
    return sums


def _from_halves(pane_sums: Sums, halves: Halves) -> Sums:
    parts = folded(pane_sums, halves.instants[:-1], halves.instants[1:], False)
    up, down = _empty(len(parts.counts)), _empty(len(parts.counts))
    folds.running_sums(parts, halves.blocks, 1, up)
    folds.running_sums(parts, halves.blocks, -1, down)
    earlier = _chosen(down, halves.first, halves.has_earlier)
    later = _chosen(up, halves.last, halves.has_later)
    with np.errstate(invalid="ignore", over="ignore"):
        both = earlier.totals + later.totals
    totals = np.where(earlier.counts == 0, later.totals, np.where(later.counts == 0, earlier.totals, both))
    return Sums(totals, earlier.counts + later.counts)


def _chosen(sums: Sums, places: NDArray[np.int64], is_chosen: NDArray[np.bool_]) -> Sums:
    return Sums(sums.totals[places], np.where(is_chosen, sums.counts[places], 0))


def _empty(count: int) -> Sums:
    return Sums(np.empty(count), np.empty(count, np.int64))
