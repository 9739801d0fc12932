"""The date functions: arithmetic on ticks, so that 100 ns are kept, from year 1 to 9999.

Parts and their short names are those of Microsoft's page "DATEPART (Azure Stream Analytics)". What it does not say
follows T-SQL, whose weeks begin on Sunday by default: a Sunday is weekday 1, and 1 January is always in week 1.
"""

from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call, takes
from recapture.query.parse.date_parts import PARTS, SHORT_NAMES, TICKS
from recapture.query.plan.expressions import Expr, cast_as, failure
from recapture.query.plan.operations import Op

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
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
    amount = number.node if number.type is AsaType.BIGINT else cast_as(number.node, AsaType.BIGINT)
    refused = failure(f"{call.name}: the result lies outside the years 1 to 9999")
    if part in TICKS:
        moved = Expr(Op.MOVED, [date, amount], [TICKS[part]])
    else:
        moved = Expr(Op.MOVED_BY_MONTHS, [date, amount], [_MONTHS[part]])
    return Value(Expr(Op.WITHIN_CALENDAR, [moved, refused]), AsaType.DATETIME)


def datediff(call: Call) -> Value:
    """DATEDIFF(part, start, end), a bigint: how many boundaries of the part lie between; weeks begin on Sunday."""
    takes(call, 3)
    part = _part(call)
    # The number of a year is that of its boundary.
    op = Op.DATE_PART if part == "year" else Op.DATE_BOUNDARIES
    dates = (call.argument(index, AsaType.DATETIME).node for index in (1, 2))
    start, end = (Expr(op, [date], [part]) for date in dates)
    return Value(Expr(Op.SUBTRACT, [end, start]), AsaType.BIGINT)


def datepart(call: Call) -> Value:
    """DATEPART(part, date), a bigint; milliseconds and microseconds count within the second."""
    takes(call, 2)
    return _date_part(_part(call), call.argument(1, AsaType.DATETIME))


def datename(call: Call) -> Value:
    """DATENAME(part, date), a string: the English name of a month or a weekday, else DATEPART's number."""
    takes(call, 2)
    part = _part(call)
    number = _date_part(part, call.argument(1, AsaType.DATETIME)).node
    names = _NAMES.get(part)
    if names is None:
        return Value(cast_as(number, AsaType.STRING), AsaType.STRING)
    return Value(Expr(Op.NAME_OF, [number], [names]), AsaType.STRING)


def _part(call: Call) -> str:
    word = call.word(0)
    if word not in PARTS:
        raise call.error(0, f"`{word}` is not a part of a date: the parts are {', '.join(SHORT_NAMES)}")
    return PARTS[word]


def _date_part(part: str, date: Value) -> Value:
    return Value(Expr(Op.DATE_PART, [date.node], [part]), AsaType.BIGINT)
