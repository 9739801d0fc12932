"""Records and arrays as JSON text, and the properties of records."""

import json
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.values import Value
from recapture.query.parse.source import Source
from recapture.query.plan.expressions import Expr, call, case_when, cast_as, string
from recapture.query.plan.operations import Op


def json_record(columns: Sequence[tuple[str, Value]]) -> Expr:
    """Return a row as the text of a JSON object; a NULL is written as null.

    [("a", r), ("b", l)] => concat('{', '"a":', coalesce(r, 'null'), ',', '"b":', coalesce(l, 'null'), '}')
    """
    parts: list[Expr] = []
    for name, value in columns:
        parts += [string("," if parts else "{"), string(json.dumps(name, ensure_ascii=False) + ":"), json_of(value)]
    return call(Op.CONCAT, *parts, string("}"))


def json_of(value: Value) -> Expr:
    """Return a value as JSON text, which is never NULL: n => coalesce(cast(n), 'null')

    A text with a kind may stand for a value of any type, which its kind tells. Unless that is a text, it is JSON; the
    text of a float that is an integer lacks the fraction, and an infinite float is a string: 5 => 5.0
    """
    text: Expr
    match value.type:
        case AsaType.STRING if value.kind is not None:
            is_text, is_float = (
                call(Op.EQUAL, value.kind, string(type_.value)) for type_ in (AsaType.STRING, AsaType.FLOAT)
            )
            is_integral = call(Op.AND, is_float, call(Op.IS_BIGINT_TEXT, value.node))
            with_fraction = call(Op.CONCAT, value.node, string(".0"))
            infinite = (call(Op.EQUAL, value.node, string(sign + "Infinity")) for sign in ("", "-"))
            is_infinite = call(Op.AND, is_float, call(Op.OR, *infinite))
            quoted = call(Op.CONCAT, string('"'), value.node, string('"'))
            text = case_when(
                [(is_text, json_of(replace(value, kind=None))), (is_integral, with_fraction), (is_infinite, quoted)],
                value.node,
            )
        case AsaType.RECORD | AsaType.ARRAY:
            text = value.node
        case AsaType.BIGINT | AsaType.BIT:
            text = cast_as(value.node, AsaType.STRING)
        case AsaType.DATETIME:
            text = call(Op.CONCAT, string('"'), cast(value, AsaType.STRING, lenient=False), string('"'))
        case _:
            text = call(Op.JSON_OF_ANY, value.node)
    return call(Op.COALESCE, text, string("null"))


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
