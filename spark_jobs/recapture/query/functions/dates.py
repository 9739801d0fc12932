"""The date functions: arithmetic on ticks, so that 100 ns are kept, from year 1 to 9999.

Parts and their short names are those of Microsoft's page "DATEPART (Azure Stream Analytics)". What it does not say
follows T-SQL, whose weeks begin on Sunday by default: a Sunday is weekday 1, and 1 January is always in week 1.
"""

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.call import Call, takes
from recapture.query.generate.let import failure, once
from recapture.query.generate.times import DAY, DAYS_TO_1970, date_of, moved, within_calendar
from recapture.query.generate.trees import cast_as, operation, spark_call, string, template
from recapture.query.generate.values import Value
from recapture.query.parse.date_parts import PARTS, SHORT_NAMES, TICKS

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_CYCLES = {"hour": 24, "minute": 60, "second": 60, "millisecond": 1_000, "microsecond": 1_000_000}
_NAMES = {
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "weekday": ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
}


def dateadd(call: Call) -> Value:
    """DATEADD(part, number, date): a number's fraction is truncated; a day that the month lacks becomes its last.

    A result outside the years 1 to 9999 stops the run.
    """
    takes(call, 3)
    part = _part(call)
    number, date = call.argument(1, AsaType.BIGINT, AsaType.FLOAT), call.argument(2, AsaType.DATETIME).node
    amount = number.node if number.type is AsaType.BIGINT else cast_as(number.node, "BIGINT")
    if part in TICKS:
        return _within_calendar(call, moved(date, amount, TICKS[part]))

    def shifted(ticks: exp.Expr) -> exp.Expr:
        months = f"CAST({{amount}} * {_MONTHS[part]}L AS INT)"
        days = f"(CAST(unix_date(add_months({{date}}, {months})) AS BIGINT) + {DAYS_TO_1970}L)"
        return template(f"({days} * {DAY}L + {{ticks}} % {DAY}L)", date=date_of(ticks), amount=amount, ticks=ticks)

    return _within_calendar(call, once(date, "ticks", shifted))


def datediff(call: Call) -> Value:
    """DATEDIFF(part, start, end), a bigint: how many boundaries of the part lie between; weeks begin on Sunday."""
    takes(call, 3)
    part = _part(call)
    start, end = (_boundaries(part, call.argument(index, AsaType.DATETIME).node) for index in (1, 2))
    return Value(operation(exp.Sub, end, start), AsaType.BIGINT)


def datepart(call: Call) -> Value:
    """DATEPART(part, date), a bigint; milliseconds and microseconds count within the second."""
    takes(call, 2)
    return _field(_part(call), call.argument(1, AsaType.DATETIME).node)


def datename(call: Call) -> Value:
    """DATENAME(part, date), a text: the English name of a month or a weekday, else DATEPART's number."""
    takes(call, 2)
    part = _part(call)
    number = _field(part, call.argument(1, AsaType.DATETIME).node).node
    names = _NAMES.get(part)
    if names is None:
        return Value(cast_as(number, "STRING"), AsaType.STRING)
    return Value(spark_call("elt", cast_as(number, "INT"), *map(string, names)), AsaType.STRING)


def giving(part: str) -> Callable[[Call], Value]:
    """Return the function of ASAQL that gives a part of a date: YEAR(date), MONTH(date) or DAY(date), a bigint."""

    def give(call: Call) -> Value:
        takes(call, 1)
        return _field(part, call.argument(0, AsaType.DATETIME).node)

    return give


def from_parts(call: Call) -> Value:
    """DATETIMEFROMPARTS(year, month, day, hour, minute, seconds, milliseconds); an impossible time stops the run."""
    takes(call, 7)
    parts = [call.argument(index, AsaType.BIGINT).node for index in range(7)]
    limits = ((1, 9999), *((0, most) for most in (23, 59, 59, 999)))
    outside = [
        template(f"{{part}} < {least}L OR {{part}} > {most}L", part=part)
        for part, (least, most) in zip([parts[0], *parts[3:]], limits, strict=True)
    ]
    clock = [
        template(f"{{part}} * {TICKS[unit]}L", part=part)
        for part, unit in zip(parts[3:], ("hour", "minute", "second", "millisecond"), strict=True)
    ]
    days = f"(CAST(unix_date({{date}}) AS BIGINT) + {DAYS_TO_1970}L)"
    time = template(
        f"(CASE WHEN {{outside}} THEN {{refused}} ELSE {days} * {DAY}L + {{time}} END)",
        outside=reduce(lambda one, other: exp.Or(this=one, expression=other), outside),
        refused=failure(f"{call.name}: the parts are not a time"),
        date=spark_call("make_date", *(cast_as(part, "INT") for part in parts[:3])),
        time=reduce(lambda one, other: exp.Add(this=one, expression=other), clock),
    )
    return Value(time, AsaType.DATETIME)


def _part(call: Call) -> str:
    word = call.word(0)
    if word not in PARTS:
        raise call.error(0, f"`{word}` is not a part of a date: the parts are {', '.join(SHORT_NAMES)}")
    return PARTS[word]


def _within_calendar(call: Call, ticks: exp.Expr) -> Value:
    refused = failure(f"{call.name}: the result lies outside the years 1 to 9999")
    return Value(within_calendar(ticks, refused), AsaType.DATETIME)


def _boundaries(part: str, ticks: exp.Expr) -> exp.Expr:
    """Return the number of boundaries of the part between the calendar's start and a time.

    "hour", `at` => (`at` div 36000000000L)
    """
    match part:
        case "year":
            return _field("year", ticks).node
        case "quarter" | "month":
            return once(ticks, "ticks", lambda it: _months(part, it))
        case "week":
            return template(f"(({{ticks}} div {DAY}L + 1L) div 7L)", ticks=ticks)
    return template(f"({{ticks}} div {TICKS[part]}L)", ticks=ticks)


def _months(part: str, ticks: exp.Expr) -> exp.Expr:
    """Return the number of the month or the quarter, in a count that goes on from year to year."""
    return template(f"(year({{date}}) * {12 // _MONTHS[part]}L + {part}({{date}}))", date=date_of(ticks))


def _field(part: str, ticks: exp.Expr) -> Value:
    node: exp.Expr
    match part:
        case "weekday":
            node = template("({weekday} + 1L)", weekday=_weekday(ticks))
        case "week":
            node = once(ticks, "ticks", _week)
        case "year" | "quarter" | "month" | "day" | "dayofyear":
            node = cast_as(spark_call(part, date_of(ticks)), "BIGINT")
        case _:
            node = template(f"({{ticks}} div {TICKS[part]}L % {_CYCLES[part]}L)", ticks=ticks)
    return Value(node, AsaType.BIGINT)


def _week(ticks: exp.Expr) -> exp.Expr:
    """Return the number of the week in the year."""
    return template("((dayofyear({date}) + 5L - {weekday}) div 7L + 1L)", date=date_of(ticks), weekday=_weekday(ticks))


def _weekday(ticks: exp.Expr) -> exp.Expr:
    """Return the number of the weekday, 0 for Sunday."""
    return template(f"({{ticks}} div {DAY}L + 1L) % 7L", ticks=ticks)
