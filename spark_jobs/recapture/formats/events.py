"""The events of one blob, and what the reader of each format provides."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError, RunError
from recapture.formats.bodies import BodyDecoder
from recapture.formats.inflate import Limits
from recapture.formats.messages import Messages
from recapture.model import TYPES, Metadata, MetadataColumn
from recapture.time_model import ticks, timestamps

ENQUEUED = MetadataColumn(Metadata.EVENT_ENQUEUED)
UNKNOWN = -1
"""Stands for an enqueued time that the blob does not contain."""
UNNUMBERED = -1
"""Stands for the sequence partition of an event without a sequence number."""


@dataclass(frozen=True)
class Events:
    """The events of one blob, in its order; every array has one entry per event."""

    number: NDArray[np.int64]
    """Sequence number; for an event without one, its index in the blob."""
    enqueued: NDArray[np.int64]
    """Enqueued time, truncated to the second, in ticks; or UNKNOWN."""
    body: pa.ChunkedArray
    """Bytes of the body (binary, or views of the blob)."""
    metadata: dict[MetadataColumn, pa.Array]
    """Values of the metadata columns that are read."""
    sequence_partition: NDArray[np.int64] | None = None
    """Partition that gave the event its number, or UNNUMBERED; None if the blob's partition gave all numbers."""
    unreadable: pa.Array | None = None
    """Reason why an event has no body to parse (string), or NULL; None if all have one."""
    without_block: bool = False
    """Whether the blob is an Avro file that has a header and no block."""

    @classmethod
    def none(cls, columns: Iterable[MetadataColumn]) -> "Events":
        """Return the events of a blob without events."""
        empty = np.zeros(0, np.int64)
        metadata = {column: pa.nulls(0, TYPES[column.type].view) for column in columns}
        return cls(empty, empty, pa.chunked_array([], pa.binary()), metadata)

    @property
    def size(self) -> int:
        """Size in memory, bytes."""
        return self.body.nbytes + 2 * self.number.nbytes + sum(column.nbytes for column in self.metadata.values())


class Reader(Protocol):
    """Reads the blobs of one input, however their bodies are written. It is pickled and sent to the executors."""

    @property
    def limits(self) -> Limits:
        """Largest sizes of what a compressed blob inflates to."""

    @property
    def numbered(self) -> bool:
        """Whether sequence numbers order the events; otherwise they keep their order in the blob."""

    @property
    def decoder(self) -> BodyDecoder:
        """Decoder of the bodies of events."""

    @property
    def messages(self) -> Messages | None:
        """What takes events out of the bodies that it reads; None if each is the body of one event."""

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        """Return the events of a blob, with these columns of metadata; a datetime is in ticks.

        `columns` contains ENQUEUED if the blob has an enqueued range. An event that cannot be read keeps its place, its
        bytes as its body, and a reason in `unreadable`. Raise DamagedBlobError unless the whole blob is read.
        """


def metadata_of(
    columns: Iterable[MetadataColumn], pinned: PinnedBlob, count: int, own: Mapping[MetadataColumn, pa.Array]
) -> dict[MetadataColumn, pa.Array]:
    """Return the metadata of a blob's events: that of their `own`, or what the blob gives to all events.

    EventProcessedUtcTime is the event's arrival, because no archive records when a live job read the event. Raise
    RunError if a PartitionId is not a number.
    """
    metadata = {}
    for column in columns:
        source = column
        if column.metadata is Metadata.EVENT_PROCESSED:
            source = MetadataColumn(Metadata.BLOB_LAST_MODIFIED) if pinned.enqueued is None else ENQUEUED
        metadata[column] = own[source] if source in own else _of_blob(source.metadata, pinned, count)
    return metadata


def enqueued_times(pinned: PinnedBlob, strings: pa.Array, field: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the enqueued times that a field contains as strings: in ticks, or NULL; and as in `Events.enqueued`.

    Raise DamagedBlobError for an event without a time if events arrive when they are enqueued: no slice could count
    it.
    """
    instants, valid = timestamps.parse(strings)
    if pinned.enqueued is not None and not valid.all():
        index = int(np.flatnonzero(~valid)[0])
        written = strings[index].as_py()
        reason = f"no {field}" if written is None else f"the {field} {written!r}, which is not a time"
        raise DamagedBlobError(pinned.blob.name, f"its event {index} has {reason}, so its enqueued time is unknown")
    seconds = np.where(valid, instants - instants % ticks.TICKS_PER_SECOND, UNKNOWN)
    return pa.array(instants, mask=~valid), seconds


def _of_blob(metadata: Metadata, pinned: PinnedBlob, count: int) -> pa.Array:
    match metadata:
        case Metadata.PARTITION_ID:
            return pa.repeat(_partition_id(pinned), count)
        case Metadata.BLOB_NAME:
            return pa.repeat(pinned.blob.name, count)
        case Metadata.BLOB_LAST_MODIFIED:
            return pa.repeat(pa.scalar(ticks.from_datetime(pinned.blob.last_modified), pa.int64()), count)
    raise AssertionError(f"compile_query refuses {metadata} for this format")


def _partition_id(pinned: PinnedBlob) -> pa.Scalar:
    try:
        return pa.scalar(int(pinned.partition), pa.int64())
    except ValueError:
        raise RunError(
            f"blob {pinned.blob.name} is of partition {pinned.partition!r}, which is not a number: the query's "
            "PartitionId has no value for it; leave it out of the query"
        ) from None
