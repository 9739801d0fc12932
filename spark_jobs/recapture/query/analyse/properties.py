"""The properties of records, by dotted paths."""

from collections.abc import Sequence

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.values import Value
from recapture.query.parse.source import Source
from recapture.query.plan.expressions import call, string
from recapture.query.plan.operations import Op


def property_of(source: Source, types: FieldTypes, value: Value, names: Sequence[exp.Identifier]) -> Value:
    """Return the property of a record that a dotted path leads to; the value itself for an empty path.

    r, [site, id] => the property `id` of the property `site` of r

    Raise DefinitionError if the value is not a record.
    """
    if not names:
        return value
    if types.are_open(value.fields):
        types.decide(value.fields, AsaType.RECORD)
    elif value.type is not AsaType.RECORD and not value.is_json_element:
        raise source.error(names[0], f"`{names[0].name}` is read from a {value.type}, which has no properties")
    source.case_sensitive.update(name.meta["start"] for name in names if "start" in name.meta)
    node = value.node
    for name in names:
        node = call(Op.JSON_PROPERTY, node, string(name.name))
    return Value(node, AsaType.STRING, is_json_element=True)
