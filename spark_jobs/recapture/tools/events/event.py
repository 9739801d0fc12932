"""Judged events in the forms in which people and programs read them."""

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.time_model import ticks

TIMES = ("enqueued", "arrival", "time", "system_timestamp")
"""Columns of judged events that hold an instant."""
_PUBLISHED_TIME = pa.timestamp("us", tz="UTC")


def json_types(events: pa.Table) -> list[dict[str, Any]]:
    """Return judged events, with `reading.SCHEMA`, in JSON types.

    A body that is not UTF-8 is in Base64, as `body_base64`. Columns that are null are left out.
    """
    return list(map(_json_types, events.drop_columns("largest_time").to_pylist()))


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


def published(events: pa.Table) -> pa.Table:
    """Return judged events with timestamps in place of ticks, for a Parquet file."""
    events = events.drop_columns("largest_time")
    for name in TIMES:
        micros = pc.divide(pc.subtract(events[name], ticks.UNIX_EPOCH), ticks.TICKS_PER_MICROSECOND)
        index = events.schema.get_field_index(name)
        events = events.set_column(index, name, micros.cast(_PUBLISHED_TIME))
    return events


def lines(events: pa.Table) -> Iterator[str]:
    """Yield the lines that show judged events on a terminal."""
    for event in json_types(events):
        place = "sequence number {sequence_number}" if "sequence_number" in event else "place {place}"
        offset = ", offset {offset}" if "offset" in event else ""
        yield ("partition {partition}, " + place + offset + ", in {blob}").format(**event)
        enqueued = "enqueued {enqueued}, " if "enqueued" in event else ""
        time = ", time {time}" if "time" in event else ""
        yield ("  " + enqueued + "arrived {arrival}" + time).format(**event)
        system = ": System.Timestamp {system_timestamp}" if "system_timestamp" in event else ""
        why = " ({reason})" if "reason" in event else ""
        yield ("  {verdict}" + system + why).format(**event)
        yield f"  {event.get('body', event.get('body_base64', 'no body'))}"
