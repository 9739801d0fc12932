"""Small blobs of every input format, and bodies of every body format. A new format adds one entry here."""

import base64
import gzip
import io
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import fastavro

from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.tools.sample import SampleEvent, capture_file
from tests.formats.test_iot_hub_reader import SCHEMA

Numbered = list[tuple[int, bytes]]
"""Sequence numbers and bodies."""
Write = Callable[[Numbered, datetime], bytes]
"""Writes a blob of events that were all enqueued at one time."""
COLUMNS = ("deviceId", "temperature", "eventTime")
"""Fields of the rows of CSV."""


def capture(events: Numbered, enqueued: datetime) -> bytes:
    return capture_file(SampleEvent(number, str(number), enqueued, body) for number, body in events)


def deflated_capture(events: Numbered, enqueued: datetime) -> bytes:
    return capture_file([SampleEvent(number, str(number), enqueued, body) for number, body in events], codec="deflate")


def message(body: bytes, enqueued: datetime) -> dict[str, Any]:
    written = f"{enqueued:%Y-%m-%dT%H:%M:%S}.0000000Z"
    return {"EnqueuedTimeUtc": written, "Properties": {}, "SystemProperties": {}, "Body": body}


def iot_avro(events: Numbered, enqueued: datetime) -> bytes:
    """Return messages in blocks of two."""
    out = io.BytesIO()
    writer: Any = fastavro.write.Writer(out, fastavro.parse_schema(SCHEMA))
    for place, (_, body) in enumerate(events):
        writer.write(message(body, enqueued))
        if place % 2:
            writer.dump()
    writer.flush()
    return out.getvalue()


def iot_lines(events: Numbered, enqueued: datetime) -> bytes:
    messages = (message(body, enqueued) | {"Body": base64.b64encode(body).decode()} for _, body in events)
    return "\n".join(map(json.dumps, messages)).encode()


def service_bus(events: Numbered, enqueued: datetime) -> bytes:
    """Return messages in the reverse order of their lines."""
    lines = [
        json.dumps({"SequenceNumber": number, "EnqueuedTimeUtc": enqueued.isoformat(), "Body": body.decode()})
        for number, body in events
    ]
    return "\n".join(reversed(lines)).encode()


def json_lines(events: Numbered, enqueued: datetime) -> bytes:
    return b"\n".join(body for _, body in events)


def json_array(events: Numbered, enqueued: datetime) -> bytes:
    return b"[" + b",\n".join(body for _, body in events) + b"]"


def csv_rows(events: Numbered, enqueued: datetime) -> bytes:
    def row(body: bytes) -> str:
        fields = json.loads(body) if body.startswith(b"{") else None
        return body.decode() if fields is None else ";".join(str(fields.get(name, "")) for name in COLUMNS)

    return "\r\n".join([";".join(COLUMNS), *(row(body) for _, body in events)]).encode()


def zipped(write: Write) -> Write:
    return lambda events, enqueued: gzip.compress(write(events, enqueued), mtime=0)


def nowhere(content: bytes) -> Collection[int]:
    return ()


def around_line_ends(content: bytes) -> Collection[int]:
    return {place + step for place, byte in enumerate(content) if byte == ord("\n") for step in (0, 1)}


def around_lines_of_csv(content: bytes) -> Collection[int]:
    """Return also the places in the header: a row that is not there cannot be missed."""
    return {*range(content.index(b"\n")), *around_line_ends(content)}


def after_avro_blocks(content: bytes) -> Collection[int]:
    """Return the places after the header and after each block, which end in the marker with which the file ends."""
    return {marker.end() for marker in re.finditer(re.escape(content[-16:]), content)}


@dataclass(frozen=True)
class Sample:
    """Blobs of one kind, and what the documentation promises for damaged ones."""

    keys: dict[str, Any]
    """Keys of the pipeline file's `input`, in addition to those of every format."""
    name: str
    """Pattern of the blobs' names, for the time at which they begin."""
    write: Write
    complete_at: Callable[[bytes], Collection[int]] = nowhere
    """Sizes to which a blob may be truncated without notice, because the rest is a complete blob."""
    may_shorten_last_field: bool = False
    """Whether the last field of a truncated blob may lose its end without notice."""


CAPTURE = {"namespace": "contoso", "event_hub": "telemetry"}
IOT_HUB = {"format": "IotHub", "iot_hub": "contoso-hub"}
LOGS = {"path": "logs/{date}/{time}/{partition}", "time_format": "HH-mm"}
BUS, JSON, CSV = ({**LOGS, "format": name} for name in ("ServiceBus", "Json", "Csv"))
CSV |= {"delimiter": ";"}
SAMPLES = {
    "Capture": Sample(CAPTURE, "contoso/telemetry/0/{:%Y/%m/%d/%H/%M/%S}.avro", capture, after_avro_blocks),
    "IoT Hub, Avro": Sample(IOT_HUB, "contoso-hub/0/{:%Y/%m/%d/%H/%M}.avro", iot_avro, after_avro_blocks),
    "IoT Hub, JSON": Sample(IOT_HUB, "contoso-hub/0/{:%Y/%m/%d/%H/%M}.json", iot_lines, around_line_ends),
    "Service Bus": Sample(BUS, "logs/{:%Y/%m/%d/%H-%M}/0/messages.jsonl", service_bus, around_line_ends),
    "JSON": Sample(JSON, "logs/{:%Y/%m/%d/%H-%M}/0/a.json", json_lines, around_line_ends),
    "CSV": Sample(CSV, "logs/{:%Y/%m/%d/%H-%M}/0/a.csv.gz", zipped(csv_rows)),
}
"""A kind of blobs of each input format; two of a format that has two."""
VARIANTS = {
    "Capture, deflated": Sample(CAPTURE, "", deflated_capture, after_avro_blocks),
    "IoT Hub, JSON, zipped": Sample(IOT_HUB, "", zipped(iot_lines)),
    "Service Bus, zipped": Sample(BUS, "", zipped(service_bus)),
    "JSON, zipped": Sample(JSON, "", zipped(json_lines)),
    "JSON array": Sample(JSON, "", json_array),
    "JSON array, zipped": Sample(JSON, "", zipped(json_array)),
    "CSV, not zipped": Sample(CSV, "", csv_rows, around_lines_of_csv, may_shorten_last_field=True),
}
"""Other ways to write the blobs of these formats."""

BODIES: dict[type, Callable[[dict[str, Any]], bytes]] = {JsonBodies: lambda record: json.dumps(record).encode()}
"""Writes a record as a body that the decoder of a type reads."""
