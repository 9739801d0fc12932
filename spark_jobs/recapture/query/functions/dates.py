"""The date functions: arithmetic on ticks, so that 100 ns are kept, from year 1 to 9999.

Parts and their short names are those of Microsoft's page "DATEPART (Azure Stream Analytics)". What it does not say
follows T-SQL, whose weeks begin on Sunday by default: a Sunday is weekday 1, and 1 January is always in week 1.
"""

from functools import reduce

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.call import Call, takes
from recapture.query.generate.let import failure, once
from recapture.query.generate.times import DAY, DAYS_TO_1970, date_of, moved, within_calendar
from recapture.query.generate.trees import bigint, cast_as, operation, spark_call, string, template
from recapture.query.generate.values import Value
from recapture.query.parse.date_parts import PARTS, SHORT_NAMES, TICKS

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_CYCLES = {"hour": 24, "minute": 60, "second": 60, "millisecond": 1_000, "microsecond": 1_000_000}
_MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NAMES = {
    "month": _MONTH_NAMES,
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
        return template(
            "((CAST(unix_date(add_months({date}, CAST({amount} * {months} AS INT))) AS BIGINT) + {to_1970}) * {day}"
            " + {ticks} % {day})",
            date=date_of(ticks),
            amount=amount,
            months=bigint(_MONTHS[part]),
            to_1970=bigint(DAYS_TO_1970),
            day=bigint(DAY),
            ticks=ticks,
        )

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


def year(call: Call) -> Value:
    """YEAR(date), a bigint."""
    takes(call, 1)
    return _field("year", call.argument(0, AsaType.DATETIME).node)


def month(call: Call) -> Value:
    """MONTH(date), a bigint."""
    takes(call, 1)
    return _field("month", call.argument(0, AsaType.DATETIME).node)


def day(call: Call) -> Value:
    """DAY(date), a bigint: the day of the month."""
    takes(call, 1)
    return _field("day", call.argument(0, AsaType.DATETIME).node)


def from_parts(call: Call) -> Value:
    """DATETIMEFROMPARTS(year, month, day, hour, minute, seconds, milliseconds); an impossible time stops the run."""
    takes(call, 7)
    parts = [call.argument(index, AsaType.BIGINT).node for index in range(7)]
    limits = ((1, 9999), *((0, most) for most in (23, 59, 59, 999)))
    outside = [
        template("{part} < {least} OR {part} > {most}", part=part, least=bigint(least), most=bigint(most))
        for part, (least, most) in zip([parts[0], *parts[3:]], limits, strict=True)
    ]
    date = spark_call("make_date", *(cast_as(part, "INT") for part in parts[:3]))
    clock = [
        template("{part} * {unit}", part=part, unit=bigint(TICKS[unit]))
        for part, unit in zip(parts[3:], ("hour", "minute", "second", "millisecond"), strict=True)
    ]
    return Value(
        template(
            "(CASE WHEN {outside} THEN {refused}"
            " ELSE (CAST(unix_date({date}) AS BIGINT) + {to_1970}) * {day} + {time} END)",
            outside=reduce(lambda one, other: exp.Or(this=one, expression=other), outside),
            refused=failure(f"{call.name}: the parts are not a time"),
            date=date,
            to_1970=bigint(DAYS_TO_1970),
            day=bigint(DAY),
            time=reduce(lambda one, other: exp.Add(this=one, expression=other), clock),
        ),
        AsaType.DATETIME,
    )


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
            return template("(({ticks} div {day} + 1L) div 7L)", ticks=ticks, day=bigint(DAY))
    return template("({ticks} div {unit})", ticks=ticks, unit=bigint(TICKS[part]))


def _months(part: str, ticks: exp.Expr) -> exp.Expr:
    """Return the number of the month or the quarter, in a count that goes on from year to year."""
    return template(
        "({year} * {a_year} + {part})",
        year=spark_call("year", date_of(ticks)),
        a_year=bigint(12 // _MONTHS[part]),
        part=spark_call(part, date_of(ticks)),
    )


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
            node = template(
                "({ticks} div {unit} % {cycle})", ticks=ticks, unit=bigint(TICKS[part]), cycle=bigint(_CYCLES[part])
            )
    return Value(node, AsaType.BIGINT)


def _week(ticks: exp.Expr) -> exp.Expr:
    """Return the number of the week in the year."""
    return template("((dayofyear({date}) + 5L - {weekday}) div 7L + 1L)", date=date_of(ticks), weekday=_weekday(ticks))


def _weekday(ticks: exp.Expr) -> exp.Expr:
    """Return the number of the weekday, 0 for Sunday."""
    return template("({ticks} div {day} + 1L) % 7L", ticks=ticks, day=bigint(DAY))
