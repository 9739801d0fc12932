"""IoT Hub: messages that an IoT hub routes to a storage endpoint, as Avro files or as JSON lines."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field

from recapture.archive.blob_names import BlobNames
from recapture.archive.name_format import HUB_PARTITIONS, Piece, Vocabulary, pieces, require_delimiters
from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.avro import MAGIC, Record, decode, has_block
from recapture.formats.base import BLOB_METADATA, AvroInput, Number
from recapture.formats.bodies import BodyDecoder
from recapture.formats.body_formats import messages_of
from recapture.formats.duckdb_sql import one_array, pointer, select, utf8
from recapture.formats.events import ENQUEUED, Events, Reader, enqueued_times, metadata_of
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.lines import lines, plain_text
from recapture.formats.messages import Messages
from recapture.formats.path_names import DATE_TOKENS, TIME_TOKENS
from recapture.formats.property_records import property_records
from recapture.model import InputColumn, InputMetadata, Metadata, MetadataColumn

DEFAULT_PATH = "{iothub}/{partition}/{YYYY}/{MM}/{DD}/{HH}/{mm}"
VOCABULARY = Vocabulary(
    "an IoT Hub",
    {"iothub": "IotHub", "partition": "PartitionId", **DATE_TOKENS, **TIME_TOKENS},
    {"IotHub": "A-Za-z0-9-"},
)
MESSAGE = Record(
    "IoT Hub", "Message", pa.schema([("EnqueuedTimeUtc", pa.string()), ("Body", pa.binary_view())]), typed=False
)


def _iot_hub(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9-]{1,48}[A-Za-z0-9])", name):
        raise ValueError("write the hub's own name: 3 to 50 letters, digits and hyphens, without .azure-devices.net")
    return name


class IotHubInput(AvroInput):
    """The container of a storage endpoint to which an IoT hub routes messages."""

    metadata: ClassVar[InputMetadata] = InputMetadata(
        "IotHub", (*BLOB_METADATA, Metadata.EVENT_ENQUEUED, Metadata.USER, Metadata.IOT_HUB)
    )
    interval_name: ClassVar[str] = "batch interval"
    location_keys: ClassVar[tuple[str, ...]] = (*AvroInput.location_keys, "batch_interval_seconds")
    empty_blobs: ClassVar[bool] = False

    format: Literal["IotHub"]
    path: str = DEFAULT_PATH
    iot_hub: Annotated[str, AfterValidator(_iot_hub)]
    batch_interval_seconds: Annotated[Number, Field(ge=60, le=720)] = 300
    """The endpoint's batchFrequencyInSeconds."""

    @cached_property
    def names(self) -> BlobNames:
        return IotHubNames(self.iot_hub, self.path)

    @property
    def interval_seconds(self) -> int:
        return self.batch_interval_seconds

    @property
    def source(self) -> str:
        return self.iot_hub

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.iot_hub,)

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return IotHubReader(self.limits, self.messages)


@dataclass(frozen=True)
class IotHubNames(BlobNames):
    """The names that an IoT hub's storage endpoint gives to its blobs: their partition and minute.

    A partition below ten may have a leading zero. After the format may follow an extension or a suffix that makes the
    blobs of a minute distinct, if it does not begin with a letter or digit.
    Raise DefinitionError if the format lacks a token or does not distinguish this hub's blobs from another's.
    """

    on_schedule: ClassVar[bool] = True
    most_partitions: ClassVar[int] = HUB_PARTITIONS

    iot_hub: str
    format: str = DEFAULT_PATH
    """Text and tokens in any order."""

    def __post_init__(self) -> None:
        require_delimiters(self._written, VOCABULARY, {"IotHub": self.iot_hub})

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(pieces(self.format, VOCABULARY))

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(Piece(None, self.iot_hub) if piece.token == "IotHub" else piece for piece in self._written)

    @property
    def _suffix(self) -> str:
        return f"(?:[^A-Za-z0-9{VOCABULARY.characters(self._written[-1]) or ''}].*)?"


_FIELDS = {Metadata.USER: "Properties", Metadata.IOT_HUB: "SystemProperties"}
"""Map of a message that holds the metadata."""


@dataclass(frozen=True)
class IotHubReader:
    """A `Reader` of the messages that IoT Hub routes; they have no sequence number and keep their order."""

    limits: Limits = DEFAULT
    messages: Messages = field(default_factory=messages_of)
    numbered = False

    @property
    def decoder(self) -> BodyDecoder:
        return JsonBodies(self.messages.only_strings)

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        name = pinned.blob.name
        if not content:
            raise DamagedBlobError(name, "it has no bytes")
        if content.startswith(MAGIC):
            return _of_avro(pinned, content, columns, self.limits)
        plain = plain_text(name, content, self.limits)
        if not plain.lstrip().startswith(b"{"):
            raise DamagedBlobError(name, "it is neither an Avro file nor JSON lines, which IoT Hub writes")
        return _of_lines(pinned, plain, columns)


def _of_avro(pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn], limits: Limits) -> Events:
    fields = {column: _FIELDS[column.metadata] for column in columns if column.metadata in _FIELDS}
    events = decode(pinned.blob.name, content, MESSAGE, tuple(sorted(set(fields.values()))), limits)
    own = {column: _of_map(one_array(events[map_]), column) for column, map_ in fields.items()}
    without_block = not events.num_rows and not has_block(pinned.blob.name, content, MESSAGE)
    read = _events(pinned, columns, one_array(events["EnqueuedTimeUtc"]), events["Body"], own)
    return replace(read, without_block=without_block)


def _of_map(properties: pa.MapArray, column: MetadataColumn) -> pa.Array:
    """Return a property of every message, or the record of all."""
    if column.key:
        return pc.map_lookup(properties, column.key, "first")
    return property_records(properties.offsets, properties.keys, properties.items)


def _of_lines(pinned: PinnedBlob, plain: bytes, columns: Sequence[MetadataColumn]) -> Events:
    line = lines(plain)
    keyed = [column for column in columns if column.metadata in _FIELDS]
    more = "".join(f", {_of_json(column)} AS m{index}" for index, column in enumerate(keyed))
    read = select({"line": utf8(line)}, _READING.format(structure=_STRUCTURE, more=more))
    own = {column: one_array(read[f"m{index}"]) for index, column in enumerate(keyed)}
    unreadable = one_array(read["unreadable"])
    body = pc.if_else(pc.is_null(unreadable), one_array(read["body"]), line)
    events = _events(pinned, columns, one_array(read["enqueued"]), pa.chunked_array([body]), own)
    return replace(events, unreadable=unreadable)


def _of_json(column: MetadataColumn) -> str:
    """Return the SQL that reads a property of a message, or the record of all, from its line."""
    path = (_FIELDS[column.metadata], column.key) if column.key else (_FIELDS[column.metadata],)
    extracted = f"json_extract_string(json, {pointer(path)})"
    return extracted if column.key else f"coalesce({extracted}, '{{}}')"


def _events(
    pinned: PinnedBlob,
    columns: Sequence[MetadataColumn],
    enqueued_strings: pa.Array,
    body: pa.ChunkedArray,
    own: dict[MetadataColumn, pa.Array],
) -> Events:
    times, enqueued = enqueued_times(pinned, enqueued_strings, "EnqueuedTimeUtc")
    metadata = metadata_of(columns, pinned, len(body), {ENQUEUED: times, **own})
    return Events(np.arange(len(body)), enqueued, body, metadata)


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
"""A Body is base64, unless the sender declared it as JSON; then the line contains it as it is."""
