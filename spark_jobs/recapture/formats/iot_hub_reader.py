"""Messages that IoT Hub routed to storage, as Avro or as JSON lines (capture format, cousins)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.manifest import CaptureBlob
from recapture.errors import DamagedBlobError
from recapture.formats.avro import MAGIC, MESSAGE, decode, has_block
from recapture.formats.bodies import pointer, select, utf8, whole
from recapture.formats.events import Events, metadata_of
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.lines import lines, text
from recapture.formats.times import enqueued_times
from recapture.model import Metadata, MetadataColumn

_FIELDS = {
    Metadata.USER: "Properties",
    Metadata.IOT_HUB: "SystemProperties",
}
"""The map of a message in which metadata stands."""


@dataclass(frozen=True)
class IotHubReader:
    """IoT Hub's routed messages, which have no sequence number: they keep their order. A `Reader`."""

    limits: Limits = DEFAULT
    numbered = False

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        name = pinned.blob.name
        if not content:
            raise DamagedBlobError(name, "it has no bytes")
        if content.startswith(MAGIC):
            return _of_avro(pinned, content, wanted, self.limits)
        plain = text(name, content, self.limits)
        if not plain.lstrip().startswith(b"{"):
            raise DamagedBlobError(name, "it is neither an Avro file nor JSON lines, which IoT Hub writes")
        return _of_lines(pinned, plain, wanted)


def _of_avro(pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn], limits: Limits) -> Events:
    maps = {_FIELDS[column.metadata] for column in wanted if column.metadata in _FIELDS}
    events = decode(pinned.blob.name, content, tuple(sorted(maps)), MESSAGE, limits)
    times, enqueued = enqueued_times(pinned, whole(events["EnqueuedTimeUtc"]), "EnqueuedTimeUtc")

    def own(metadata: Metadata, key: str) -> pa.Array | None:
        if metadata is Metadata.EVENT_ENQUEUED:
            return times
        if metadata in _FIELDS:
            return pc.map_lookup(whole(events[_FIELDS[metadata]]), key, "first")
        return None

    count = events.num_rows
    without_block = not count and not has_block(pinned.blob.name, content, MESSAGE)
    metadata = metadata_of(wanted, pinned, count, own)
    return Events(np.arange(count), enqueued, whole(events["Body"]), metadata, without_block=without_block)


def _of_lines(pinned: CaptureBlob, plain: bytes, wanted: Sequence[MetadataColumn]) -> Events:
    line = lines(plain)
    keyed = [column for column in wanted if column.metadata in _FIELDS]
    more = "".join(
        f", json_extract_string(json, {pointer((_FIELDS[column.metadata], column.key))}) AS m{place}"
        for place, column in enumerate(keyed)
    )
    read = select({"line": utf8(line)}, _READING.format(structure=_STRUCTURE, more=more))
    times, enqueued = enqueued_times(pinned, whole(read["enqueued"]), "EnqueuedTimeUtc")

    def own(metadata: Metadata, key: str) -> pa.Array | None:
        if metadata is Metadata.EVENT_ENQUEUED:
            return times
        if metadata in _FIELDS:
            return whole(read[f"m{keyed.index(MetadataColumn(metadata, key))}"])
        return None

    unreadable = whole(read["unreadable"])
    body = pc.if_else(pc.is_null(unreadable), whole(read["body"]), line)
    count = len(line)
    return Events(np.arange(count), enqueued, body, metadata_of(wanted, pinned, count, own), unreadable=unreadable)


_STRUCTURE = json.dumps(
    {
        "EnqueuedTimeUtc": "VARCHAR",
        "SystemProperties": {"contentType": "VARCHAR", "contentEncoding": "VARCHAR"},
        "Body": "JSON",
    }
)
_READING = """
    WITH lines AS (SELECT CASE WHEN json_valid(line) THEN line END AS json FROM bodies),
    read AS (SELECT json, json_transform(json, '{structure}') AS part FROM lines),
    parts AS (
        SELECT json, part.EnqueuedTimeUtc AS enqueued, part.Body AS body, json_type(part.Body) AS kind,
            regexp_matches(part.SystemProperties.contentType, '^application/json *(;|$)', 'i')
            AND regexp_full_match(part.SystemProperties.contentEncoding, 'utf-(8|16|32)', 'i') AS inline
        FROM read
    ),
    bytes AS (
        SELECT *, CASE
            WHEN kind = 'NULL' THEN NULL
            WHEN kind = 'VARCHAR' AND inline IS NOT TRUE THEN try(from_base64(body->>'$'))
            ELSE encode(body::VARCHAR)
        END AS bytes FROM parts
    )
    SELECT enqueued, bytes AS body, CASE
        WHEN json IS NULL THEN 'its line is not JSON'
        WHEN kind = 'VARCHAR' AND bytes IS NULL THEN 'its Body is not base64'
    END AS unreadable{more}
    FROM bytes
"""
"""A Body is base64 unless the sender said that it is JSON; then it stands in the line as it is."""
