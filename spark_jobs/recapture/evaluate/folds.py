"""Loops that fold the rows of panes, and the panes of windows, in order: floats added in another order differ.

`first` and `last` bound the rows of a pane or the panes of a window: those at `first` up to, not including, `last`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.ordering.spreads import Spreads, with_spread, with_value
from recapture.process.compilation import compiled


class Sums(NamedTuple):
    """The sums of floats. Without values a sum is NULL in Spark."""

    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    """Number of values in each sum."""


@compiled
def sums(parts: Sums, first: NDArray[np.int64], last: NDArray[np.int64], from_zero: bool, folded: Sums) -> None:
    """Write the sum of each range of parts, in order.

    Spark's SUM begins `from_zero`. Where Spark sums an array, the first part is taken as it is: it may be -0.0.
    """
    for place in range(len(first)):
        total, count = 0.0, 0
        for part in range(first[place], last[place]):
            if parts.counts[part] > 0:
                if count == 0 and not from_zero:
                    total = parts.totals[part]
                else:
                    total += parts.totals[part]
                count += parts.counts[part]
        folded.totals[place], folded.counts[place] = total, count


@compiled
def running_sums(parts: Sums, starts: NDArray[np.int64], step: int, running: Sums) -> None:
    """Write the sum of each part and the parts before it in its run, or after it if `step` is -1."""
    for run in range(len(starts) - 1):
        total, count = 0.0, 0
        first = starts[run] if step == 1 else starts[run + 1] - 1
        for number in range(starts[run + 1] - starts[run]):
            part = first + number * step
            if parts.counts[part] > 0:
                total += parts.totals[part]
                count += parts.counts[part]
            running.totals[part], running.counts[part] = total, count


@compiled
def overflows(numbers: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]) -> bool:
    """Return whether the sum of a range leaves the bigints on the way."""
    for place in range(len(first)):
        total = np.int64(0)
        for part in range(first[place], last[place]):
            added = total + numbers[part]
            if (total ^ added) & (numbers[part] ^ added) < 0:
                return True
            total = added
    return False


@compiled
def spreads_of_values(
    values: NDArray[np.float64], first: NDArray[np.int64], last: NDArray[np.int64], is_sorted: bool, folded: Spreads
) -> None:
    """Write the spread of each range of values. Sorted values take the other form of Welford's algorithm."""
    for place in range(len(first)):
        n = mean = m2 = 0.0
        for row in range(first[place], last[place]):
            if is_sorted:
                n += 1.0
                delta = values[row] - mean
                mean += delta / n
                m2 += delta * (values[row] - mean)
            else:
                n, mean, m2 = with_value(n, mean, m2, values[row])
        folded.n[place], folded.mean[place], folded.m2[place] = n, mean, m2


@compiled
def merged_spreads(parts: Spreads, first: NDArray[np.int64], last: NDArray[np.int64], folded: Spreads) -> None:
    """Write the spread of each range of parts."""
    for place in range(len(first)):
        n = mean = m2 = 0.0
        for part in range(first[place], last[place]):
            if parts.n[part] > 0.0:
                n, mean, m2 = with_spread(n, mean, m2, parts.n[part], parts.mean[part], parts.m2[part])
        folded.n[place], folded.mean[place], folded.m2[place] = n, mean, m2


@compiled
def least(
    numbers: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], folded: NDArray[np.int64]
) -> None:
    """Write the least number of each range; the ends of the ranges only grow. An empty range gets any number."""
    candidates = np.empty(len(numbers), np.int64)  # numbers that may still be the least, in rising order
    front = back = row = 0
    for place in range(len(first)):
        row = max(row, first[place])
        while row < last[place]:
            while back > front and numbers[candidates[back - 1]] >= numbers[row]:
                back -= 1
            candidates[back] = row
            back += 1
            row += 1
        while front < back and candidates[front] < first[place]:
            front += 1
        folded[place] = numbers[candidates[front]] if front < back else 0


@compiled
def distinct(
    codes: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], folded: NDArray[np.int64]
) -> None:
    """Write how many different codes each range has; the ends of the ranges only grow."""
    held = np.zeros(len(codes), np.int64)
    start = stop = different = 0
    for place in range(len(first)):
        while start < min(first[place], stop):
            held[codes[start]] -= 1
            different -= held[codes[start]] == 0
            start += 1
        start, stop = max(start, first[place]), max(stop, first[place])
        while stop < last[place]:
            different += held[codes[stop]] == 0
            held[codes[stop]] += 1
            stop += 1
        folded[place] = different
