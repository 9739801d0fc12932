"""One Capture file, byte for byte as Event Hubs writes it."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any, Literal

import fastavro

from recapture.formats.avro import MAGIC, header

PropertyValue = int | float | str | bytes | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class SampleEvent:
    """An event in the hub."""

    sequence_number: int
    offset: str
    enqueued: datetime
    """Enqueued time in UTC; only `x-opt-enqueued-time` has its milliseconds."""
    body: bytes | None
    partition_key: str | None = None
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)
    """Properties that the sender added. The schema of 2016 cannot hold a None, so it is left out there."""


@cache
def capture_schema(*, properties_with_null: bool = True) -> str:
    """Return the writer schema, to the letter, of the file's header; without null in Properties it is that of 2016."""
    values = ["long", "double", "string", "bytes"]
    fields = {
        "SequenceNumber": "long",
        "Offset": "string",
        "EnqueuedTimeUtc": "string",
        "SystemProperties": {"type": "map", "values": values},
        "Properties": {"type": "map", "values": [*values, "null"] if properties_with_null else values},
        "Body": ["null", "bytes"],
    }
    schema = {
        "type": "record",
        "name": "EventData",
        "namespace": "Microsoft.ServiceBus.Messaging",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }
    return json.dumps(schema, separators=(",", ":"))


def capture_file(
    events: Iterable[SampleEvent], *, codec: Literal["null", "deflate"] = "null", properties_with_null: bool = True
) -> bytes:
    """Return the bytes of a Capture file: a header and one block, even if there are no events."""
    schema = capture_schema(properties_with_null=properties_with_null)
    records = [_record(event, properties_with_null) for event in events]
    count = len(records)
    block = b""
    if count:
        array = _written(_array_of(schema), records)
        block = array[len(_long(count)) : -1]  # without the number of items before them, and the 0 after them
    if codec == "deflate" and count:
        compressor = zlib.compressobj(wbits=-15)
        block = compressor.compress(block) + compressor.flush()
    start = header({"avro.codec": codec.encode(), "avro.schema": schema.encode()})
    sync = hashlib.md5(start.removeprefix(MAGIC), usedforsecurity=False).digest()
    return b"".join([start, sync, _long(count), _long(len(block)), block, sync])


@cache
def _array_of(schema: str) -> Any:
    return fastavro.parse_schema({"type": "array", "items": json.loads(schema)})


def _record(event: SampleEvent, properties_with_null: bool) -> dict[str, object]:
    system: dict[str, PropertyValue] = {}
    if event.partition_key is not None:
        system["x-opt-partition-key"] = event.partition_key
    system["x-opt-enqueued-time"] = (event.enqueued - _EPOCH) // _MILLISECOND
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.offset,
        "EnqueuedTimeUtc": enqueued_text(event.enqueued),
        "SystemProperties": system,
        "Properties": {
            name: value for name, value in event.properties.items() if properties_with_null or value is not None
        },
        "Body": event.body,
    }


def enqueued_text(instant: datetime) -> str:
    """Return a time in the service's form, `M/d/yyyy h:mm:ss AM|PM`."""
    hour, half = instant.hour % 12 or 12, "AM" if instant.hour < 12 else "PM"
    date = f"{instant.month}/{instant.day}/{instant.year}"
    return f"{date} {hour}:{instant.minute:02}:{instant.second:02} {half}"


def _long(value: int) -> bytes:
    return _written("long", value)


def _written(schema: Any, value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()
