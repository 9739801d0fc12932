"""Scalars of rows, computed on Arrow. Each function gives what Spark SQL gives in ANSI mode."""

import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from recapture.errors import RunError
from recapture.query.partials import Call, Column, Constant, Scalar, ScalarFunction
from recapture.time_model.ticks import LARGEST

Datum: TypeAlias = pa.Array | pa.Scalar


def evaluate(scalar: Scalar, rows: pa.RecordBatch) -> pa.Array:
    """Return the value of a scalar for each row."""
    value = _value(scalar, rows)
    return pa.repeat(value, rows.num_rows) if isinstance(value, pa.Scalar) else value


def _value(scalar: Scalar, rows: pa.RecordBatch) -> Datum:
    match scalar:
        case Column(name):
            return rows[name]
        case Constant(value, type_):
            return pa.scalar(value, type_)
        case Call(function, arguments):
            return _FUNCTIONS[function](*(_value(argument, rows) for argument in arguments))


def _case(*arguments: Datum) -> Datum:
    *branches, default = arguments
    for condition, value in reversed([*zip(branches[::2], branches[1::2], strict=True)]):
        default = pc.if_else(pc.fill_null(condition, False), value, default)
    return default


def _all(combine: Callable[[Datum, Datum], Datum]) -> Callable[..., Datum]:
    return lambda *arguments: functools.reduce(combine, arguments)


def _equal(left: Datum, right: Datum) -> Datum:
    """Compare as Spark does: NaN equals NaN."""
    equal = pc.equal(left, right)
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _may_be_nan(left, right) else equal


def _less(left: Datum, right: Datum) -> Datum:
    """Compare as Spark does: NaN is greater than any other float."""
    less = pc.less(left, right)
    return pc.or_(less, pc.and_not(pc.is_nan(right), pc.is_nan(left))) if _may_be_nan(left, right) else less


def _may_be_nan(left: Datum, right: Datum) -> bool:
    return bool(pa.types.is_floating(left.type)) and any(pc.any(pc.is_nan(side)).as_py() for side in (left, right))


def _moved(ticks: Datum, by: Datum) -> Datum:
    moved = pc.add(ticks, by)
    if pc.any(pc.or_(pc.less(moved, 0), pc.greater(moved, LARGEST))).as_py():
        raise RunError("DATEADD: the result lies outside the years 1 to 9999")
    return moved


_FUNCTIONS: Mapping[ScalarFunction, Callable[..., Datum]] = {
    ScalarFunction.EQUAL: _equal,
    ScalarFunction.NOT_EQUAL: lambda left, right: pc.invert(_equal(left, right)),
    ScalarFunction.LESS: _less,
    ScalarFunction.LESS_OR_EQUAL: lambda left, right: pc.invert(_less(right, left)),
    ScalarFunction.GREATER: lambda left, right: _less(right, left),
    ScalarFunction.GREATER_OR_EQUAL: lambda left, right: pc.invert(_less(left, right)),
    ScalarFunction.AND: _all(pc.and_kleene),
    ScalarFunction.OR: _all(pc.or_kleene),
    ScalarFunction.NOT: pc.invert,
    ScalarFunction.IS_NULL: pc.is_null,
    ScalarFunction.COALESCE: pc.coalesce,
    ScalarFunction.CASE: _case,
    ScalarFunction.TO_FLOAT: lambda value: pc.cast(value, pa.float64(), safe=False),
    ScalarFunction.ADD: pc.add,
    ScalarFunction.SUBTRACT: pc.subtract,
    ScalarFunction.MULTIPLY: pc.multiply,
    ScalarFunction.MOVE: _moved,
}
