"""The date functions: arithmetic on ticks, so that 100 ns are kept, from year 1 to 9999.

Parts and their short names are those of Microsoft's page "DATEPART (Azure Stream Analytics)". What it does not say
follows T-SQL, whose weeks begin on Sunday by default: a Sunday is weekday 1, and 1 January is always in week 1.
"""

from recapture.model import AsaType
from recapture.query.functions.arity import takes
from recapture.query.functions.call import Call
from recapture.query.generate.let import failure, once
from recapture.query.generate.values import Value, quoted_text
from recapture.query.parse.date_parts import PARTS, SHORT_NAMES, TICKS
from recapture.time_model.ticks import LARGEST, UNIX_EPOCH

_DAY = TICKS["day"]
_DAYS_TO_1970 = UNIX_EPOCH // _DAY
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
    number, date = call.of(1, AsaType.BIGINT, AsaType.FLOAT), call.of(2, AsaType.DATETIME).sql
    amount = number.sql if number.type is AsaType.BIGINT else f"CAST({number.sql} AS BIGINT)"
    if part in TICKS:
        return _within_calendar(call, f"({date} + {amount} * {TICKS[part]}L)")
    months = f"CAST({amount} * {_MONTHS[part]}L AS INT)"

    def shifted(ticks: str) -> str:
        days = f"CAST(unix_date(add_months({_date(ticks)}, {months})) AS BIGINT) + {_DAYS_TO_1970}L"
        return f"(({days}) * {_DAY}L + {ticks} % {_DAY}L)"

    return _within_calendar(call, once(date, "ticks", shifted))


def datediff(call: Call) -> Value:
    """DATEDIFF(part, start, end), a bigint: how many boundaries of the part lie between; weeks begin on Sunday."""
    takes(call, 3)
    part = _part(call)
    start, end = (_boundaries(part, call.of(place, AsaType.DATETIME).sql) for place in (1, 2))
    return Value(f"({end} - {start})", AsaType.BIGINT)


def datepart(call: Call) -> Value:
    """DATEPART(part, date), a bigint; milliseconds and microseconds count within the second."""
    takes(call, 2)
    return _field(_part(call), call.of(1, AsaType.DATETIME).sql)


def datename(call: Call) -> Value:
    """DATENAME(part, date), a text: the English name of a month or a weekday, else DATEPART's number."""
    takes(call, 2)
    part = _part(call)
    number = _field(part, call.of(1, AsaType.DATETIME).sql).sql
    names = _NAMES.get(part)
    if names is None:
        return Value(f"CAST({number} AS STRING)", AsaType.TEXT)
    return Value(f"elt(CAST({number} AS INT), {', '.join(quoted_text(name) for name in names)})", AsaType.TEXT)


def year(call: Call) -> Value:
    """YEAR(date), a bigint."""
    takes(call, 1)
    return _field("year", call.of(0, AsaType.DATETIME).sql)


def month(call: Call) -> Value:
    """MONTH(date), a bigint."""
    takes(call, 1)
    return _field("month", call.of(0, AsaType.DATETIME).sql)


def day(call: Call) -> Value:
    """DAY(date), a bigint: the day of the month."""
    takes(call, 1)
    return _field("day", call.of(0, AsaType.DATETIME).sql)


def from_parts(call: Call) -> Value:
    """DATETIMEFROMPARTS(year, month, day, hour, minute, seconds, milliseconds); an impossible time stops the run."""
    takes(call, 7)
    years, months, days, *clock = (call.of(place, AsaType.BIGINT).sql for place in range(7))
    limits = [(years, 1, 9999), *((sql, 0, most) for sql, most in zip(clock, (23, 59, 59, 999), strict=True))]
    outside = " OR ".join(f"{sql} < {least}L OR {sql} > {most}L" for sql, least, most in limits)
    days_since = (
        f"CAST(unix_date(make_date({', '.join(f'CAST({sql} AS INT)' for sql in (years, months, days))})) AS BIGINT)"
    )
    units = (TICKS[part] for part in ("hour", "minute", "second", "millisecond"))
    time = " + ".join(f"{sql} * {unit}L" for sql, unit in zip(clock, units, strict=True))
    refused = failure(f"{call.name}: the parts are not a time")
    return Value(
        f"(CASE WHEN {outside} THEN {refused} ELSE ({days_since} + {_DAYS_TO_1970}L) * {_DAY}L + {time} END)",
        AsaType.DATETIME,
    )


def _part(call: Call) -> str:
    word = call.word(0)
    if word not in PARTS:
        raise call.refuse(0, f"`{word}` is not a part of a date: there are {', '.join(SHORT_NAMES)}")
    return PARTS[word]


def _within_calendar(call: Call, ticks: str) -> Value:
    refused = failure(f"{call.name}: the result lies outside the years 1 to 9999")
    return Value(
        once(ticks, "sum", lambda it: f"(CASE WHEN {it} < 0L OR {it} > {LARGEST}L THEN {refused} ELSE {it} END)"),
        AsaType.DATETIME,
    )


def _date(ticks: str) -> str:
    return f"date_from_unix_date(CAST({ticks} div {_DAY}L - {_DAYS_TO_1970}L AS INT))"


def _boundaries(part: str, ticks: str) -> str:
    """Return the number of boundaries of the part between the calendar's start and a time."""
    match part:
        case "year":
            return f"CAST(year({_date(ticks)}) AS BIGINT)"
        case "quarter" | "month":
            a_year = 12 // _MONTHS[part]
            return once(ticks, "ticks", lambda it: f"(year({_date(it)}) * {a_year}L + {part}({_date(it)}))")
        case "week":
            return f"(({ticks} div {_DAY}L + 1L) div 7L)"
    return f"({ticks} div {TICKS[part]}L)"


def _field(part: str, ticks: str) -> Value:
    match part:
        case "weekday":
            sql = f"({_weekday(ticks)} + 1L)"
        case "week":
            sql = once(ticks, "ticks", lambda it: f"((dayofyear({_date(it)}) + 5L - {_weekday(it)}) div 7L + 1L)")
        case "year" | "quarter" | "month" | "day" | "dayofyear":
            sql = f"CAST({part}({_date(ticks)}) AS BIGINT)"
        case _:
            sql = f"({ticks} div {TICKS[part]}L % {_CYCLES[part]}L)"
    return Value(sql, AsaType.BIGINT)


def _weekday(ticks: str) -> str:
    """Return the number of the weekday, 0 for Sunday."""
    return f"({ticks} div {_DAY}L + 1L) % 7L"
