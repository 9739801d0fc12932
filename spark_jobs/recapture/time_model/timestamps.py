"""ISO 8601 text to ticks, a column at a time, in compiled code. A time without a zone is UTC."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.process.byte_words import Bytes, are_equal, byte_at
from recapture.process.compilation import compiled, inlined, read_only
from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND

NO_DATE = -1
_NO_NUMBER = -1
_DATE_SIZE = 10
_TICK_DIGITS = 7
"""Number of digits of a fraction of a second that is in ticks."""
_MOST_DIGITS = 9
"""Largest number of digits of a fraction; those after _TICK_DIGITS are cut off."""


def parse(text: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the ticks of each string, truncated to 100 ns, and whether it is a time; if it is not, the ticks are 0.

    Times are a date, from year 0001 to 9999, perhaps with a time of day: 2026-03-01, 2026-03-01 12, 2026-03-01T12:30Z,
    2026-03-01T12:30:00.1234567+01:30.
    """
    text = text.cast(pa.string())
    _, offsets, data = text.buffers()
    bounds = read_only(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    ticks, valid = np.zeros(len(text), np.int64), np.zeros(len(text), np.bool_)
    _parse(read_only(data, np.uint8), bounds, ticks, valid)
    return ticks, valid


@compiled
def _parse(data: Bytes, bounds: NDArray[np.int32], ticks: NDArray[np.int64], valid: NDArray[np.bool_]) -> None:
    date, days = 0, NO_DATE
    for row in range(len(ticks)):
        at, end = int(bounds[row]), int(bounds[row + 1])
        if days == NO_DATE or at + _DATE_SIZE > end or not are_equal(data, at, date, _DATE_SIZE):
            date, days = at, _days(data, at, end)
            if days == NO_DATE:
                continue
        at += _DATE_SIZE
        hour = minute = second = fraction = zone = 0
        if at < end:
            if byte_at(data, at) != ord("T") and byte_at(data, at) != ord(" "):
                continue
            hour = _number(data, at + 1, end, 2)
            at += 3
            if at < end and byte_at(data, at) == ord(":"):
                minute = _number(data, at + 1, end, 2)
                at += 3
                if at < end and byte_at(data, at) == ord(":"):
                    second = _number(data, at + 1, end, 2)
                    at += 3
                    if at < end and byte_at(data, at) == ord("."):
                        first = at + 1
                        at = first
                        while at < end and ord("0") <= byte_at(data, at) <= ord("9"):
                            if at - first < _TICK_DIGITS:
                                fraction = 10 * fraction + byte_at(data, at) - ord("0")
                            at += 1
                        if not 1 <= at - first <= _MOST_DIGITS:
                            continue
                        for _ in range(_TICK_DIGITS - (at - first)):
                            fraction *= 10
            if at < end and byte_at(data, at) == ord("Z"):
                at += 1
            elif at < end and (byte_at(data, at) == ord("+") or byte_at(data, at) == ord("-")):
                west = byte_at(data, at) == ord("-")
                zone_hour, zone_minute = _number(data, at + 1, end, 2), 0
                at += 3
                if at < end:
                    at += int(byte_at(data, at) == ord(":"))
                    zone_minute = _number(data, at, end, 2)
                    at += 2
                if not 0 <= zone_hour <= 23 or not 0 <= zone_minute <= 59:
                    continue
                zone = (zone_hour * 60 + zone_minute) * 60
                zone = -zone if west else zone
            if at != end or not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59:
                continue
        instant = (((days * 24 + hour) * 60 + minute) * 60 + second - zone) * TICKS_PER_SECOND + fraction
        if 0 <= instant <= LARGEST:
            ticks[row], valid[row] = instant, True


@inlined
def _days(data: Bytes, at: int, end: int) -> int:
    """Return what `days_until` returns for a date such as 2026-03-01."""
    year, month, day = _number(data, at, end, 4), _number(data, at + 5, end, 2), _number(data, at + 8, end, 2)
    days = days_until(year, month, day)
    return days if days == NO_DATE or (byte_at(data, at + 4) == byte_at(data, at + 7) == ord("-")) else NO_DATE


@inlined
def _number(data: Bytes, at: int, end: int, digits: int) -> int:
    """Return a number of so many digits; _NO_NUMBER if there is none."""
    if at + digits > end:
        return _NO_NUMBER
    number = 0
    for place in range(at, at + digits):
        if not ord("0") <= byte_at(data, place) <= ord("9"):
            return _NO_NUMBER
        number = 10 * number + byte_at(data, place) - ord("0")
    return number


@inlined
def days_until(year: int | np.int64, month: int | np.int64, day: int | np.int64) -> int:
    """Return the number of days from the first of the year 1 to a date; NO_DATE if it is not in the calendar."""
    if year < 1 or not 1 <= month <= 12:
        return NO_DATE
    before = _days_before(year, month)
    if not 1 <= day <= _days_before(year + month // 12, month % 12 + 1) - before:
        return NO_DATE
    return int(before + day - 1)


@inlined
def _days_before(year: int | np.int64, month: int | np.int64) -> int | np.int64:
    """Return the number of days from the year 1 to the first of a month."""
    march = year if month > 2 else year - 1  # years that begin in March end in a leap day
    months = (month + 9) % 12
    return 365 * march + march // 4 - march // 100 + march // 400 + (153 * months + 2) // 5 - 306
