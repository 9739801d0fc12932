"""Trees of Spark SQL as scalars that Arrow can compute, wherever they mean the same there.

(`x` > CAST(1L AS DOUBLE)) => Call(GREATER, (Column("x"), Call(TO_FLOAT, (Constant(1),))))
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

import pyarrow as pa
from sqlglot import exp

from recapture.query.generate.times import MOVED, WITHIN_CALENDAR
from recapture.query.generate.trees import Template, is_of_row
from recapture.query.merges import WINDOW_END
from recapture.query.partials import Call, Column, Constant, Scalar, ScalarFunction
from recapture.time_model.ticks import LARGEST

_OPERATORS: dict[type[exp.Expr], ScalarFunction] = {
    exp.And: ScalarFunction.AND,
    exp.Or: ScalarFunction.OR,
    exp.EQ: ScalarFunction.EQUAL,
    exp.NEQ: ScalarFunction.NOT_EQUAL,
    exp.LT: ScalarFunction.LESS,
    exp.LTE: ScalarFunction.LESS_OR_EQUAL,
    exp.GT: ScalarFunction.GREATER,
    exp.GTE: ScalarFunction.GREATER_OR_EQUAL,
    exp.Add: ScalarFunction.ADD,
    exp.Sub: ScalarFunction.SUBTRACT,
    exp.Mul: ScalarFunction.MULTIPLY,
}
_TO_FLOAT = "CAST({value} AS DOUBLE)"

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


def scalar(what: str, tree: exp.Expr, row: Row) -> Typed:
    """Return a part of a SELECT as a scalar over a row. Raise NotInTasksError, which names it, if it is none."""
    if sum(1 for _ in tree.walk()) > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    try:
        value = _typed(tree, row)
    except _UnknownError:
        refuse(what)
    if value.size > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    return value


def refuse(what: str) -> NoReturn:
    raise NotInTasksError(f"{what} is not computed in tasks")


class _UnknownError(Exception):
    """Arrow may compute another value than Spark."""


def _call(function: ScalarFunction, arguments: Sequence[Typed], type_: pa.DataType, finite: bool = True) -> Typed:
    size = 1 + sum(argument.size for argument in arguments)
    return Typed(Call(function, tuple(argument.scalar for argument in arguments)), type_, finite, size)


def _bit(tree: exp.Expr, row: Row) -> Typed:
    value = _typed(tree, row)
    if value.type != pa.bool_():
        raise _UnknownError
    return value


def _typed(tree: exp.Expr, row: Row) -> Typed:
    """Return a tree of Spark SQL as a scalar over a row. Raise _UnknownError if Arrow may compute another value.

    (`x` > CAST(1L AS DOUBLE)) => Call(GREATER, (Column("x"), Call(TO_FLOAT, (Constant(1),))))
    """
    match tree:
        case exp.Paren():
            return _typed(tree.this, row)
        case exp.Column() if is_of_row(tree):
            return row.column(tree.name)
        case exp.Literal() if tree.is_string:
            return Typed(Constant(tree.name, pa.string()), pa.string())
        case exp.Literal() if tree.name.endswith("D"):
            return Typed(Constant(float(tree.name[:-1]), pa.float64()), pa.float64())
        case exp.Literal():
            return Typed(Constant(int(tree.name.removesuffix("L")), pa.int64()), pa.int64())
        case exp.Neg(this=exp.Literal()):
            number = _typed(tree.this, row)
            assert isinstance(number.scalar, Constant)
            assert isinstance(number.scalar.value, int | float)
            return replace(number, scalar=replace(number.scalar, value=-number.scalar.value))
        case exp.Boolean():
            return Typed(Constant(bool(tree.this), pa.bool_()), pa.bool_())
        case exp.Null():
            return Typed(Constant(None, pa.null()), pa.null())
        case exp.Not():
            return _call(ScalarFunction.NOT, [_bit(tree.this, row)], pa.bool_())
        case exp.And() | exp.Or():
            return _call(_OPERATORS[type(tree)], [_bit(tree.this, row), _bit(tree.expression, row)], pa.bool_())
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return _call(ScalarFunction.IS_NULL, [_typed(tree.this, row)], pa.bool_())
        case exp.In() if tree.expressions:
            value = _typed(tree.this, row)
            equal = [_compared(ScalarFunction.EQUAL, value, _typed(one, row)) for one in tree.expressions]
            return _call(ScalarFunction.OR, equal, pa.bool_())
        case exp.Case() if tree.this is None:
            return _case(tree, row)
        case exp.Anonymous(this="coalesce"):
            values = _of_one_type([_typed(argument, row) for argument in tree.expressions])
            finite = all(value.finite for value in values)
            return _call(ScalarFunction.COALESCE, values, values[0].type, finite)
        case Template(name=name) if name == _TO_FLOAT:
            value = _typed(tree.args["value"], row)
            if value.type in (pa.int64(), pa.float64()):
                return _call(ScalarFunction.TO_FLOAT, [value], pa.float64(), value.finite)
        case Template(name=name) if name == WITHIN_CALENDAR:
            return _moved(tree.args["it"], row)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _computed(_OPERATORS[type(tree)], _typed(tree.this, row), _typed(tree.expression, row))
        case exp.Binary() if type(tree) in _OPERATORS:
            return _compared(_OPERATORS[type(tree)], _typed(tree.this, row), _typed(tree.expression, row))
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


def _moved(tree: exp.Expr, row: Row) -> Typed:
    """Return the end of a window, moved by a constant. Another time may leave the calendar where nothing uses it."""
    if not (isinstance(tree, Template) and tree.name == MOVED):
        raise _UnknownError
    time, *factors = (_typed(tree.args[place], row) for place in ("ticks", "amount", "unit"))
    amount, unit = (factor.scalar.value if isinstance(factor.scalar, Constant) else None for factor in factors)
    if time.scalar != Column(WINDOW_END) or not isinstance(amount, int) or not isinstance(unit, int):
        raise _UnknownError
    if abs(amount * unit) > LARGEST:
        raise _UnknownError
    return _call(ScalarFunction.MOVE, [time, Typed(Constant(amount * unit, pa.int64()), pa.int64())], pa.int64())


def _case(tree: exp.Case, row: Row) -> Typed:
    conditions = [_bit(branch.this, row) for branch in tree.args["ifs"]]
    default = tree.args.get("default")
    branches = [*(branch.args["true"] for branch in tree.args["ifs"]), exp.Null() if default is None else default]
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
