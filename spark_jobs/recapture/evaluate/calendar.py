"""Dates of the proleptic Gregorian calendar, as days since 1970, and the parts of them."""

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.faults import stop_where
from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.numbers import computed
from recapture.evaluate.vectors import Numbers, Vector

Days = NDArray[np.int64]
_LARGEST_MONTHS = 12 * 2_000_000


def _months(days: Days) -> Days:
    """Return the number of whole months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_days(months: Days) -> Days:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def year(days: Days) -> Days:
    return np.asarray(_months(days) // 12 + 1970)


def month(days: Days) -> Days:
    return np.asarray(_months(days) % 12 + 1)


def quarter(days: Days) -> Days:
    return np.asarray(_months(days) % 12 // 3 + 1)


def day(days: Days) -> Days:
    return np.asarray(days - _first_days(_months(days)) + 1)


def day_of_year(days: Days) -> Days:
    return np.asarray(days - _first_days(_months(days) // 12 * 12) + 1)


YEAR, MONTH, QUARTER, DAY, DAY_OF_YEAR = map(computed, (year, month, quarter, day, day_of_year))


def add_months(frame: Frame, node: Node) -> Vector:
    """Return ADD_MONTHS: a day that the month lacks becomes its last."""
    (dates, amounts), null = frame.strict(node.arguments)
    far = np.abs(amounts.values) > _LARGEST_MONTHS
    stop_where(np.asarray(far), null, "ARITHMETIC_OVERFLOW", "a date is too far away")
    days = np.asarray(dates.values)
    months = _months(days)
    target = months + np.where(far, 0, amounts.values)
    first = _first_days(target)
    length = _first_days(target + 1) - first
    return Numbers(np.asarray(first + np.minimum(days - _first_days(months), length - 1)), null)


def make_date(frame: Frame, node: Node) -> Vector:
    """Return MAKE_DATE; an impossible date stops the run."""
    (years, months, days), null = frame.strict(node.arguments)
    year_, month_, day_ = (np.asarray(part.values) for part in (years, months, days))
    wrong = (month_ < 1) | (month_ > 12) | (np.abs(year_) > 2_000_000)
    first = _first_days((np.where(wrong, 1970, year_) - 1970) * 12 + np.where(wrong, 1, month_) - 1)
    following = _first_days((np.where(wrong, 1970, year_) - 1970) * 12 + np.where(wrong, 1, month_))
    wrong = wrong | (day_ < 1) | (day_ > following - first)
    stop_where(np.asarray(wrong), null, "DATETIME_FIELD_OUT_OF_BOUNDS", "the parts are not a date")
    return Numbers(np.asarray(first + day_ - 1), null)
