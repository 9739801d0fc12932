"""Calls of functions in Python, JavaScript and the comparison of shapes, computed for all rows before a projection.

A call gives a struct of a value and an error. The expression raises the error where it uses the value (see
`query.generate.user_functions`).
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from recapture.errors import DefinitionError, RunError
from recapture.evaluate.bounds import SliceBounds
from recapture.model import TYPES, JavaScriptFunction, ShapeComparison
from recapture.query.generate import trees
from recapture.query.generate.trees import replaced, user_calls

Function = Callable[..., pa.Array]
"""Returns a struct of a value and an error for each row, given the columns of the arguments."""
Arguments = Callable[[pa.Table, Sequence[tuple[str, exp.Expr]]], pa.Table]
"""Returns the values of named expressions for each row."""


def javascript(function: JavaScriptFunction) -> Function:
    """Return the callable of a JavaScript function. It loads V8 when it is called."""

    def call(*columns: pa.Array) -> pa.Array:
        from recapture.javascript.engine import engine

        try:
            values, errors = engine(function).call(columns, len(columns[0]))
        except DefinitionError as error:
            raise RunError(str(error)) from error
        except RunError:
            # A context that has reached a limit cannot be used again.
            engine.cache_clear()
            raise
        return pa.StructArray.from_arrays([values, errors], ["value", "error"])

    return call


def geography(function: ShapeComparison) -> Function:
    """Return the callable of a comparison of shapes. It loads shapely when it is called."""

    def call(one: pa.Array, other: pa.Array) -> pa.Array:
        from recapture.geography import comparisons

        return comparisons.call(function, one, other)

    return call


def with_calls(
    rows: pa.Table, expressions: Sequence[exp.Expr], bounds: SliceBounds, arguments: Arguments
) -> tuple[pa.Table, list[exp.Expr]]:
    """Return the rows with a column for each call, and the expressions, which read these columns instead.

    [`udf_f`(`x`).value] => rows with the column `@call0`, [`@call0`.value]

    The arguments of a call may have calls of their own. Raise RunError if a function exceeds its limits.
    """
    functions = {function.spark_name: function for function in bounds.functions}
    remaining = list(expressions)
    number = 0
    while calls := _innermost(remaining):
        results: list[exp.Expr] = []
        for call in calls:
            function = functions[str(call.this)[1:-1]]
            name = f"@call{number}"
            number += 1
            columns = arguments(rows, [(f"a{place}", argument) for place, argument in enumerate(call.expressions)])
            rows = rows.append_column(name, _results(function, columns))
            results.append(trees.column(name))
        remaining = [replaced(expression, calls, results) for expression in remaining]
    return rows, remaining


def _results(function: JavaScriptFunction | ShapeComparison, arguments: pa.Table) -> pa.Array:
    """Return a struct of a value and an error for each row. Without rows, neither V8 nor shapely is loaded."""
    if not len(arguments):
        return pa.array([], pa.struct([("value", TYPES[function.output].view), ("error", pa.string())]))
    call = javascript(function) if isinstance(function, JavaScriptFunction) else geography(function)
    return call(*(_one_array(column) for column in arguments.columns))


def _innermost(expressions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the different calls whose arguments have no calls."""
    calls: dict[exp.Expr, None] = {}
    todo = [call for expression in expressions for call in user_calls(expression)]
    while todo:
        call = todo.pop(0)
        inner = [inner for argument in call.expressions for inner in user_calls(argument)]
        if inner:
            todo += inner
        else:
            calls[call] = None
    return list(calls)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
