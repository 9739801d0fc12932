"""Scalars of events, computed on Arrow. Each function gives what Spark SQL gives in ANSI mode."""

import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from recapture.query.partials import Call, Column, Constant, Function, Scalar

Datum: TypeAlias = pa.Array | pa.Scalar


def evaluate(scalar: Scalar, events: pa.RecordBatch) -> pa.Array:
    """Return the value of a scalar for each event."""
    value = _value(scalar, events)
    return pa.repeat(value, events.num_rows) if isinstance(value, pa.Scalar) else value


def _value(scalar: Scalar, events: pa.RecordBatch) -> Datum:
    match scalar:
        case Column(name):
            return events[name]
        case Constant(value, type_):
            return pa.scalar(value, type_)
        case Call(function, arguments):
            return _FUNCTIONS[function](*(_value(argument, events) for argument in arguments))


def _case(*arguments: Datum) -> Datum:
    *branches, default = arguments
    for condition, value in reversed([*zip(branches[::2], branches[1::2], strict=True)]):
        default = pc.if_else(pc.fill_null(condition, False), value, default)
    return default


def _all(combine: Callable[[Datum, Datum], Datum]) -> Callable[..., Datum]:
    return lambda *arguments: functools.reduce(combine, arguments)


_FUNCTIONS: Mapping[Function, Callable[..., Datum]] = {
    Function.EQUAL: pc.equal,
    Function.NOT_EQUAL: pc.not_equal,
    Function.LESS: pc.less,
    Function.LESS_OR_EQUAL: pc.less_equal,
    Function.GREATER: pc.greater,
    Function.GREATER_OR_EQUAL: pc.greater_equal,
    Function.AND: _all(pc.and_kleene),
    Function.OR: _all(pc.or_kleene),
    Function.NOT: pc.invert,
    Function.IS_NULL: pc.is_null,
    Function.COALESCE: pc.coalesce,
    Function.CASE: _case,
    Function.TO_FLOAT: lambda value: pc.cast(value, pa.float64(), safe=False),
    Function.ADD: pc.add,
    Function.SUBTRACT: pc.subtract,
    Function.MULTIPLY: pc.multiply,
}
