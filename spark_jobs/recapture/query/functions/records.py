"""Records and arrays, which are their JSON text. Their elements are text too, cast where another type is asked for.

A property or element that is missing or null is NULL; so is any of a value that is not a record or an array.
"""

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.call import Call, takes
from recapture.query.generate.json_properties import json_property
from recapture.query.generate.let import once_in
from recapture.query.generate.trees import template
from recapture.query.generate.values import Value


def array_element(call: Call) -> Value:
    """GetArrayElement(array, index): the index counts from 0; NULL beyond the end, or if it is negative."""
    takes(call, 2)
    array, index = call.argument(0, AsaType.ARRAY), call.argument(1, AsaType.BIGINT)
    element = template("get(from_json({array}, 'ARRAY<STRING>'), {index})", array=array.node, index=_index(index))
    return Value(element, AsaType.STRING, is_json_element=True)


def array_length(call: Call) -> Value:
    """GetArrayLength(array), a bigint."""
    takes(call, 1)
    array = call.argument(0, AsaType.ARRAY).node
    return Value(template("CAST(json_array_length({array}) AS BIGINT)", array=array), AsaType.BIGINT)


def record_property(call: Call) -> Value:
    """GetRecordPropertyValue(record, name): a name in any case."""
    takes(call, 2)
    record, name = call.argument(0, AsaType.RECORD), call.argument(1, AsaType.STRING)
    return Value(json_property(record.node, name.node, "record"), AsaType.STRING, is_json_element=True)


def parsed(call: Call) -> Value:
    """JSON_PARSE(text): the record that a text holds; NULL if it is not a JSON object."""
    takes(call, 1)
    record = "(CASE WHEN json_object_keys({it}) IS NOT NULL THEN {it} END)"
    return Value(once_in(record, "json", call.argument(0, AsaType.STRING).node), AsaType.RECORD)


def elements(json: exp.Expr) -> exp.Expr:
    """Return array<struct<ArrayIndex bigint, ArrayValue string>>: GetArrayElements of a JSON text."""
    return template(
        "transform(from_json({json}, 'ARRAY<STRING>'), (`@@value`, `@@index`) ->"
        " named_struct('ArrayIndex', CAST(`@@index` AS BIGINT), 'ArrayValue', `@@value`))",
        json=json,
    )


def properties(json: exp.Expr) -> exp.Expr:
    """Return array<struct<PropertyName string, PropertyValue string>>: GetRecordProperties of JSON text."""
    return template(
        "transform(map_entries(from_json({json}, 'MAP<STRING, STRING>')), `@@entry` ->"
        " named_struct('PropertyName', `@@entry`.key, 'PropertyValue', `@@entry`.value))",
        json=json,
    )


def _index(index: Value) -> exp.Expr:
    """Return an index of an array as an INT: -1 if it is negative or beyond the end of any array."""
    if index.text is not None:
        return exp.Literal.number(min(int(index.text), 2**31 - 1))
    checked = "CAST(CASE WHEN {index} BETWEEN 0L AND 2147483647L THEN {index} ELSE -1L END AS INT)"
    return template(checked, index=index.node)
