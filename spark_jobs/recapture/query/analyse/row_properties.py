"""The properties of whole rows, which GetRecordPropertyValue reads by the name of a row in FROM."""

from sqlglot import exp

from recapture.model import AsaType, Metadata
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.json_text import json_record
from recapture.query.analyse.relations import From
from recapture.query.analyse.values import Value
from recapture.query.parse.names import identifiers
from recapture.query.plan.expressions import call
from recapture.query.plan.operations import Op


def is_row(from_clause: From, node: exp.Expr) -> bool:
    """Return whether a node is a name in FROM, and not that of a column."""
    names = identifiers(node) or []
    return len(names) == 1 and from_clause.named(names[0].name) is not None and not from_clause.lists(names[0].name)


def property_of_row(from_clause: From, node: exp.Expr, name: Value) -> Value | None:
    """Return the property of a row that its name in FROM stands for; None for any other node.

    a, 'x' => a.x    a, b.name => coalesce(property of the input columns, property of the body)

    Raise DefinitionError for a column that the row does not have, and for a computed name unless an input is read.
    """
    if not is_row(from_clause, node):
        return None
    source, named = from_clause.source, from_clause.named(node.name)
    assert named is not None
    if name.text is not None:
        identifier = exp.to_identifier(name.text, quoted=True)
        identifier.meta["start"] = source.offset(node)
        value = named.field([identifier])
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
