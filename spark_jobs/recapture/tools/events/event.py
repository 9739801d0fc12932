"""Judged events in the forms in which people and programs read them."""

import base64
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.time_model import ticks

TIMES = ("enqueued", "arrival", "time", "system_timestamp", "largest_time")
"""Columns of judged events that hold an instant."""
_PUBLISHED_TIME = pa.timestamp("us", tz="UTC")


def json_types(events: pa.Table) -> list[dict[str, Any]]:
    """Return judged events, with `reading.SCHEMA`, in JSON types.

    A body that is not UTF-8 is in Base64, as `body_base64`. Columns that are null are left out.
    """
    return list(map(_json_types, events.to_pylist()))


def _json_types(event: dict[str, Any]) -> dict[str, Any]:
    body = event.pop("body")
    fields = {
        name: ticks.to_text(value) if name in TIMES else value for name, value in event.items() if value is not None
    }
    return fields | _body(body)


def _body(body: bytes | None) -> dict[str, str]:
    if body is None:
        return {}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def json_value(value: Any) -> Any:
    """Return a published value in JSON types; a timestamp is ISO 8601, and a number that JSON lacks a string."""
    if isinstance(value, datetime):
        return ticks.text_of(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def published(events: pa.Table) -> pa.Table:
    """Return judged events with timestamps in place of ticks, for a Parquet file."""
    for name in TIMES:
        micros = pc.divide(pc.subtract(events[name], ticks.UNIX_EPOCH), ticks.TICKS_PER_MICROSECOND)
        index = events.schema.get_field_index(name)
        events = events.set_column(index, name, micros.cast(_PUBLISHED_TIME))
    return events


def lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines that show events, in JSON types, on a terminal."""
    for event in events:
        yield place(event)
        enqueued = "enqueued {enqueued}, " if "enqueued" in event else ""
        time = ", time {time}" if "time" in event else ""
        yield ("  " + enqueued + "arrived {arrival}" + time).format(**event)
        system = ": System.Timestamp {system_timestamp}" if "system_timestamp" in event else ""
        why = " ({reason})" if "reason" in event else ""
        yield ("  {verdict}" + system + why).format(**event)
        yield f"  {event.get('body', event.get('body_base64', 'no body'))}"


def pushed_lines(event: Mapping[str, Any]) -> list[str]:
    """Return the line that names the event which pushed the watermark before an event, in JSON types, if one did."""
    if "pushed_by_blob" not in event:
        return []
    number = event.get("pushed_by_number")
    name = f"place {event['pushed_by_place']}" if number is None else f"sequence number {number}"
    return [f"  {name} in {event['pushed_by_blob']} pushed the watermark to {event['largest_time']}"]


def place(event: Mapping[str, Any]) -> str:
    """Return where an event, in JSON types, is: its partition, number, offset and blob."""
    number = "sequence number {sequence_number}" if "sequence_number" in event else "place {place}"
    offset = ", offset {offset}" if event.get("offset") is not None else ""
    return ("partition {partition}, " + number + offset + ", in {blob}").format(**event)
