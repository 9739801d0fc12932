"""The arguments of JavaScript functions: values of a known type, and whole rows."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from recapture.model import AsaType, JavaScriptFunction, Metadata
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.javascript_calls import javascript_argument, javascript_record
from recapture.query.analyse.relations import From
from recapture.query.functions.call import Call
from recapture.query.plan.expressions import Expr


def user_arguments(
    call: Call, function: JavaScriptFunction, types: FieldTypes, rows: Sequence[Expr | None]
) -> list[Expr]:
    """Return the arguments of udf.NAME(…) or uda.NAME(…) as JavaScript takes them.

    `rows` has the record of each argument that is a whole row. Raise DefinitionError for arguments that the function
    does not take.
    """
    kinds = function.arguments
    if function.is_aggregate and call.count != 1:
        message = f"{call.name} takes one argument: to pass several values, select them in a step and pass the step"
        raise call.error(None, message)
    if kinds is not None and len(kinds) != call.count:
        raise call.error(None, f"{call.name} has {len(kinds)} argument_types, but this has {call.count}")
    arguments = []
    for index, row in enumerate(rows):
        kind = kinds[index] if kinds is not None else None
        if row is not None:
            if kind not in (None, AsaType.RECORD):
                raise call.error(index, f"{call.name} takes {kind} here, but this is a record: the whole row")
            arguments.append(row)
            continue
        value = call.value(index) if kind is None else replace(call.argument(index, kind), kind=None)
        if value.type is not None and kind is None and not types.is_known_of_each(value):
            reason = "the type of this is not known, and JavaScript distinguishes strings from numbers"
            declaration = f"functions.{function.name}.argument_types in the pipeline file"
            raise call.error(index, f"{reason}: CAST it, or declare {declaration}")
        arguments.append(javascript_argument(value))
    return arguments


def whole_row(from_clause: From, node: exp.Expr) -> Expr | None:
    """Return the row that the name in FROM stands for, as a record; None for any other node.

    udf.f(input) => the fields of the body, with EventProcessedUtcTime and the other input columns
    """
    named = from_clause.row_named(node)
    if named is None:
        return None
    if from_clause.elements or from_clause.joins:
        clause = "JOIN" if from_clause.joins else "APPLY"
        raise from_clause.source.error(node, f"next to {clause}, a row cannot be an argument: name its columns")
    relation = named.relation
    if not isinstance(relation, InputRelation):
        columns = relation.star(node)
        if columns is None:
            message = f"the columns of `{named.name}` are not known: name them there instead of *"
            raise from_clause.source.error(node, message)
        for name, value in columns:
            if not from_clause.types.is_known_of_each(value):
                message = f"the type of `{name}`, a column of the row, is not known: CAST it, or CREATE TABLE"
                raise from_clause.source.error(node, message)
        return javascript_record(columns, None)
    if relation.offers(Metadata.IOT_HUB):
        message = "a whole message of an IoT hub cannot be an argument: select what the function reads in a step"
        raise from_clause.source.error(node, message)
    columns = relation.star(node)
    if columns is not None:
        return javascript_record(columns, None)
    return javascript_record(relation.starred(node), relation.record(node))
