"""Evaluate the expressions and conditions of a compiled query over a table.

An expression is lowered to typed operations first, which work on whole columns.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from recapture.evaluate import control
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.frames import Frame, Node, whole
from recapture.evaluate.lowering import BIT, Lowering
from recapture.evaluate.operations import OPERATIONS
from recapture.evaluate.user_functions import with_calls
from recapture.formats.duckdb_sql import one_array
from recapture.process.recursion import room_for
from recapture.query.plan.expressions import Expr, conjuncts

_FRAMES_OF_NODE = 10
"""Most calls of functions within each other that evaluate a node, without those that evaluate its arguments."""
_FRAMES_OF_KERNEL = 6_000
"""Most calls within each other in a kernel: a JSON document has up to 1,000 arrays and objects within each other."""
Items = Sequence[tuple[str, Expr]]
"""Names and expressions of columns."""


def project(rows: pa.Table, items: Items, where: Expr | None, bounds: SliceBounds) -> pa.Table:
    """Return the columns `items` of the rows that meet `where`, in order. Raise RowError for a row's error."""
    if bounds.functions:
        expressions = [*(expression for _, expression in items), *([] if where is None else [where])]
        rows, values = with_calls(rows, expressions, bounds, lambda needed, named: project(needed, named, None, bounds))
        items = [(name, value) for (name, _), value in zip(items, values, strict=False)]
        where = where and values[-1]
    program = _program(tuple(items), where, tuple(zip(rows.schema.names, rows.schema.types, strict=True)))
    with room_for(program.depth * _FRAMES_OF_NODE + _FRAMES_OF_KERNEL):
        return _projected(rows, program, bounds)


def _projected(rows: pa.Table, program: "_Program", bounds: SliceBounds) -> pa.Table:
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


class _Program(NamedTuple):
    """The lowered expressions of one projection."""

    items: tuple[tuple[str, Node], ...]
    where: tuple[Node, ...]
    """Conditions that a row has to meet, one after the other."""

    @property
    def depth(self) -> int:
        """Number of nodes within each other."""
        return max((node.depth for node in (*self.where, *(node for _, node in self.items))), default=0)


@lru_cache(maxsize=1024)
def _program(
    items: tuple[tuple[str, Expr], ...], where: Expr | None, columns: tuple[tuple[str, pa.DataType], ...]
) -> _Program:
    lowering = Lowering(dict(columns), OPERATIONS)
    tests = [] if where is None else [lowering.lower(condition) for condition in conjuncts(where)]
    values = tuple((name, lowering.lower(expression)) for name, expression in items)
    return _Program(values, tuple(lowering.required(tests, [BIT] * len(tests))))
