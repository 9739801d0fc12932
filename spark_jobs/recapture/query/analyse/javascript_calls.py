"""Calls of Python functions: JavaScript functions, and what they take."""

from collections.abc import Sequence

from recapture.javascript.columns import DATE, JSON
from recapture.model import AsaType, JavaScriptFunction
from recapture.query.analyse.json_text import json_of
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import FALSE, NULL, Expr, call, cast_as, struct, user_call
from recapture.query.plan.operations import Op


def javascript_call(function: JavaScriptFunction, arguments: Sequence[Expr]) -> Value:
    """Return the value of a call; an error of the script stops the run: f, [x] => result(user_call[udf_f](x))"""
    # The argument says for how many rows the function is called.
    return Value(user_call(function.internal_name, arguments or [FALSE]), function.output)


def javascript_argument(value: Value) -> Expr:
    """Return a value as recapture.javascript.columns takes it: datetime t => a struct of `@date`"""
    if value.type is AsaType.STRING and value.kind is not None:
        return struct([(JSON, json_of(value))])
    match value.type:
        case None:
            return cast_as(NULL, AsaType.STRING)
        case AsaType.DATETIME:
            return struct([(DATE, call(Op.UNIX_MILLISECONDS, value.node))])
        case AsaType.RECORD | AsaType.ARRAY:
            return struct([(JSON, value.node)])
    return value.node


def javascript_record(columns: Sequence[tuple[str, Value]], body: Value | None) -> Expr:
    """Return a row as a record: its columns, and the fields of the record `body` if there is one."""
    rest = [(JSON, body.node)] if body else []
    return struct([*rest, *((name, javascript_argument(value)) for name, value in columns)])
