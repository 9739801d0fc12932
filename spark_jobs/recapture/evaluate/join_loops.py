"""Loops over the rows of two sides of a JOIN: which rows of the new side may match a row of the sides before."""

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled

Int64s = NDArray[np.int64]


@compiled
def ranges(
    codes: Int64s, lows: Int64s, highs: Int64s, starts: Int64s, order: Int64s, times: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the range of places in `order` whose rows have the key of a row, and a time between its limits.

    `codes` are the numbers of the keys of the rows, -1 for a row that matches nothing; `lows` and `highs` the limits,
    both inclusive. `order` has the rows of the new side by key and time; those of key c begin at starts[c]. `times`
    are the times of these rows. Limits and times are ticks.
    """
    firsts, ends = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
    for row in range(len(codes)):
        code = codes[row]
        if code < 0:
            continue
        first, end = starts[code], starts[code + 1]
        while first < end:
            middle = (first + end) // 2
            if times[order[middle]] < lows[row]:
                first = middle + 1
            else:
                end = middle
        firsts[row], end = first, starts[code + 1]
        while first < end:
            middle = (first + end) // 2
            if times[order[middle]] <= highs[row]:
                first = middle + 1
            else:
                end = middle
        ends[row] = first
    return firsts, ends


@compiled
def pairs(
    order: Int64s, firsts: Int64s, ends: Int64s, row: int, skipped: int, most: int
) -> tuple[Int64s, Int64s, int, int]:
    """Return up to `most` pairs of a row and one of the new side, and the row and the number of pairs to skip next.

    They begin with the pairs of `row`, of which `skipped` are left out. The ranges are those of `ranges`.
    """
    left, right = np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    while row < len(firsts) and count < most:
        place = firsts[row] + skipped
        while place < ends[row] and count < most:
            left[count], right[count] = row, order[place]
            place += 1
            count += 1
        skipped = place - firsts[row]
        if place >= ends[row]:
            row, skipped = row + 1, 0
    return left[:count], right[:count], row, skipped
