"""Arithmetic on times, in ticks, as Spark SQL."""

from sqlglot import exp

from recapture.query.generate.let import once_in
from recapture.query.generate.trees import bigint, template
from recapture.query.parse.date_parts import TICKS
from recapture.time_model.ticks import LARGEST, UNIX_EPOCH

DAY = TICKS["day"]
"""Length of a day in ticks."""
DAYS_TO_1970 = UNIX_EPOCH // DAY

MOVED = "({ticks} + {amount} * {unit})"
WITHIN_CALENDAR = "CASE WHEN {it} < 0L OR {it} > {largest} THEN {outside} ELSE {it} END"


def moved(ticks: exp.Expr, amount: exp.Expr, unit: int) -> exp.Expr:
    """Return the time `amount` times `unit` later; the unit is in ticks."""
    return template(MOVED, ticks=ticks, amount=amount, unit=bigint(unit))


def date_of(ticks: exp.Expr) -> exp.Expr:
    """Return the date of a time, as a Spark DATE."""
    return template(f"date_from_unix_date(CAST({{ticks}} div {DAY}L - {DAYS_TO_1970}L AS INT))", ticks=ticks)


def within_calendar(ticks: exp.Expr, outside: exp.Expr) -> exp.Expr:
    """Return the ticks, or `outside` if their time lies outside the years 1 to 9999."""
    return once_in(WITHIN_CALENDAR, "ticks", ticks, largest=bigint(LARGEST), outside=outside)
