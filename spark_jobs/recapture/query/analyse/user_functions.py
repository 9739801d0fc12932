"""Calls of JavaScript functions, and their arguments: values of a known type, and whole rows."""

from collections.abc import Sequence
from dataclasses import replace

from recapture.javascript.columns import DATE, JSON
from recapture.model import AsaType, JavaScriptFunction
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.json_text import json_of
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call
from recapture.query.plan.expressions import FALSE, NULL, Expr, call, cast_as, struct, user_call
from recapture.query.plan.operations import Op


def javascript_call(function: JavaScriptFunction, arguments: Sequence[Expr]) -> Value:
    """Return the value of a call; an error of the script stops the run: f, [x] => result(user_call[udf_f](x))"""
    # The argument says for how many rows the function is called.
    return Value(user_call(function.internal_name, arguments or [FALSE]), function.output)


def user_arguments(
    called: Call, function: JavaScriptFunction, types: FieldTypes, rows: Sequence[Expr | None]
) -> list[Expr]:
    """Return the arguments of udf.NAME(…) or uda.NAME(…) as JavaScript takes them.

    `rows` has the record of each argument that is a whole row. Raise DefinitionError for arguments that the function
    does not take.
    """
    kinds = function.arguments
    if function.is_aggregate and called.count != 1:
        message = f"{called.name} takes one argument: to pass several values, select them in a step and pass the step"
        raise called.error(None, message)
    if kinds is not None and len(kinds) != called.count:
        raise called.error(None, f"{called.name} has {len(kinds)} argument_types, but this has {called.count}")
    arguments = []
    for index, row in enumerate(rows):
        kind = kinds[index] if kinds is not None else None
        if row is not None:
            if kind not in (None, AsaType.RECORD):
                raise called.error(index, f"{called.name} takes {kind} here, but this is a record: the whole row")
            arguments.append(row)
            continue
        value = called.value(index) if kind is None else replace(called.argument(index, kind), kind=None)
        if value.type is not None and kind is None and not types.is_known_of_each(value):
            reason = "the type of this is not known, and JavaScript distinguishes strings from numbers"
            declaration = f"functions.{function.name}.argument_types in the pipeline file"
            raise called.error(index, f"{reason}: CAST it, or declare {declaration}")
        arguments.append(_javascript_argument(value))
    return arguments


def javascript_record(columns: Sequence[tuple[str, Value]], body: Value | None = None) -> Expr:
    """Return a row as a record: its columns, and the fields of the record `body` if there is one."""
    rest = [(JSON, body.node)] if body else []
    return struct([*rest, *((name, _javascript_argument(value)) for name, value in columns)])


def _javascript_argument(value: Value) -> Expr:
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
