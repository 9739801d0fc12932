"""Expressions that tasks compute with the functions of Arrow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import pyarrow as pa

from recapture.model import AsaType
from recapture.query.plan.expressions import Constant, Expr, cast_as, column, double, size, walk
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.operations import Op
from recapture.time_model.ticks import LARGEST

_COMPARISONS = (Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_OR_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL)
_LITERALS = {
    Op.STRING: pa.string(),
    Op.BIGINT: pa.int64(),
    Op.ROW: pa.int64(),
    Op.DOUBLE: pa.float64(),
    Op.BIT: pa.bool_(),
    Op.NULL: pa.null(),
}
_TYPES = {
    pa.string(): AsaType.STRING,
    pa.int64(): AsaType.BIGINT,
    pa.float64(): AsaType.FLOAT,
    pa.bool_(): AsaType.BIT,
}

LARGEST_EXPRESSION = 200
"""Largest number of nodes of an expression. A task would be slow with a longer one, and Python could not pickle it."""


class NotInTasksError(Exception):
    """Why tasks do not compute a part of a query."""


@dataclass(frozen=True)
class Typed:
    """An expression with its type."""

    expression: Expr
    """The expression over an event or a group."""
    type: pa.DataType
    """Type on Arrow; null for the literal NULL."""
    finite: bool = True
    """Whether a float is certainly finite. Arrow orders NaN, and zeros with a sign, in its own way."""


Row: TypeAlias = Callable[[str], Typed]
"""Returns a column, by its name, of a row that a SELECT reads: of an event or of a group of events."""


def scalar(what: str, expression: Expr, row: Row) -> Typed:
    """Return a part of a SELECT over a row. Raise NotInTasksError, which names it, unless Arrow can compute it."""
    if size(expression) > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    try:
        value = _typed(expression, row)
    except _UnknownError:
        refuse(what)
    if size(value.expression) > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    # Tasks compute all parts for all rows, so that an error in a branch that is not taken would stop the run.
    if any(part.op in _GUARDS and may_stop(part) for part in walk(value.expression)):
        refuse(what)
    return value


_GUARDS = (Op.CASE, Op.COALESCE, Op.AND, Op.OR)


def may_stop(expression: Expr) -> bool:
    """Return whether an expression that tasks compute may stop the run."""
    return any(part.op is Op.WITHIN_CALENDAR for part in walk(expression))


def refuse(what: str) -> NoReturn:
    raise NotInTasksError(f"{what} is not computed in tasks")


class _UnknownError(Exception):
    """Arrow may compute another value than `evaluate`."""


def _operation(
    op: Op, arguments: Sequence[Typed], type_: pa.DataType, finite: bool = True, constants: Sequence[Constant] = ()
) -> Typed:
    return Typed(Expr(op, [argument.expression for argument in arguments], constants), type_, finite)


def _all_typed(expressions: Sequence[Expr], row: Row) -> list[Typed]:
    return [_typed(expression, row) for expression in expressions]


def _typed(expression: Expr, row: Row) -> Typed:
    """Return an expression over a row. Raise _UnknownError if Arrow may compute another value."""
    op, arguments = expression.op, expression.arguments
    match op:
        case Op.COLUMN if expression.is_column:
            return row(expression.name)
        case _ if op in _LITERALS:
            return Typed(expression, _LITERALS[op])
        case Op.NEGATE if arguments[0].op in (Op.BIGINT, Op.DOUBLE):
            [number] = arguments[0].constants
            assert isinstance(number, int | float)
            return Typed(Expr(arguments[0].op, (), [-number]), _LITERALS[arguments[0].op])
        case Op.NOT | Op.AND | Op.OR | Op.IS_NULL | Op.IS_NOT_NULL | Op.IN_ORDER:
            return _operation(op, _all_typed(arguments, row), pa.bool_(), constants=expression.constants)
        case Op.IN:
            value, *members = _all_typed(arguments, row)
            return _operation(Op.OR, [_compared(Op.EQUAL, value, member) for member in members], pa.bool_())
        case Op.CASE:
            *values, otherwise = _of_one_type(_all_typed([*arguments[1::2], arguments[-1]], row))
            turns = [part for turn in zip(_all_typed(arguments[:-1:2], row), values, strict=True) for part in turn]
            finite = all(value.finite for value in (*values, otherwise))
            return _operation(op, [*turns, otherwise], otherwise.type, finite)
        case Op.COALESCE:
            values = _of_one_type(_all_typed(arguments, row))
            return _operation(op, values, values[0].type, all(value.finite for value in values))
        case Op.CAST if expression.constants == (AsaType.FLOAT, False):
            value = _typed(arguments[0], row)
            if value.type in (pa.int64(), pa.float64()):
                return Typed(cast_as(value.expression, AsaType.FLOAT), pa.float64(), value.finite)
        case Op.TOKEN_TEXT:
            return _operation(op, _all_typed(arguments, row), pa.string())
        case Op.WITHIN_CALENDAR if arguments[0].op is Op.MOVED:
            return _moved(expression, row)
        case Op.ADD | Op.SUBTRACT | Op.MULTIPLY:
            return _computed(op, *_all_typed(arguments, row))
        case _ if op in _COMPARISONS:
            return _compared(op, *_all_typed(arguments, row))
    raise _UnknownError


def _compared(op: Op, left: Typed, right: Typed) -> Typed:
    comparable = (pa.int64(), pa.float64(), pa.string(), *[pa.bool_()] * (op in (Op.EQUAL, Op.NOT_EQUAL)))
    if left.type != right.type or left.type not in comparable:
        raise _UnknownError
    return _operation(op, [left, right], pa.bool_())


def _computed(op: Op, left: Typed, right: Typed) -> Typed:
    """Return an operation on floats. One on bigints may overflow, which is an error."""
    if left.type != pa.float64() or right.type != pa.float64():
        raise _UnknownError
    removes_sign_of_zero = op is Op.ADD and right.expression == double(0.0)
    return _operation(op, [left, right], pa.float64(), removes_sign_of_zero and left.finite)


def _moved(expression: Expr, row: Row) -> Typed:
    """Return the end of a window, moved by a constant. Another time may leave the calendar where nothing uses it."""
    moved, refused = expression.arguments
    (time, amount), [unit] = _all_typed(moved.arguments, row), moved.constants
    number = amount.expression.constants[0] if amount.expression.op is Op.BIGINT else None
    if time.expression != column(WINDOW_END) or not isinstance(number, int) or not isinstance(unit, int):
        raise _UnknownError
    if abs(number * unit) > LARGEST:
        raise _UnknownError
    by = Expr(Op.MOVED, [time.expression, amount.expression], moved.constants)
    return Typed(Expr(Op.WITHIN_CALENDAR, [by, refused]), pa.int64())


def _of_one_type(values: Sequence[Typed]) -> list[Typed]:
    """Return values that have one type; a literal NULL gets the type of the others."""
    types = {value.type for value in values} - {pa.null()}
    if len(types) != 1:
        raise _UnknownError
    (type_,) = types
    return [
        value if value.type == type_ else Typed(cast_as(value.expression, _TYPES[type_]), type_) for value in values
    ]
