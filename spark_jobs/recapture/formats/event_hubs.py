"""Event Hubs Capture: Avro files of `EventData` records, one per partition and interval."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from recapture.archive.blob_names import BlobNames
from recapture.archive.name_format import HUB_PARTITIONS, WIDTHS, Piece, Vocabulary, pieces, require_delimiters
from recapture.archive.pinning import PinnedBlob
from recapture.formats import event_hubs_metadata
from recapture.formats.avro import Record, decode, has_block
from recapture.formats.base import AvroInput, Number
from recapture.formats.bodies import BodyDecoder
from recapture.formats.body_formats import messages_of
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import ENQUEUED, Events, Reader
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.messages import Messages
from recapture.model import InputColumn, InputMetadata, Metadata, MetadataColumn
from recapture.time_model import ticks

DEFAULT_PATH = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
EXTENSION = ".avro"
VOCABULARY = Vocabulary(
    "a Capture",
    {token: token for token in ("Namespace", "EventHub", "PartitionId", *WIDTHS)},
    {"Namespace": "A-Za-z0-9-", "EventHub": "A-Za-z0-9._-"},
)
EVENT_DATA = Record(
    "Capture",
    "EventData",
    pa.schema([("SequenceNumber", pa.int64()), ("Body", pa.binary_view())]),
    typed=True,
    repeated=frozenset({"EnqueuedTimeUtc"}),
)


class CaptureInput(AvroInput):
    """The Capture container of an event hub."""

    metadata: ClassVar[InputMetadata] = InputMetadata(
        "EventHubsCapture", tuple(kind for kind in Metadata if kind is not Metadata.IOT_HUB)
    )
    interval_name: ClassVar[str] = "capture interval"
    location_keys: ClassVar[tuple[str, ...]] = (
        *(*AvroInput.location_keys, "path", "namespace", "event_hub", "capture_interval_seconds", "empty_blobs"),
    )

    format: Literal["EventHubsCapture"] = "EventHubsCapture"
    path: str = DEFAULT_PATH
    namespace: Annotated[str, Field(min_length=1)]
    event_hub: Annotated[str, Field(min_length=1)]
    capture_interval_seconds: Annotated[Number, Field(ge=60, le=900)] = 300
    empty_blobs: bool = True
    """Whether Capture writes a blob for an interval without events, which proves that there were none."""

    @cached_property
    def names(self) -> BlobNames:
        return CaptureNames(self.namespace, self.event_hub, self.path)

    @property
    def interval_seconds(self) -> int:
        return self.capture_interval_seconds

    @property
    def source(self) -> str:
        return f"{self.namespace}/{self.event_hub}"

    @property
    def tags(self) -> tuple[str, ...]:
        return self.namespace, self.event_hub

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return CaptureReader(self.limits, self.messages)


@dataclass(frozen=True)
class CaptureNames(BlobNames):
    """The names that Capture gives to the blobs of one event hub: their partition, and the start of their interval.

    Raise DefinitionError if the format lacks a token or does not distinguish this hub's blobs from another's.
    """

    exact: ClassVar[bool] = True
    on_schedule: ClassVar[bool] = True
    padded: ClassVar[bool] = False
    most_partitions: ClassVar[int] = HUB_PARTITIONS

    namespace: str
    event_hub: str
    format: str = DEFAULT_PATH
    """Text and tokens in any order. Names may end in `.avro`, whether the format does or not."""

    def __post_init__(self) -> None:
        require_delimiters(self._written, VOCABULARY, self._known, EXTENSION)

    @property
    def _known(self) -> dict[str, str]:
        return {"Namespace": self.namespace, "EventHub": self.event_hub}

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(pieces(self.format.removesuffix(EXTENSION), VOCABULARY))

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        known = self._known
        return tuple(Piece(None, known[piece.token]) if piece.token in known else piece for piece in self._written)

    @property
    def _suffix(self) -> str:
        return f"(?:{re.escape(EXTENSION)})?"

    def name(self, partition: str, time: datetime, suffix: str = EXTENSION) -> str:
        """Return the name of the blob of an interval that began at this time, UTC."""
        return super().name(partition, time, suffix)


@dataclass(frozen=True)
class CaptureReader:
    """A `Reader` of Capture's Avro files."""

    limits: Limits = DEFAULT
    messages: Messages = field(default_factory=messages_of)
    numbered = True

    @property
    def decoder(self) -> BodyDecoder:
        return JsonBodies(self.messages.only_strings)

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        fields = dict.fromkeys(["EnqueuedTimeUtc", *event_hubs_metadata.fields_of(columns)])
        events = decode(pinned.blob.name, content, EVENT_DATA, tuple(fields), self.limits)
        metadata = event_hubs_metadata.read(columns, pinned, events)
        if pinned.enqueued is None:
            enqueued = event_hubs_metadata.seconds(one_array(events["EnqueuedTimeUtc"]))
        else:
            instants = metadata[ENQUEUED].to_numpy()
            enqueued = instants - instants % ticks.TICKS_PER_SECOND
        without_block = not events.num_rows and not has_block(pinned.blob.name, content, EVENT_DATA)
        numbers = events["SequenceNumber"].to_numpy()
        return Events(numbers, enqueued, events["Body"], metadata, without_block=without_block)
