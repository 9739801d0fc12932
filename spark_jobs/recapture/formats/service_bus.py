"""Service Bus: messages that a user's own writer archived as JSON, one message per line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from recapture.archive.definitions import ArrivalTime
from recapture.archive.pinning import PinnedBlob
from recapture.formats.base import BLOB_METADATA, PathInput, Section
from recapture.formats.duckdb_sql import one_array, pointer, select, utf8
from recapture.formats.events import ENQUEUED, UNNUMBERED, Events, Reader, enqueued_times, metadata_of
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.lines import lines, plain_text
from recapture.formats.sequence_partition import partition_of
from recapture.model import InputColumn, InputMetadata, Metadata, MetadataColumn

FieldPath = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$")]
"""Name of a field; dots step into records."""


class ServiceBusFields(Section):
    """The fields of a line that contain the parts of a message."""

    sequence_number: FieldPath = "SequenceNumber"
    enqueued_time: FieldPath = "EnqueuedTimeUtc"
    body: FieldPath = "Body"


_USUAL_FIELDS = ServiceBusFields()


class ServiceBusInput(PathInput):
    """JSON lines with the messages of a queue or a subscription, under a path of folders."""

    metadata: ClassVar[InputMetadata] = InputMetadata(
        "ServiceBus", (*BLOB_METADATA, Metadata.EVENT_ENQUEUED, Metadata.SEQUENCE_NUMBER)
    )

    format: Literal["ServiceBus"]
    fields: ServiceBusFields = _USUAL_FIELDS

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return ServiceBusReader(self.fields, self.limits)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.index:
            yield "index", "events of several sequence partitions share these blobs: leave this key out"
        if self.arrival_time is ArrivalTime.EVENT_ENQUEUED and not self.names.timed:
            reason = "without {date} in the path no name tells which blobs hold what was enqueued in an hour"
            yield "arrival_time", f"{reason}: write {{date}}, or take BlobLastModified"


@dataclass(frozen=True)
class ServiceBusReader:
    """A `Reader` of Service Bus messages, which their sequence numbers order."""

    fields: ServiceBusFields = _USUAL_FIELDS
    limits: Limits = DEFAULT
    numbered = True
    decoder = JsonBodies()
    messages = None

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        line = lines(plain_text(pinned.blob.name, content, self.limits))
        read = select({"line": utf8(line)}, self._reading())
        number = one_array(read["number"])
        unreadable = pc.coalesce(
            pc.if_else(pc.is_valid(one_array(read["kind"])), pa.scalar(None, pa.string()), "its line is not JSON"),
            pc.if_else(pc.is_valid(number), None, f"its line has no integer in {self.fields.sequence_number}"),
        )
        readable = pc.is_null(unreadable).to_numpy(zero_copy_only=False)
        numbers = np.where(readable, number.fill_null(0).to_numpy(), np.arange(len(line)))
        sequence_partition = np.where(readable, partition_of(numbers), UNNUMBERED)
        times, enqueued = enqueued_times(pinned, one_array(read["enqueued"]), self.fields.enqueued_time)
        own = {
            MetadataColumn(Metadata.PARTITION_ID): pa.array(sequence_partition, mask=~readable),
            MetadataColumn(Metadata.SEQUENCE_NUMBER): pa.array(numbers, mask=~readable),
            ENQUEUED: times,
        }
        body = pc.if_else(pc.is_null(unreadable), one_array(read["body"]), line)
        metadata = metadata_of(columns, pinned, len(line), own)
        return Events(numbers, enqueued, pa.chunked_array([body]), metadata, sequence_partition, unreadable)

    def _reading(self) -> str:
        number, enqueued, body = (
            f"json_extract(json, {pointer(field.split('.'))})"
            for field in (self.fields.sequence_number, self.fields.enqueued_time, self.fields.body)
        )
        digits = f"CASE WHEN regexp_full_match({number}->>'$', '[0-9]{{1,19}}') THEN {number}->>'$' END"
        return f"""
            SELECT json_type(json) AS kind, try_cast({digits} AS BIGINT) AS number, {enqueued}->>'$' AS enqueued,
                encode(CASE json_type({body})
                    WHEN 'VARCHAR' THEN {body}->>'$' WHEN 'NULL' THEN NULL ELSE {body}::VARCHAR
                END) AS body
            FROM (SELECT CASE WHEN json_valid(line) THEN line::JSON END AS json FROM bodies)
        """
