"""Records and arrays as JSON text in Spark SQL: a step into one, and a row made into one."""

import json
from collections.abc import Sequence

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.casts import cast
from recapture.query.field_types import FieldTypes
from recapture.query.source import Source
from recapture.query.values import Value, quoted_text

_NOT_IN_A_PATH = frozenset("'?*]")


def property_of(source: Source, types: FieldTypes, value: Value, names: Sequence[exp.Identifier]) -> Value:
    """The property of a record that a dotted path leads to; the value itself for an empty path."""
    if not names:
        return value
    if types.open(value.fields):
        types.want(value.fields, AsaType.RECORD, names[0])
    elif value.type is not AsaType.RECORD and not value.element:
        raise source.refuse(names[0], f"`{names[0].name}` is asked of a {value.type}, which has no properties")
    source.exact.update(name.meta["start"] for name in names if "start" in name.meta)
    for name in names:
        if not _NOT_IN_A_PATH.isdisjoint(name.name):
            raise source.refuse(
                name, f"`{name.name}` cannot stand in a path: write GetRecordPropertyValue(record, '{name.name}')"
            )
    steps = "".join(f"['{name.name}']" for name in names)
    return Value(f"get_json_object({value.sql}, {quoted_text('$' + steps)})", AsaType.TEXT, element=True)


def json_record(columns: Sequence[tuple[str, Value]]) -> str:
    """A row as the text of a JSON object; a NULL is written as null."""
    members = [
        f"{quoted_text(json.dumps(name, ensure_ascii=False) + ':')}, {json_of(value)}" for name, value in columns
    ]
    between = ", ',', "
    return f"concat('{{', {between.join(members)}, '}}')" if members else "'{}'"


def json_of(value: Value) -> str:
    """A value as JSON text, never NULL."""
    match value.type:
        case AsaType.RECORD | AsaType.ARRAY:
            text = value.sql
        case AsaType.BIGINT | AsaType.BIT:
            text = f"CAST({value.sql} AS STRING)"
        case AsaType.DATETIME:
            text = f"concat('\"', {cast(value, AsaType.TEXT, lenient=False)}, '\"')"
        case _:
            listed = f"to_json(array({value.sql}))"
            text = f"CASE WHEN {value.sql} IS NOT NULL THEN substring({listed}, 2, length({listed}) - 2) END"
    return f"coalesce({text}, 'null')"
