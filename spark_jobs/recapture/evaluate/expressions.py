"""Evaluate the scalar expressions and conditions of a compiled query over a table, as Spark SQL does in ANSI mode.

An expression is lowered to typed operations first. Whatever may give another value than Spark is refused then, so that
a query is known to be evaluated before any event is read. Operations work on whole columns.
"""

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from recapture.evaluate import control
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.frames import Frame, Node, whole
from recapture.evaluate.lowering import BOOLEAN, Lowering
from recapture.evaluate.refusal import NotEvaluatedError
from recapture.evaluate.syntax import Call, Syntax, parsed
from recapture.evaluate.user_functions import with_calls
from recapture.formats.duckdb_sql import one_array
from recapture.query.lower.spark import render
from recapture.query.plan.expressions import Expr

__all__ = ["NotEvaluatedError", "project", "require"]

Items = Sequence[tuple[str, Expr]]
"""Names and expressions of columns."""


def require(items: Items, where: Expr | None, schema: pa.Schema) -> pa.Schema:
    """Return the schema that `project` gives. Raise NotEvaluatedError if it cannot evaluate an expression."""
    program = _program(*_texts(items, where), _columns(schema))
    return pa.schema([(name, node.type) for name, node in program.items])


def project(rows: pa.Table, items: Items, where: Expr | None, bounds: SliceBounds) -> pa.Table:
    """Return the columns `items` of the rows that meet `where`, in order.

    Raise NotEvaluatedError before anything is evaluated if an expression is unknown, and RowError for a row's error.
    """
    if bounds.functions:
        expressions = [*(expression for _, expression in items), *([] if where is None else [where])]
        rows, values = with_calls(rows, expressions, bounds, lambda given, named: project(given, named, None, bounds))
        items = [(name, value) for (name, _), value in zip(items, values, strict=False)]
        where = where and values[-1]
    return project_sql(rows, *_texts(items, where), bounds)


def project_sql(rows: pa.Table, items: tuple[tuple[str, str], ...], where: str | None, bounds: SliceBounds) -> pa.Table:
    """Do what `project` does for expressions in Spark SQL."""
    program = _program(items, where, _columns(rows.schema))
    frame = whole(rows, bounds)
    for condition in program.where:
        frame = frame.where(control.holds(frame, condition))
    selected = frame.root_rows()
    indexes = None if selected is None else pa.array(selected)
    arrays = [_column(rows, indexes, frame, node) for _, node in program.items]
    if not arrays:
        return pa.table({}).slice(0, 0)
    schema = pa.schema([(name, node.type) for name, node in program.items])
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(rows: pa.Table, indexes: pa.Array | None, frame: Frame, node: Node) -> pa.Array | pa.ChunkedArray:
    """Return the values of a node; a column that is passed on is not computed."""
    if node.kernel is control.column:
        column = rows[node.parameters[0]]
        if column.type != node.type:
            column = column.cast(node.type)
        return column if indexes is None else one_array(column).take(indexes)
    return frame.array(node)


class _Program:
    """The lowered expressions of one projection."""

    def __init__(self, items: tuple[tuple[str, Node], ...], where: tuple[Node, ...]) -> None:
        self.items = items
        self.where = where
        """Conditions that a row has to meet, one after the other."""


def _texts(items: Items, where: Expr | None) -> tuple[tuple[tuple[str, str], ...], str | None]:
    return tuple((name, render(expression)) for name, expression in items), None if where is None else render(where)


def _columns(schema: pa.Schema) -> tuple[tuple[str, pa.DataType], ...]:
    return tuple(zip(schema.names, schema.types, strict=True))


@lru_cache(maxsize=1024)
def _program(
    items: tuple[tuple[str, str], ...], where: str | None, columns: tuple[tuple[str, pa.DataType], ...]
) -> _Program:
    lowering = Lowering(dict(columns))
    conditions = [] if where is None else _conjuncts(parsed(where))
    lowered = lowering.lower_all([*conditions, *(parsed(text) for _, text in items)])
    tests, values = lowered[: len(conditions)], lowered[len(conditions) :]
    if any(test.type != BOOLEAN for test in tests):
        tests = lowering.fitting(tests, [BOOLEAN] * len(tests)) or []
        if len(tests) != len(conditions):
            raise NotEvaluatedError("a WHERE that is not a condition")
    return _Program(tuple((name, node) for (name, _), node in zip(items, values, strict=True)), tuple(tests))


def _conjuncts(condition: Syntax) -> list[Syntax]:
    """Return the conditions that Spark tests one after the other: a AND (b AND c) => [a, b, c]"""
    match condition:
        case Call("and", (one, other)):
            return [*_conjuncts(one), *_conjuncts(other)]
    return [condition]
