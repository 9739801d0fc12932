"""Calls of scalar functions on given values, compiled as a query's are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.model import TYPES, AsaType
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.values import Value
from recapture.query.parse.asaql import parse
from recapture.query.plan.expressions import FALSE, TRUE, Expr, bigint, column, string
from recapture.query.plan.operations import Op
from recapture.time_model import timestamps

BIGINT, FLOAT, TEXT, DATETIME, BIT = AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING, AsaType.DATETIME, AsaType.BIT

Given = Value | str | int | float | bool | None
"""An argument: a value, or a Python value that stands for its literal; see `_is_verbatim` for other texts."""


def ticks(text: str) -> int:
    """Return a time's ticks."""
    parsed, valid = timestamps.parse(pa.array([text]))
    assert valid[0], text
    return int(parsed[0])


def time(text: str) -> Value:
    """Return a datetime."""
    return Value(bigint(ticks(text)), DATETIME)


def json(text: str, kind: AsaType) -> Value:
    """Return a record or an array."""
    return Value(string(text), kind)


@dataclass(frozen=True)
class _GivenScope:
    """A scope in which `g0`, `g1`, … are given values, and nothing else has a name."""

    values: Sequence[Value]

    def named_value(self, node: exp.Expr) -> Value | None:
        return self.values[int(node.name[1:])] if isinstance(node, exp.Column) else None

    def system_timestamp(self, node: exp.Expr) -> Value:
        raise NotImplementedError

    def window_id(self, node: exp.Expr) -> Value:
        raise NotImplementedError

    def aggregate(self, node: exp.Expr, call: exp.Anonymous, orderings: Sequence[exp.Ordered]) -> Value:
        raise NotImplementedError

    def analytic(self, node: exp.Expr) -> Value:
        raise NotImplementedError

    def metadata(self, node: exp.Anonymous) -> Value:
        raise NotImplementedError

    def whole_row(self, node: exp.Expr) -> Expr | None:
        raise NotImplementedError

    def property_of_row(self, node: exp.Expr, name: Value) -> Value | None:
        return None


def compiled(expression: str, *values: Value) -> Value:
    """Return what the compiler makes of an expression in which `g0`, `g1`, … stand for values."""
    script = parse(f"SELECT {expression} AS v INTO out FROM telemetry")
    types = FieldTypes(script.source, declared={})
    [item] = script.statements[0].expressions
    return Expressions(script.source, types, _GivenScope(values)).value(item.this)


def literal(given: Given) -> Value:
    """Return the value of a Python value's literal."""
    match given:
        case Value():
            return given
        case bool():
            return Value(TRUE if given else FALSE, BIT)
    return compiled(_written(given))


def call(name: str, *given: Given) -> Value:
    """Return what a function makes of its arguments."""
    values: list[Value] = []
    arguments: list[str] = []
    for index, argument in enumerate(given):
        if isinstance(argument, str) and _is_verbatim(name, index):
            arguments.append(argument)
        elif isinstance(argument, Value | bool):
            arguments.append(f"g{len(values)}")
            values.append(literal(argument))
        else:
            arguments.append(_written(argument))
    return compiled(f"{name}({', '.join(arguments)})", *values)


def _written(given: str | float | None) -> str:
    if given is None:
        return "NULL"
    return "'" + given.replace("'", "''") + "'" if isinstance(given, str) else repr(given)


def _is_verbatim(name: str, index: int) -> bool:
    """Return whether a text is not a literal but goes into the query as it is: the part of a date, a condition."""
    return index == 0 and (name == "IIF" or name in ("DATEADD", "DATEDIFF", "DATEPART", "DATENAME"))


Case = tuple[str, tuple[Given, ...], object]
"""A function, its arguments, and its result."""

_NO_COLUMNS = pa.table({"nothing": [0]})


def computed(expressions: Sequence[Expr], rows: pa.Table = _NO_COLUMNS) -> list[Any]:
    """Return the value of each expression in the first of the rows."""
    return [values[0].as_py() for values in columns(expressions, rows)]


def columns(expressions: Sequence[Expr], rows: pa.Table) -> list[pa.ChunkedArray]:
    """Return the values of each expression."""
    items = [(f"c{index}", expression) for index, expression in enumerate(expressions)]
    return list(project(rows, items, None, SliceBounds(0, 0)).columns)


def _over_columns(cases: Sequence[Case], times: int) -> tuple[list[Expr], dict[str, tuple[Value, AsaType]]]:
    """Return the calls over columns, and the argument and the type that each column stands for."""
    read: dict[str, tuple[Value, AsaType]] = {}
    results = []
    for number, (name, given, _) in enumerate(cases):
        arguments: list[Given] = []
        for index, argument in enumerate(given):
            verbatim = _is_verbatim(name, index) and isinstance(argument, str)
            if verbatim or argument is None:
                arguments.append(argument)
                continue
            value = literal(argument)
            assert value.type is not None
            named = column(f"c{number}_{index}")
            read[named.name] = value, value.type
            arguments.append(Value(named if times == 1 else Expr(Op.COALESCE, [named] * times), value.type))
        results.append(call(name, *arguments).node)
    return results, read


def computed_over_columns(cases: Sequence[Case], times: int = 1) -> list[object]:
    """Return the results of the calls when each argument is a column.

    The argument is an expression that names the column as many `times`.
    """
    results, arguments = _over_columns(cases, times)
    rows = {
        name: columns([value.node], _NO_COLUMNS)[0].cast(TYPES[type_].view)
        for name, (value, type_) in arguments.items()
    }
    return computed(results, pa.table(rows) if rows else _NO_COLUMNS)


def check(*cases: Case) -> None:
    """Assert that each case holds over literals, over columns, and over arguments that are long."""
    expected = _by_call(cases, [result for *_, result in cases])
    assert _by_call(cases, computed([call(name, *given).node for name, given, _ in cases])) == expected
    assert _by_call(cases, computed_over_columns(cases)) == expected
    assert _by_call(cases, computed_over_columns(cases, times=25)) == expected


def _by_call(cases: Sequence[Case], values: Sequence[object]) -> dict[str, str]:
    """Return the values with their types, so that 1, 1.0 and True differ, by call."""
    names = (f"{number}: {name}{given}" for number, (name, given, _) in enumerate(cases))
    return dict(zip(names, map(repr, values), strict=True))
