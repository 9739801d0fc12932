"""Datetimes in the proleptic Gregorian calendar, as ticks: their parts, and times that are moved or put together."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.numbers import computed
from recapture.evaluate.vectors import Numbers, Vector, either
from recapture.query.parse.date_parts import TICKS
from recapture.time_model.ticks import LARGEST, TICKS_PER_MILLISECOND, UNIX_EPOCH

Int64s = NDArray[np.int64]
_DAY = TICKS["day"]
_MOST_MONTHS = 12 * 10_000
"""Number of months that leads out of the calendar from any time."""


def _days(ticks: Int64s) -> Int64s:
    """Return days since 1970."""
    return np.asarray(ticks // _DAY - UNIX_EPOCH // _DAY)


def _start_of(days: Int64s) -> Int64s:
    """Return the first tick of days."""
    return (days + UNIX_EPOCH // _DAY) * _DAY


def _months(days: Int64s) -> Int64s:
    """Return the number of whole months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_days(months: Int64s) -> Int64s:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _year(days: Int64s) -> Int64s:
    return np.asarray(_months(days) // 12 + 1970)


def _month(days: Int64s) -> Int64s:
    return np.asarray(_months(days) % 12 + 1)


def _quarter(days: Int64s) -> Int64s:
    return np.asarray(_months(days) % 12 // 3 + 1)


def _day(days: Int64s) -> Int64s:
    return np.asarray(days - _first_days(_months(days)) + 1)


def _day_of_year(days: Int64s) -> Int64s:
    return np.asarray(days - _first_days(_months(days) // 12 * 12) + 1)


def _weekday(days: Int64s) -> Int64s:
    """Return the number of the weekday, 1 for Sunday."""
    return np.asarray((days + 4) % 7 + 1)


def _week(days: Int64s) -> Int64s:
    """Return the number of the week, which begins on Sunday; the first one has 1 January."""
    return np.asarray((_day_of_year(days) + 6 - _weekday(days)) // 7 + 1)


_OF_DAYS: Mapping[str, Callable[[Int64s], Int64s]] = {
    "year": _year,
    "quarter": _quarter,
    "month": _month,
    "dayofyear": _day_of_year,
    "day": _day,
    "week": _week,
    "weekday": _weekday,
}
_CYCLES = {"hour": 24, "minute": 60, "second": 60, "millisecond": 1_000, "microsecond": 1_000_000}
_OF_YEAR = {"quarter": 4, "month": 12}


def date_part(frame: Frame, node: Node) -> Vector:
    """Return the part of datetimes that the parameter names."""
    (part,) = node.parameters
    if part in _OF_DAYS:
        return computed(lambda ticks: _OF_DAYS[part](_days(ticks)))(frame, node)
    return computed(lambda ticks: np.asarray(ticks // TICKS[part] % _CYCLES[part]))(frame, node)


def date_boundaries(frame: Frame, node: Node) -> Vector:
    """Return how many of the parts that the parameter names begin before or at datetimes."""
    (part,) = node.parameters
    if part == "week":
        return computed(lambda ticks: np.asarray((ticks // _DAY + 1) // 7))(frame, node)
    if part in _OF_YEAR:
        return computed(lambda ticks: _in_years(part, _days(ticks)))(frame, node)
    return computed(lambda ticks: np.asarray(ticks // TICKS[part]))(frame, node)


def _in_years(part: str, days: Int64s) -> Int64s:
    return np.asarray(_year(days) * _OF_YEAR[part] + _OF_DAYS[part](days))


UNIX_MILLISECONDS = computed(
    lambda ticks: np.asarray(ticks // TICKS_PER_MILLISECOND - UNIX_EPOCH // TICKS_PER_MILLISECOND)
)


def is_outside(ticks: Numbers) -> NDArray[np.bool_]:
    """Return which times are outside the years 1 to 9999."""
    return np.asarray((ticks.values < 0) | (ticks.values > LARGEST))


def moved(frame: Frame, node: Node) -> Vector:
    """Return datetimes moved by numbers of a unit; a number that leads far out of the calendar gives -1."""
    (ticks, amounts), null = frame.strict(node.arguments)
    (unit,) = node.parameters
    is_far = _is_beyond(amounts.values, LARGEST // unit)
    near = np.where(is_far, 0, amounts.values) * unit
    return Numbers(np.where(is_far, -1, ticks.values + near), null)


def moved_by_months(frame: Frame, node: Node) -> Vector:
    """Return datetimes moved by numbers of months; a number that leads far out of the calendar gives -1.

    A day that the month lacks becomes its last.
    """
    (ticks, amounts), null = frame.strict(node.arguments)
    (unit,) = node.parameters
    is_far = _is_beyond(amounts.values, _MOST_MONTHS // unit)
    days = _days(ticks.values)
    months = _months(days)
    first = _first_days(months + np.where(is_far, 0, amounts.values) * unit)
    length = _first_days(_months(first) + 1) - first
    date = first + np.minimum(days - _first_days(months), length - 1)
    return Numbers(np.where(is_far, -1, _start_of(date) + ticks.values % _DAY), null)


def _is_beyond(amounts: Int64s, most: int) -> NDArray[np.bool_]:
    return np.asarray((amounts < -most) | (amounts > most))


_LIMITS = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59), (0, 999))
_UNITS = ("hour", "minute", "second", "millisecond")


def datetime_from_parts(frame: Frame, node: Node) -> Vector:
    """Return the times of years, months, days and so on; other parts than those of a time stop the run."""
    *parts, refused = node.arguments
    date_parts, no_date = frame.strict(parts[:3])
    vectors = [*date_parts, *map(frame.vector, parts[3:])]
    years, months, days, *times = (
        np.clip(vector.values, *limits) for vector, limits in zip(vectors, _LIMITS, strict=True)
    )
    number = (years - 1970) * 12 + months - 1
    first = _first_days(number)
    is_no_date = (
        (days > _first_days(number + 1) - first) | _is_outside(date_parts[1], 1) | _is_outside(date_parts[2], 2)
    )
    wrong = [is_no_date if no_date is None else is_no_date & ~no_date]
    for place in (0, 3, 4, 5, 6):
        null = vectors[place].null
        is_outside_ = _is_outside(vectors[place], place)
        wrong.append(is_outside_ if null is None else is_outside_ & ~null)
    is_wrong = np.logical_or.reduce(np.broadcast_arrays(*wrong))
    if is_wrong.any():
        frame.where(is_wrong).vector(refused)
    time = sum(values * TICKS[unit] for values, unit in zip(times, _UNITS, strict=True))
    ticks = np.asarray(_start_of(first + days - 1) + time)
    return Numbers(ticks, either(*(vector.null for vector in vectors)))


def _is_outside(vector: Numbers, place: int) -> NDArray[np.bool_]:
    least, most = _LIMITS[place]
    return np.asarray((vector.values < least) | (vector.values > most))
