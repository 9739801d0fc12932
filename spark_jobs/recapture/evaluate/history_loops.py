"""Loops over rows in the order of key and time: what each row finds in its history (docs/time-model.md, section 4.3).

All take the rows' places in that order, and the number of the key, the time and a flag of each row: whether it meets
the condition of WHEN, or has a value there. The history of a row at t has the flagged rows of its key, up to the row
itself, whose times are in (t - length, t]. Times and lengths are ticks. Results are in the order of the rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


@compiled
def nth_earlier(order: Int64s, codes: Int64s, times: Int64s, met: Bools, steps: int, length: int) -> Int64s:
    """Return the row that is `steps` rows back in the history of each row; -1 if there is none.

    With 0 steps, the row itself is the first candidate; with 1 step, the row before it.
    """
    found = np.empty(len(order), np.int64)
    earlier, count = 0, 0
    for place in range(len(order)):
        row = order[place]
        if place == 0 or codes[row] != codes[order[place - 1]]:
            earlier, count = place, 0
        if steps == 0 and met[row]:
            earlier, count = place, 1
        is_found = count >= max(steps, 1) and times[order[earlier]] > times[row] - length
        found[row] = order[earlier] if is_found else -1
        if steps > 0 and met[row]:
            count += 1
            earlier += count > steps
            while count >= steps and not met[order[earlier]]:
                earlier += 1
    return found


@compiled
def is_first(order: Int64s, codes: Int64s, times: Int64s, met: Bools, length: int) -> Int64s:
    """Return 1 for the first flagged row of its key in each interval (end - length, end], otherwise 0.

    The ends of the intervals are multiples of `length`.
    """
    first = np.zeros(len(order), np.int64)
    has_first = False
    for place in range(len(order)):
        row, before = order[place], order[max(place - 1, 0)]
        if place == 0 or codes[row] != codes[before] or (times[row] - 1) // length != (times[before] - 1) // length:
            has_first = False
        if met[row]:
            first[row] = not has_first
            has_first = True
    return first


@compiled
def counts(order: Int64s, codes: Int64s, times: Int64s, counted: Bools, length: int) -> Int64s:
    """Return the number of rows in the history of each row."""
    result = np.empty(len(order), np.int64)
    earliest, count = 0, 0
    for place in range(len(order)):
        row = order[place]
        if place == 0 or codes[row] != codes[order[place - 1]]:
            earliest, count = place, 0
        count += counted[row]
        while times[order[earliest]] <= times[row] - length:
            count -= counted[order[earliest]]
            earliest += 1
        result[row] = count
    return result


@compiled
def sums(
    order: Int64s, codes: Int64s, times: Int64s, counted: Bools, values: NDArray[Any], length: int
) -> NDArray[Any]:
    """Return the sum of the values in the history of each row. Raise OverflowError if a sum of integers overflows.

    The sum of a history without rows is 0. Time is divided into blocks of `length`. Values are added up from the start
    of the row's block to the row, and down from the end of the block before to the earliest row of the history. The
    result is the sum of the two.
    """
    down = np.zeros(len(order), values.dtype)
    has_down = np.zeros(len(order), np.bool_)
    overflowed = False
    for place in range(len(order) - 1, -1, -1):
        row, after = order[place], order[min(place + 1, len(order) - 1)]
        if place + 1 < len(order) and codes[row] == codes[after] and times[row] // length == times[after] // length:
            down[place], has_down[place] = down[place + 1], has_down[place + 1]
        if counted[row]:
            before, value = down[place], values[row]
            down[place] = before + value
            has_down[place] = True
            overflowed |= (value > 0 and down[place] < before) or (value < 0 and down[place] > before)
    totals = np.zeros(len(order), values.dtype)
    up = np.zeros(1, values.dtype)
    has_up = False
    earliest = 0
    for place in range(len(order)):
        row, before = order[place], order[max(place - 1, 0)]
        block = times[row] // length
        if place == 0 or codes[row] != codes[before]:
            earliest = place
        if earliest == place or block != times[before] // length:
            up[0] = 0
            has_up = False
        if counted[row]:
            subtotal, value = up[0], values[row]
            up[0] = subtotal + value
            has_up = True
            overflowed |= (value > 0 and up[0] < subtotal) or (value < 0 and up[0] > subtotal)
        while times[order[earliest]] <= times[row] - length:
            earliest += 1
        totals[row] = up[0]
        if times[order[earliest]] // length < block and has_down[earliest]:
            part = down[earliest]
            totals[row] = part
            if has_up:
                totals[row] = part + up[0]
                overflowed |= (part > 0 and totals[row] < up[0]) or (part < 0 and totals[row] > up[0])
    if overflowed:
        raise OverflowError
    return totals


@compiled
def least(order: Int64s, codes: Int64s, times: Int64s, values: Int64s, length: int) -> Int64s:
    """Return the least value in the history of each row. Rows that do not count have the largest integer as value."""
    down = values[order]
    for place in range(len(order) - 2, -1, -1):
        row, after = order[place], order[place + 1]
        if codes[row] == codes[after] and times[row] // length == times[after] // length:
            down[place] = min(down[place], down[place + 1])
    result = np.empty(len(order), np.int64)
    up, earliest = 0, 0
    for place in range(len(order)):
        row, before = order[place], order[max(place - 1, 0)]
        block = times[row] // length
        if place == 0 or codes[row] != codes[before]:
            earliest = place
        is_new = earliest == place or block != times[before] // length
        up = values[row] if is_new else min(up, values[row])
        while times[order[earliest]] <= times[row] - length:
            earliest += 1
        result[row] = min(up, down[earliest]) if times[order[earliest]] // length < block else up
    return result
