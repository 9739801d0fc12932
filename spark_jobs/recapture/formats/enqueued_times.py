"""The times that Capture writes, such as 3/1/2026 12:00:04 AM, in compiled code: each blob has hundreds of them."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.process.compilation import compiled, read_only
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.time_model.timestamps import NO_DATE, days_until

UNREAD = -1
_SEPARATORS = tuple(b"// :: ")
"""What follows each number of a time."""
_YEAR = 2
"""Index of the year among the numbers."""


def read_times(strings: pa.StringArray) -> NDArray[np.int64]:
    """Return times `M/d/yyyy h:mm:ss AM|PM`, UTC, in ticks; UNREAD for strings that are not written exactly so."""
    _, offsets, data = strings.buffers()
    bounds = read_only(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    times = np.empty(len(strings), np.int64)
    _read(read_only(data, np.uint8), bounds, times)
    return times


@compiled
def _read(data: NDArray[np.uint8], bounds: NDArray[np.int32], times: NDArray[np.int64]) -> None:
    numbers = np.zeros(len(_SEPARATORS), np.int64)
    for row in range(len(times)):
        times[row] = UNREAD
        position, half = bounds[row], bounds[row + 1] - 2
        if half < position or data[half + 1] != ord("M") or (data[half] != ord("A") and data[half] != ord("P")):
            continue
        field = digits = value = 0
        while position < half and field < len(_SEPARATORS):
            byte = data[position]
            if ord("0") <= byte <= ord("9"):
                value, digits = 10 * value + byte - ord("0"), digits + 1
            elif byte == _SEPARATORS[field] and (digits == 4 if field == _YEAR else 1 <= digits <= 2):
                numbers[field] = value
                field, digits, value = field + 1, 0, 0
            else:
                break
            position += 1
        month, day, year, hour, minute, second = numbers
        if position < half or field < len(_SEPARATORS) or digits:
            continue
        days = days_until(year, month, day)
        if days == NO_DATE or not 1 <= hour <= 12 or minute > 59 or second > 59:
            continue
        hours = days * 24 + hour % 12 + (12 if data[half] == ord("P") else 0)
        times[row] = ((hours * 60 + minute) * 60 + second) * TICKS_PER_SECOND
