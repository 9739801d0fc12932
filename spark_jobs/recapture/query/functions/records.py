"""Records and arrays, which are their JSON text. Their elements are text too, cast where another type is asked for.

A property or element that is missing or null is NULL; so is any of a value that is not a record or an array.
"""

import re

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.arity import takes
from recapture.query.functions.call import Call
from recapture.query.generate.let import once
from recapture.query.generate.trees import spark_call, string, template
from recapture.query.generate.values import Value

_IN_A_PATH = re.compile(r"[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""


def array_element(call: Call) -> Value:
    """GetArrayElement(array, place): places count from 0; beyond the end, or negative, is NULL."""
    takes(call, 2)
    array, place = call.of(0, AsaType.ARRAY), call.of(1, AsaType.BIGINT)
    element = template("get(from_json({array}, 'ARRAY<STRING>'), {place})", array=array.node, place=_place(place))
    return Value(element, AsaType.TEXT, element=True)


def array_length(call: Call) -> Value:
    """GetArrayLength(array), a bigint."""
    takes(call, 1)
    array = call.of(0, AsaType.ARRAY).node
    return Value(template("CAST(json_array_length({array}) AS BIGINT)", array=array), AsaType.BIGINT)


def record_property(call: Call) -> Value:
    """GetRecordPropertyValue(record, name): names go by letter case."""
    takes(call, 2)
    record, name = call.of(0, AsaType.RECORD), call.of(1, AsaType.TEXT)
    if name.text is not None and _IN_A_PATH.fullmatch(name.text):
        path = string(f"$['{name.text}']")
        return Value(spark_call("get_json_object", record.node, path), AsaType.TEXT, element=True)
    value = template(
        "try_element_at(from_json({record}, 'MAP<STRING, STRING>'), {name})", record=record.node, name=name.node
    )
    return Value(value, AsaType.TEXT, element=True)


def parsed(call: Call) -> Value:
    """JSON_PARSE(text): the record that a text holds; NULL if it is not a JSON object."""
    takes(call, 1)
    record = once(
        call.of(0, AsaType.TEXT).node,
        "json",
        lambda it: template("(CASE WHEN json_object_keys({it}) IS NOT NULL THEN {it} END)", it=it),
    )
    return Value(record, AsaType.RECORD)


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


def _place(place: Value) -> exp.Expr:
    """Return a place in an array as an INT: -1 if it is negative or beyond any end."""
    if place.text is not None:
        return exp.Literal.number(min(int(place.text), 2**31 - 1))
    return template(
        "CAST(CASE WHEN {place} BETWEEN 0L AND 2147483647L THEN {place} ELSE -1L END AS INT)", place=place.node
    )
