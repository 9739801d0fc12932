"""Columns of Arrow as JSON, for V8, and what V8 returns as columns of Arrow.

A bigint, float, text or bit is a plain column. A datetime is a struct of DATE, a record or an array one of JSON. Any
other struct is a record whose fields are such columns; if it has JSON too, that holds the rest of its fields.
"""

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from recapture.model import TYPES, AsaType
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, UNIX_EPOCH

DATE = "@date"
"""Field of the struct of a datetime: milliseconds since 1970."""
JSON = "@json"
"""Field of the struct of a record or an array: its JSON text."""


def batch(columns: Sequence[pa.Array], start: int, count: int) -> str:
    """Return some rows of the columns of arguments as the JSON that `run` of runtime.js takes."""
    parts = ",".join(_column(column.slice(start, count)) for column in columns)
    return f'{{"count":{count},"columns":[{parts}]}}'


def event_batch(
    columns: Sequence[pa.Array], start: int, count: int, lasts: Sequence[int], groups: pa.StructArray
) -> str:
    """Return some events, the positions of the last events of windows, and the groups, as `aggregate` takes them."""
    part = batch(columns, start, count).removesuffix("}")
    return f'{part},"lasts":{json.dumps(lasts)},"groups":{_column(groups)}}}'


def _column(column: pa.Array) -> str:
    if not pa.types.is_struct(column.type):
        return f'{{"values":{_listed(column)}}}'
    fields = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    if DATE in fields:
        return f'{{"dates":{_listed(fields[DATE])}}}'
    parts = [f'"texts":{_listed(fields.pop(JSON))}'] if JSON in fields else []
    if fields or not parts:
        inner = ",".join(f"{json.dumps(name)}:{_column(field)}" for name, field in fields.items())
        parts.append(f'"fields":{{{inner}}}')
    return f"{{{','.join(parts)}}}"


def _listed(column: pa.Array) -> str:
    text = json.dumps(column.to_pylist(), separators=(",", ":"))
    return text.replace("Infinity", "1e999") if pa.types.is_floating(column.type) else text


def results(returned: str, output: AsaType) -> tuple[pa.Array, dict[int, str]]:
    """Return the values that runtime.js returned for a batch, a datetime in ticks, and the errors by row."""
    # Arrow converts no integer beyond 2^53 to a float, and V8 writes floats up to 1e21 as integers.
    document = json.loads(returned, parse_int=float if output is AsaType.FLOAT else int)
    values = pa.array(document["values"], TYPES[output].view)
    if output is AsaType.DATETIME:
        values = pc.add(pc.multiply(values, TICKS_PER_MILLISECOND), UNIX_EPOCH)
    return values, {int(row): text for row, text in document["errors"].items()}
