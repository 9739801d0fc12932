"""Records and arrays, which are their JSON text. Their elements are text too, cast where another type is asked for.

A property or element that is missing or null is NULL; so is any of a value that is not a record or an array.
"""

import re

from recapture.model import AsaType
from recapture.query.functions.arity import takes
from recapture.query.functions.call import Call
from recapture.query.generate.let import once
from recapture.query.generate.values import Value, quoted_text

_IN_A_PATH = re.compile(r"[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""


def array_element(call: Call) -> Value:
    """GetArrayElement(array, place): places count from 0; beyond the end, or negative, is NULL."""
    takes(call, 2)
    array, place = call.of(0, AsaType.ARRAY), call.of(1, AsaType.BIGINT)
    within = f"CAST(CASE WHEN {place.sql} BETWEEN 0L AND 2147483647L THEN {place.sql} ELSE -1L END AS INT)"
    element = f"get(from_json({array.sql}, 'ARRAY<STRING>'), {_literal_place(place) or within})"
    return Value(element, AsaType.TEXT, element=True)


def array_length(call: Call) -> Value:
    """GetArrayLength(array), a bigint."""
    takes(call, 1)
    return Value(f"CAST(json_array_length({call.of(0, AsaType.ARRAY).sql}) AS BIGINT)", AsaType.BIGINT)


def record_property(call: Call) -> Value:
    """GetRecordPropertyValue(record, name): names go by letter case."""
    takes(call, 2)
    record, name = call.of(0, AsaType.RECORD), call.of(1, AsaType.TEXT)
    if name.text is not None and _IN_A_PATH.fullmatch(name.text):
        path = quoted_text(f"$['{name.text}']")
        return Value(f"get_json_object({record.sql}, {path})", AsaType.TEXT, element=True)
    value = f"try_element_at(from_json({record.sql}, 'MAP<STRING, STRING>'), {name.sql})"
    return Value(value, AsaType.TEXT, element=True)


def parsed(call: Call) -> Value:
    """JSON_PARSE(text): the record that a text holds; NULL if it is not a JSON object."""
    takes(call, 1)
    text = call.of(0, AsaType.TEXT).sql
    record = once(text, "json", lambda it: f"(CASE WHEN json_object_keys({it}) IS NOT NULL THEN {it} END)")
    return Value(record, AsaType.RECORD)


def elements(json: str) -> str:
    """Return the SQL of array<struct<ArrayIndex bigint, ArrayValue string>>: GetArrayElements of a JSON text."""
    row = "named_struct('ArrayIndex', CAST(`@@index` AS BIGINT), 'ArrayValue', `@@value`)"
    return f"transform(from_json({json}, 'ARRAY<STRING>'), (`@@value`, `@@index`) -> {row})"


def properties(json: str) -> str:
    """Return the SQL of array<struct<PropertyName string, PropertyValue string>>: GetRecordProperties of JSON text."""
    row = "named_struct('PropertyName', `@@entry`.key, 'PropertyValue', `@@entry`.value)"
    return f"transform(map_entries(from_json({json}, 'MAP<STRING, STRING>')), `@@entry` -> {row})"


def _literal_place(place: Value) -> str | None:
    return str(min(int(place.text), 2**31 - 1)) if place.text is not None else None
