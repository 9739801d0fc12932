"""Whole rows, by their names in FROM: as arguments of JavaScript functions, and for GetRecordPropertyValue."""

from sqlglot import exp

from recapture.model import AsaType, Metadata
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.json_text import json_record
from recapture.query.analyse.relations import From, NamedRelation
from recapture.query.analyse.user_functions import javascript_record
from recapture.query.analyse.values import Value
from recapture.query.parse.names import identifier_at, identifiers
from recapture.query.plan.expressions import Expr, call
from recapture.query.plan.operations import Op


def row_of(from_clause: From, node: exp.Expr) -> NamedRelation | None:
    """Return the relation whose name in FROM a node is; None for any other node, and for the name of a column."""
    names = identifiers(node) or []
    return from_clause.named(names[0].name) if len(names) == 1 and not from_clause.lists(names[0].name) else None


def property_of_row(from_clause: From, node: exp.Expr, name: Value) -> Value | None:
    """Return the property of a row that its name in FROM stands for; None for any other node.

    a, 'x' => a.x    a, b.name => coalesce(property of the input columns, property of the body)

    Raise DefinitionError for a column that the row does not have, and for a computed name unless an input is read.
    """
    source, named = from_clause.source, row_of(from_clause, node)
    if named is None:
        return None
    if name.text is not None:
        value = named.field([identifier_at(source.offset(node), name.text)])
        if value is None:
            raise source.error(node, f"`{named.name}` has no column `{name.text}`")
        return value
    relation = named.relation
    if not isinstance(relation, InputRelation):
        message = f"`{named.name}` is a step, and the name of its column is computed here: name the column, or use CASE"
        raise source.error(node, message)
    if relation.offers(Metadata.IOT_HUB):
        raise source.error(node, "the name of a property of a whole message of an IoT hub is not computed: name it")
    added, in_body = relation.starred(node), call(Op.JSON_PROPERTY, named.record(node).node, name.node)
    if not added:
        return Value(in_body, AsaType.STRING, is_json_element=True)
    columns = named.numbered(Value(json_record(added), AsaType.RECORD))
    found = call(Op.COALESCE, call(Op.JSON_PROPERTY, columns.node, name.node), in_body)
    return Value(found, AsaType.STRING, is_json_element=True)


def whole_row(from_clause: From, node: exp.Expr) -> Expr | None:
    """Return the row that the name in FROM stands for, as a record for JavaScript; None for any other node.

    udf.f(input) => the fields of the body, with EventProcessedUtcTime and the other input columns
    """
    source, named = from_clause.source, from_clause.row_named(node)
    if named is None:
        return None
    if from_clause.elements or from_clause.joins:
        clause = "JOIN" if from_clause.joins else "APPLY"
        raise source.error(node, f"next to {clause}, a row cannot be an argument: name its columns")
    relation = named.relation
    if isinstance(relation, InputRelation) and relation.offers(Metadata.IOT_HUB):
        message = "a whole message of an IoT hub cannot be an argument: select what the function reads in a step"
        raise source.error(node, message)
    columns = relation.star(node)
    if isinstance(relation, InputRelation):
        if columns is None:
            return javascript_record(relation.starred(node), relation.record(node))
        return javascript_record(columns)
    if columns is None:
        raise source.error(node, f"the columns of `{named.name}` are not known: name them there instead of *")
    for name, value in columns:
        if not from_clause.types.is_known_of_each(value):
            message = f"the type of `{name}`, a column of the row, is not known: CAST it, or CREATE TABLE"
            raise source.error(node, message)
    return javascript_record(columns)
