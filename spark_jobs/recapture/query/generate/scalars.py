"""Expressions of a plan as scalars that Arrow can compute, wherever they mean the same there.

greater(x, cast(1)) => Call(GREATER, (Column("x"), Call(TO_FLOAT, (Constant(1),))))
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

import pyarrow as pa

from recapture.model import AsaType
from recapture.query.merges import WINDOW_END
from recapture.query.partials import Call, Column, Constant, Scalar, ScalarFunction
from recapture.query.plan.expressions import Expr, walk
from recapture.query.plan.operations import Op
from recapture.time_model.ticks import LARGEST

_COMPARISONS = {
    Op.EQUAL: ScalarFunction.EQUAL,
    Op.NOT_EQUAL: ScalarFunction.NOT_EQUAL,
    Op.LESS: ScalarFunction.LESS,
    Op.LESS_OR_EQUAL: ScalarFunction.LESS_OR_EQUAL,
    Op.GREATER: ScalarFunction.GREATER,
    Op.GREATER_OR_EQUAL: ScalarFunction.GREATER_OR_EQUAL,
}
_ARITHMETIC = {
    Op.ADD: ScalarFunction.ADD,
    Op.SUBTRACT: ScalarFunction.SUBTRACT,
    Op.MULTIPLY: ScalarFunction.MULTIPLY,
}
_LOGIC = {Op.AND: ScalarFunction.AND, Op.OR: ScalarFunction.OR, Op.NOT: ScalarFunction.NOT}
_TYPES = {
    Op.STRING: pa.string(),
    Op.BIGINT: pa.int64(),
    Op.DOUBLE: pa.float64(),
    Op.BIT: pa.bool_(),
    Op.NULL: pa.null(),
}
"""Types of literals."""

LARGEST_EXPRESSION = 200
"""Largest number of nodes of an expression. A task would be slow with a longer one, and Python could not pickle it."""


class NotInTasksError(Exception):
    """Why a part of a query is for Spark."""


@dataclass(frozen=True)
class Typed:
    """A scalar with its type."""

    scalar: Scalar
    type: pa.DataType
    """Type on Arrow; null for the constant NULL."""
    finite: bool = True
    """Whether a float is certainly finite. Arrow and Spark order NaN in different ways, and zeros with a sign."""
    size: int = 1
    """Number of its nodes."""


class Row(Protocol):
    """A row that a SELECT reads: an event or a group of events, or what a step selects of it."""

    def column(self, name: str) -> Typed:
        """Return a column of the row."""

    @property
    def conditions(self) -> tuple[Scalar, ...]:
        """Return the conditions that the event or the group has to meet."""


def scalar(what: str, expression: Expr, row: Row) -> Typed:
    """Return a part of a SELECT as a scalar over a row. Raise NotInTasksError, which names it, if it is none."""
    if sum(1 for _ in walk(expression)) > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    try:
        value = _typed(expression, row)
    except _UnknownError:
        refuse(what)
    if value.size > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    return value


def refuse(what: str) -> NoReturn:
    raise NotInTasksError(f"{what} is computed in Spark")


class _UnknownError(Exception):
    """Arrow may compute another value than Spark."""


def _call(function: ScalarFunction, arguments: Sequence[Typed], type_: pa.DataType, finite: bool = True) -> Typed:
    size = 1 + sum(argument.size for argument in arguments)
    return Typed(Call(function, tuple(argument.scalar for argument in arguments)), type_, finite, size)


def _bits(expressions: Sequence[Expr], row: Row) -> list[Typed]:
    values = [_typed(expression, row) for expression in expressions]
    if any(value.type != pa.bool_() for value in values):
        raise _UnknownError
    return values


def _typed(expression: Expr, row: Row) -> Typed:
    """Return an expression as a scalar over a row. Raise _UnknownError if Arrow may compute another value."""
    op, arguments = expression.op, expression.arguments
    match op:
        case Op.COLUMN if expression.is_column:
            return row.column(expression.name)
        case Op.STRING | Op.BIGINT | Op.DOUBLE | Op.BIT:
            [literal] = expression.constants
            assert not isinstance(literal, tuple)
            return Typed(Constant(literal, _TYPES[op]), _TYPES[op])
        case Op.NULL:
            return Typed(Constant(None, pa.null()), pa.null())
        case Op.ROW:
            return Typed(Constant(1, pa.int64()), pa.int64())
        case Op.NEGATE if arguments[0].op in (Op.BIGINT, Op.DOUBLE):
            number = _typed(arguments[0], row)
            assert isinstance(number.scalar, Constant)
            assert isinstance(number.scalar.value, int | float)
            return replace(number, scalar=replace(number.scalar, value=-number.scalar.value))
        case Op.NOT | Op.AND | Op.OR:
            return _call(_LOGIC[op], _bits(arguments, row), pa.bool_())
        case Op.IS_NULL:
            return _call(ScalarFunction.IS_NULL, [_typed(arguments[0], row)], pa.bool_())
        case Op.IN:
            value, *members = (_typed(argument, row) for argument in arguments)
            equal = [_compared(ScalarFunction.EQUAL, value, member) for member in members]
            return _call(ScalarFunction.OR, equal, pa.bool_())
        case Op.CASE:
            return _case(arguments, row)
        case Op.COALESCE:
            values = _of_one_type([_typed(argument, row) for argument in arguments])
            finite = all(value.finite for value in values)
            return _call(ScalarFunction.COALESCE, values, values[0].type, finite)
        case Op.CAST if expression.constants == (AsaType.FLOAT, False):
            value = _typed(arguments[0], row)
            if value.type in (pa.int64(), pa.float64()):
                return _call(ScalarFunction.TO_FLOAT, [value], pa.float64(), value.finite)
        case Op.WITHIN_CALENDAR:
            return _moved(arguments[0], row)
        case Op.ADD | Op.SUBTRACT | Op.MULTIPLY:
            return _computed(_ARITHMETIC[op], *(_typed(side, row) for side in arguments))
        case _ if op in _COMPARISONS:
            return _compared(_COMPARISONS[op], *(_typed(side, row) for side in arguments))
    raise _UnknownError


def _compared(function: ScalarFunction, left: Typed, right: Typed) -> Typed:
    equality = function in (ScalarFunction.EQUAL, ScalarFunction.NOT_EQUAL)
    comparable = (pa.int64(), pa.float64(), pa.string(), *[pa.bool_()] * equality)
    if left.type != right.type or left.type not in comparable:
        raise _UnknownError
    return _call(function, [left, right], pa.bool_())


def _computed(function: ScalarFunction, left: Typed, right: Typed) -> Typed:
    """Return an operation on floats. One on bigints may overflow, which is an error that Spark reports."""
    if left.type != pa.float64() or right.type != pa.float64():
        raise _UnknownError
    removes_sign_of_zero = function is ScalarFunction.ADD and right.scalar == Constant(0.0, pa.float64())
    return _call(function, [left, right], pa.float64(), removes_sign_of_zero and left.finite)


def _moved(moved: Expr, row: Row) -> Typed:
    """Return the end of a window, moved by a constant. Another time may leave the calendar where nothing uses it."""
    if moved.op is not Op.MOVED:
        raise _UnknownError
    (time, amount), [unit] = (_typed(argument, row) for argument in moved.arguments), moved.constants
    number = amount.scalar.value if isinstance(amount.scalar, Constant) else None
    if time.scalar != Column(WINDOW_END) or not isinstance(number, int) or not isinstance(unit, int):
        raise _UnknownError
    if abs(number * unit) > LARGEST:
        raise _UnknownError
    return _call(ScalarFunction.MOVE, [time, Typed(Constant(number * unit, pa.int64()), pa.int64())], pa.int64())


def _case(arguments: Sequence[Expr], row: Row) -> Typed:
    conditions = _bits(arguments[:-1:2], row)
    branches = [*arguments[1::2], arguments[-1]]
    *values, otherwise = _of_one_type([_typed(branch, row) for branch in branches])
    turns = [part for pair in zip(conditions, values, strict=True) for part in pair]
    finite = all(value.finite for value in (*values, otherwise))
    return _call(ScalarFunction.CASE, [*turns, otherwise], otherwise.type, finite)


def _of_one_type(values: Sequence[Typed]) -> list[Typed]:
    """Return values that have one type; a constant NULL gets the type of the others."""
    types = {value.type for value in values} - {pa.null()}
    if len(types) != 1:
        raise _UnknownError
    (type_,) = types
    return [value if value.type == type_ else Typed(Constant(None, type_), type_) for value in values]
