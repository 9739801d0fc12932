"""Arithmetic on times, in ticks, as Spark SQL."""

from sqlglot import exp

from recapture.query.generate.let import once
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
    return template(
        "date_from_unix_date(CAST({ticks} div {day} - {to_1970} AS INT))",
        ticks=ticks,
        day=bigint(DAY),
        to_1970=bigint(DAYS_TO_1970),
    )


def within_calendar(ticks: exp.Expr, outside: exp.Expr) -> exp.Expr:
    """Return the ticks, or `outside` if their time lies outside the years 1 to 9999."""
    return once(
        ticks,
        "ticks",
        lambda it: template(WITHIN_CALENDAR, it=it, largest=bigint(LARGEST), outside=outside),
    )
