"""Calls of functions in Python, JavaScript and the comparison of shapes, computed for all rows before a projection.

A call gives a struct of a value and an error. The expression raises the error where it uses the value (see
`Op.RESULT`).
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from recapture.errors import DefinitionError, QueryError, RunError
from recapture.evaluate.bounds import SliceBounds
from recapture.model import TYPES, JavaScriptFunction, ShapeComparison
from recapture.query.plan.expressions import Expr, column, replaced, user_calls

Function = Callable[..., pa.Array]
"""Returns a struct of a value and an error for each row, given the columns of the arguments."""
Arguments = Callable[[pa.Table, Sequence[tuple[str, Expr]]], pa.Table]
"""Returns the values of named expressions for each row."""


def javascript(function: JavaScriptFunction) -> Function:
    """Return the callable of a JavaScript function. It loads V8 when it is called."""

    def call(*columns: pa.Array) -> pa.Array:
        from recapture.javascript.engine import engine

        try:
            values, errors = engine(function).call(columns, len(columns[0]))
        except DefinitionError as error:
            raise QueryError(str(error)) from error
        except RunError as error:
            # A context that has reached a limit cannot be used again.
            engine.cache_clear()
            raise QueryError(str(error)) from error
        return pa.StructArray.from_arrays([values, errors], ["value", "error"])

    return call


def geography(function: ShapeComparison) -> Function:
    """Return the callable of a comparison of shapes. It loads shapely when it is called."""

    def call(left: pa.Array, right: pa.Array) -> pa.Array:
        from recapture.geography import comparisons

        return comparisons.call(function, left, right)

    return call


def with_calls(
    rows: pa.Table, expressions: Sequence[Expr], bounds: SliceBounds, arguments: Arguments
) -> tuple[pa.Table, list[Expr]]:
    """Return the rows with a column for each call, and the expressions, which read these columns instead.

    [result(user_call[udf_f](x))] => rows with the column `@call0`, [result(@call0)]

    The arguments of a call may have calls of their own. Raise RunError if a function exceeds its limits.
    """
    functions = {function.internal_name: function for function in bounds.functions}
    remaining = list(expressions)
    number = 0
    while calls := _innermost(remaining):
        results: dict[Expr, Expr] = {}
        for call in calls:
            function = functions[str(call.constants[0])]
            name = f"@call{number}"
            number += 1
            columns = arguments(rows, [(f"a{place}", argument) for place, argument in enumerate(call.arguments)])
            rows = rows.append_column(name, _results(function, columns))
            results[call] = column(name)
        remaining = [replaced(expression, results) for expression in remaining]
    return rows, remaining


def _results(function: JavaScriptFunction | ShapeComparison, arguments: pa.Table) -> pa.Array:
    """Return a struct of a value and an error for each row. Without rows, neither V8 nor shapely is loaded."""
    if not len(arguments):
        return pa.array([], pa.struct([("value", TYPES[function.output].view), ("error", pa.string())]))
    call = javascript(function) if isinstance(function, JavaScriptFunction) else geography(function)
    return call(*(_one_array(column) for column in arguments.columns))


def _innermost(expressions: Sequence[Expr]) -> list[Expr]:
    """Return the different calls whose arguments have no calls."""
    calls = dict.fromkeys(call for expression in expressions for call in user_calls(expression))
    return [call for call in calls if not any(map(user_calls, call.arguments))]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
