"""The events of one blob, and how a kind of input is read: what Capture and its cousins have in common."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.manifest import CaptureBlob
from recapture.errors import RunError
from recapture.formats.inflate import Limits
from recapture.model import TYPES, Metadata, MetadataColumn
from recapture.time_model import ticks

ENQUEUED = MetadataColumn(Metadata.EVENT_ENQUEUED)
UNKNOWN = -1
"""In place of an enqueued time that the file does not tell."""
UNNUMBERED = -1
"""In place of what gave an event its number, where nothing did."""


@dataclass(frozen=True)
class Events:
    """The events of one blob, in its order; every array has one entry for each."""

    number: NDArray[np.int64]
    """The sequence number; where an event has none, its place in the blob from 0."""
    enqueued: NDArray[np.int64]
    """To the second, in ticks; UNKNOWN where the blob does not tell."""
    body: pa.Array
    """Binary."""
    metadata: dict[MetadataColumn, pa.Array]
    entity: NDArray[np.int64] | None = None
    """What gave each number: a partition of the entity, or UNNUMBERED; None where the blob's partition gave all."""
    unreadable: pa.Array | None = None
    """Why an event has no body that could be parsed (string), NULL where it has one; None where all have."""
    without_block: bool = False
    """Whether the blob is an Avro file of a header alone."""

    @classmethod
    def none(cls, wanted: Iterable[MetadataColumn]) -> "Events":
        """Those of a blob that holds none."""
        nothing = np.zeros(0, np.int64)
        metadata = {column: pa.nulls(0, TYPES[column.type].view) for column in wanted}
        return cls(nothing, nothing, pa.nulls(0, pa.binary()), metadata)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.body.nbytes + 2 * self.number.nbytes + sum(column.nbytes for column in self.metadata.values())


class Reader(Protocol):
    """How the blobs of a kind of input are read. It travels to the executors."""

    @property
    def limits(self) -> Limits:
        """How large the content of a compressed blob may be."""

    @property
    def numbered(self) -> bool:
        """Whether its events have sequence numbers, which are their order; else they keep their places."""

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        """What a blob holds, with the metadata that is wanted; a datetime in ticks.

        ENQUEUED is wanted wherever the blob has a window. Raises DamagedBlobError unless the blob is read whole.
        """


def metadata_of(
    wanted: Iterable[MetadataColumn],
    pinned: CaptureBlob,
    count: int,
    own: Callable[[Metadata, str], pa.Array | None],
) -> dict[MetadataColumn, pa.Array]:
    """The metadata of a blob's events: what `own` knows of each, by metadata and key, else what the blob tells of all.

    EventProcessedUtcTime is the event's arrival, for no archive tells when a live job read it. Raises RunError for a
    PartitionId that is no number.
    """
    found = {}
    for column in wanted:
        metadata = column.metadata
        if metadata is Metadata.EVENT_PROCESSED:
            metadata = Metadata.BLOB_LAST_MODIFIED if pinned.window is None else Metadata.EVENT_ENQUEUED
        values = own(metadata, column.key)
        found[column] = _of_blob(metadata, pinned, count) if values is None else values
    return found


def _of_blob(metadata: Metadata, pinned: CaptureBlob, count: int) -> pa.Array:
    match metadata:
        case Metadata.PARTITION_ID:
            return pa.repeat(_partition_id(pinned), count)
        case Metadata.BLOB_NAME:
            return pa.repeat(pinned.blob.name, count)
        case Metadata.BLOB_LAST_MODIFIED:
            return pa.repeat(pa.scalar(ticks.from_datetime(pinned.blob.last_modified), pa.int64()), count)
    raise AssertionError(f"no {metadata} is asked of an input that has none")


def _partition_id(pinned: CaptureBlob) -> pa.Scalar:
    try:
        return pa.scalar(int(pinned.partition), pa.int64())
    except ValueError:
        raise RunError(
            f"blob {pinned.blob.name} is of partition {pinned.partition!r}, which is no number: the query's "
            "PartitionId has no value for it; leave it out of the query"
        ) from None
