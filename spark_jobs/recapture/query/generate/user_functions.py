"""Calls of Python functions in Spark SQL: JavaScript functions, and the geospatial functions that compare shapes.

Spark computes a Python function for all rows before anything else of a SELECT. So a call gives a struct of a value
and an error, and the error is raised only where the value is used: a CASE guards a call, as it guards a CAST.
"""

from collections.abc import Sequence

from sqlglot import exp

from recapture.javascript.columns import DATE, JSON
from recapture.model import AsaType, JavaScriptFunction
from recapture.query.generate.json_text import json_of
from recapture.query.generate.let import let
from recapture.query.generate.select_items import SelectItem, struct
from recapture.query.generate.trees import cast_as, template, user_call
from recapture.query.generate.values import Value
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, UNIX_EPOCH


def javascript_call(function: JavaScriptFunction, arguments: Sequence[exp.Expr]) -> Value:
    """Return the value of a call; an error of the script stops the run.

    f, [`x`] => transform(array(`udf_f`(`x`)), `@@result` -> CASE WHEN `@@result`.error IS NOT NULL THEN … END)[0]
    """
    # Spark has no Python function without arguments.
    return Value(result_of(function.spark_name, arguments or [exp.false()]), function.output)


def result_of(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """Return the result of a Python function, by its name in Spark SQL; an error stops the run."""
    value_or_error = "CASE WHEN {it}.error IS NOT NULL THEN raise_error({it}.error) ELSE {it}.value END"
    return let(user_call(name, *arguments), "result", lambda it: template(value_or_error, it=it))


def javascript_argument(value: Value) -> exp.Expr:
    """Return a value as recapture.javascript.columns takes it: datetime `t` => a struct of `@date`"""
    if value.type is AsaType.STRING and value.kind is not None:
        return struct([SelectItem(JSON, json_of(value))])
    match value.type:
        case None:
            return cast_as(exp.Null(), "STRING")
        case AsaType.DATETIME:
            epoch = UNIX_EPOCH // TICKS_PER_MILLISECOND
            milliseconds = template(f"({{ticks}} div {TICKS_PER_MILLISECOND}L - {epoch}L)", ticks=value.node)
            return struct([SelectItem(DATE, milliseconds)])
        case AsaType.RECORD | AsaType.ARRAY:
            return struct([SelectItem(JSON, value.node)])
    return value.node


def javascript_event(value: str, time: str) -> exp.Expr:
    """Return what an aggregate takes of an event, from the SQL of its prepared value and its time in ticks.

    x.v, x.t => named_struct('value', x.v, 'timestamp', named_struct('@date', …))
    """
    timestamp = javascript_argument(Value(template(time), AsaType.DATETIME))
    return struct([SelectItem("value", template(value)), SelectItem("timestamp", timestamp)])


def javascript_record(columns: Sequence[tuple[str, Value]], body: Value | None) -> exp.Expr:
    """Return a row as a record: its columns, and the fields of the record `body` if there is one."""
    rest = [SelectItem(JSON, body.node)] if body else []
    return struct([*rest, *(SelectItem(name, javascript_argument(value)) for name, value in columns)])
