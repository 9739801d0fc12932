"""Records and arrays as JSON text in Spark SQL."""

import json
from collections.abc import Sequence

from recapture.model import AsaType
from recapture.query.generate.casts import cast
from recapture.query.generate.values import Value, quoted_text


def json_record(columns: Sequence[tuple[str, Value]]) -> str:
    """Return a row as the text of a JSON object; a NULL is written as null."""
    members = [
        f"{quoted_text(json.dumps(name, ensure_ascii=False) + ':')}, {json_of(value)}" for name, value in columns
    ]
    between = ", ',', "
    return f"concat('{{', {between.join(members)}, '}}')" if members else "'{}'"


def json_of(value: Value) -> str:
    """Return a value as JSON text, which is never NULL."""
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
