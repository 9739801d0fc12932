"""Expressions computed for one row at a time, in plain Python: an oracle that shares no code with the kernels."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from recapture.model import AsaType
from recapture.query.plan.expressions import Expr
from recapture.query.plan.operations import Op

Row = Mapping[str, Any]
YEAR_1 = datetime(1, 1, 1)
TICKS_OF_DAY = 864_000_000_000


class StoppedError(Exception):
    """The value of a row stops the run."""


def value(expression: Expr, row: Row) -> Any:
    """Return the value of an expression for a row; NULL is None. Raise StoppedError if it stops the run."""
    op, arguments, constants = expression.op, expression.arguments, expression.constants
    match op:
        case Op.COLUMN:
            return row[expression.name]
        case Op.STRING | Op.BIGINT | Op.DOUBLE | Op.BIT:
            return constants[0]
        case Op.NULL:
            return None
        case Op.FAIL:
            raise StoppedError(constants[0])
        case Op.AND | Op.OR:
            return _connected(arguments, row, op is Op.OR)
        case Op.IN:
            equal = (Expr(Op.EQUAL, [arguments[0], member]) for member in arguments[1:])
            return _connected([*equal], row, True)
        case Op.CASE:
            branches = list(zip(arguments[:-1:2], arguments[1::2], strict=True))
            while branches and branches[-1][1] == arguments[-1]:
                branches.pop()  # its condition makes no difference
            for condition, chosen in branches:
                if value(condition, row):
                    return value(chosen, row)
            return value(arguments[-1], row)
        case Op.COALESCE:
            return next((found for part in arguments if (found := value(part, row)) is not None), None)
        case Op.IS_NULL | Op.IS_NOT_NULL:
            return (value(arguments[0], row) is None) == (op is Op.IS_NULL)
        case Op.LEAST:
            return min((found for part in arguments if (found := value(part, row)) is not None), default=None)
        case Op.JOIN_STRINGS:
            separator, *parts = (value(part, row) for part in arguments)
            return None if separator is None else separator.join(part for part in parts if part is not None)
        case Op.CAST:
            return _cast(value(arguments[0], row), AsaType(str(constants[0])), bool(constants[1]))
        case Op.FINITE:
            number = value(arguments[0], row)
            return number if number is None or math.isfinite(number) else value(arguments[1], row)
        case Op.WITHIN_CALENDAR:
            ticks = value(arguments[0], row)
            return ticks if ticks is None or 0 <= ticks < 3_652_059 * TICKS_OF_DAY else value(arguments[1], row)
        case Op.LEFT | Op.RIGHT | Op.SUBSTRING | Op.STUFF:
            return _part(op, arguments[:-1], row)
        case Op.TRANSLATE:
            return _translated(arguments, row)
        case Op.DIVIDE | Op.INTEGER_DIVIDE | Op.MODULO:
            operands = _strict(reversed(arguments), row)  # the divisor comes first
            return None if operands is None else _STRICT[op](*reversed(operands))
    operands = _strict(arguments, row)
    return None if operands is None else _STRICT[op](*operands, *constants)


def _strict(arguments: Iterable[Expr], row: Row) -> list[Any] | None:
    """Return the values of arguments; None if one is NULL, after which no other is computed."""
    values = []
    for argument in arguments:
        found = value(argument, row)
        if found is None:
            return None
        values.append(found)
    return values


def _connected(sides: list[Expr] | tuple[Expr, ...], row: Row, decisive: bool) -> bool | None:
    is_known = True
    for side in sides:
        found = value(side, row)
        if found is decisive:
            return decisive
        is_known = is_known and found is not None
    return (not decisive) if is_known else None


def _cast(given: Any, to: AsaType, lenient: bool) -> Any:
    if given is None:
        return None
    match to:
        case AsaType.FLOAT:
            return float(given)
        case AsaType.BIT:
            return given != 0
        case AsaType.BIGINT if isinstance(given, float):
            if math.isfinite(given) and -(2.0**63) <= given < 2.0**63:
                return math.trunc(given)
            return _refused(lenient, 2**63 - 1 if given == 2.0**63 else None)
    return int(given)


def _refused(lenient: bool, value_: Any) -> Any:
    if value_ is None and not lenient:
        raise StoppedError
    return value_


def _bigint(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise StoppedError
    return number


def _truncated(one: int, other: int) -> int:
    if other == 0:
        raise StoppedError
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _sum(one: Any, other: Any) -> Any:
    return one + other if isinstance(one, float) else _bigint(one + other)


def _product(one: Any, other: Any) -> Any:
    return one * other if isinstance(one, float) else _bigint(one * other)


def _divided(one: float, other: float) -> float:
    if other == 0:
        raise StoppedError
    return one / other


def _order(given: Any) -> Any:
    """Return what orders values: strings by their bytes, NaN after all floats."""
    if isinstance(given, str):
        return given.encode()
    return (math.isnan(given), 0.0 if math.isnan(given) else given) if isinstance(given, float) else given


def _whole(function: Callable[[float], int], number: float) -> float:
    return float(function(number)) if abs(number) < 2.0**52 else number


def _rounded(number: Any, places: int) -> Any:
    if isinstance(number, float):
        if not math.isfinite(number):
            return number
        return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)) + 0.0
    return _bigint(int(Decimal(number).quantize(Decimal(1).scaleb(-min(places, 0)), ROUND_HALF_UP)))


def _translated(arguments: Sequence[Expr], row: Row) -> str | None:
    text, *lists, _ = arguments
    found = _strict(lists, row)
    if found is None:
        return None
    old, new = found
    if len(old) != len(new):
        raise StoppedError
    string = value(text, row)
    return string and "".join(new[old.index(sign)] if sign in old else sign for sign in string)


def _part(op: Op, arguments: Sequence[Expr], row: Row) -> str | None:
    """Return a part of a string, or STUFF; the length is computed first."""
    text_and_places = arguments[:-1] if op is Op.STUFF else arguments
    count = value(text_and_places[-1], row)
    if count is not None and count < 0:
        raise StoppedError
    found = None if count is None else _strict([*reversed(text_and_places[:-1])], row)
    if found is None:
        return None
    *numbers, text = found
    numbers.append(count)
    places = range(1, len(text) + 1)
    match op:
        case Op.LEFT:
            return "".join(text[place - 1] for place in places if place <= numbers[0])
        case Op.RIGHT:
            return "".join(text[place - 1] for place in places if place > len(text) - numbers[0])
        case Op.SUBSTRING:
            start, count = numbers
            return "".join(text[place - 1] for place in places if start <= place < start + count)
    if numbers[0] > len(text):
        return ""
    start, count = max(numbers[0], 1), numbers[1]
    insertion = value(arguments[-1], row)
    return text[: start - 1] + insertion + text[start - 1 + count :]


def _position(sought: str, text: str, start: int, *_: Any) -> int:
    places = range(max(start, 1), len(text) + 1)
    return next((place for place in places if sought and text[place - 1 :].startswith(sought)), 0)


def _date(ticks: int) -> datetime:
    return YEAR_1 + timedelta(microseconds=ticks // 10)


def _date_part(ticks: int, part: str) -> int:
    at = _date(ticks)
    new_year = at.replace(month=1, day=1)
    day_of_year = (at.date() - new_year.date()).days + 1
    parts = {
        "year": at.year, "quarter": (at.month + 2) // 3, "month": at.month, "day": at.day, "dayofyear": day_of_year,
        "weekday": at.isoweekday() % 7 + 1, "week": (day_of_year + new_year.isoweekday() % 7 - 1) // 7 + 1,
        "hour": at.hour, "minute": at.minute, "second": at.second,
        "millisecond": at.microsecond // 1000, "microsecond": at.microsecond,
    }  # fmt: skip
    return parts[part]


def _moved(ticks: int, amount: int, unit: int) -> int:
    """Return a time; -1 for any outside the calendar."""
    moved = ticks + amount * unit
    return moved if 0 <= moved < 3_652_059 * TICKS_OF_DAY else -1


def _moved_by_months(ticks: int, amount: int, unit: int) -> int:
    at = _date(ticks)
    month = at.year * 12 + at.month - 1 + amount * unit
    if not 12 <= month < 120_000:
        return -1
    day = at.day
    while True:
        try:
            date = datetime(month // 12, month % 12 + 1, day)
        except ValueError:
            day -= 1
        else:
            return (date - YEAR_1).days * TICKS_OF_DAY + ticks % TICKS_OF_DAY


def _array(text: str) -> list[Any] | None:
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return None
    return document if isinstance(document, list) else None


def _element(text: str, index: int) -> str | None:
    array = _array(text)
    if array is None or not 0 <= index < len(array) or array[index] is None:
        return None
    found = array[index]
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _array_length(text: str) -> int | None:
    array = _array(text)
    return None if array is None else len(array)


_STRICT: Mapping[Op, Callable[..., Any]] = {
    Op.NOT: lambda given: not given,
    Op.EQUAL: lambda one, other: _order(one) == _order(other),
    Op.NOT_EQUAL: lambda one, other: _order(one) != _order(other),
    Op.LESS: lambda one, other: _order(one) < _order(other),
    Op.LESS_OR_EQUAL: lambda one, other: _order(one) <= _order(other),
    Op.GREATER: lambda one, other: _order(one) > _order(other),
    Op.GREATER_OR_EQUAL: lambda one, other: _order(one) >= _order(other),
    Op.ADD: _sum,
    Op.SUBTRACT: lambda one, other: one - other if isinstance(one, float) else _bigint(one - other),
    Op.MULTIPLY: _product,
    Op.DIVIDE: _divided,
    Op.INTEGER_DIVIDE: lambda one, other: _bigint(_truncated(one, other)),
    Op.MODULO: lambda one, other: one - _truncated(one, other) * other,
    Op.NEGATE: lambda given: -given if isinstance(given, float) else _bigint(-given),
    Op.ABSOLUTE: lambda given: abs(given) if isinstance(given, float) else _bigint(abs(given)),
    Op.SIGN: lambda given: given if given == 0 or math.isnan(given) else math.copysign(1.0, given),
    Op.FLOOR: lambda given: _whole(math.floor, given),
    Op.CEILING: lambda given: _whole(math.ceil, given),
    Op.ROUND: _rounded,
    Op.SQUARE: lambda given: given * given,
    Op.SQUARE_ROOT: lambda given: math.nan if given < 0 else math.sqrt(given),
    Op.REVERSE: lambda text: "".join(reversed(text)),
    Op.LENGTH: lambda text: len(text.rstrip(" ")),
    Op.CODE_POINT: lambda text: ord(text[0]) if text else None,
    Op.CONCAT: lambda *texts: "".join(texts),
    Op.REPLACE: lambda text, old, new: text.replace(old, new) if old else text,
    Op.REPEAT: lambda text, count: None if count < 0 else text * count,
    Op.POSITION: _position,
    Op.DATE_PART: _date_part,
    Op.MOVED: _moved,
    Op.MOVED_BY_MONTHS: _moved_by_months,
    Op.ARRAY_ELEMENT: _element,
    Op.ARRAY_LENGTH: _array_length,
}
"""Operations that are NULL if an argument is."""
