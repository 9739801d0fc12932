"""The blobs of a task as chunks of events in arrival order: downloaded ahead, decoded, and batched.

The columns of a chunk are those of `Events`, the metadata that is read of them under its names, and

    arrival   arrival of the event in ticks: its blob's, or its own by the clock of a broker
    unrolled  its number, counted on where a sequence partition's numbers roll over to 0
    blob      index of its blob in the chunk's `blobs`
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.manifest import CaptureBlob
from recapture.formats.events import UNNUMBERED, Reader
from recapture.model import MetadataColumn
from recapture.ordering.application_time import metadata_of
from recapture.ordering.decoding import DecodedBlob, Decoder
from recapture.ordering.sequence_partitions import UnrolledNumbers
from recapture.ordering.task import Task
from recapture.query.model import CompiledQuery
from recapture.storage import Container
from recapture.time_model.slices import Slice

CHUNK_EVENTS = 65_536
"""Events that are parsed and judged together if blobs are small, since each call has a fixed cost."""
CHUNK_BYTES = 64 * 1024 * 1024
"""Bytes in memory that such events may take together; a larger blob is not divided."""

Rows = slice | NDArray[np.intp]
"""Some events of a chunk, as NumPy takes them between brackets."""


@dataclass(frozen=True)
class Chunk:
    """Events of one partition in arrival order: by their blobs' arrival, then by sequence number or place in blob."""

    events: pa.RecordBatch
    """The columns that this module's docstring lists."""
    blobs: tuple[CaptureBlob, ...]
    """All blobs that were read, empty and damaged ones included."""
    damaged: tuple[DecodedBlob, ...]
    without_block: tuple[CaptureBlob, ...]
    """Blobs that are an Avro file of a header alone."""
    judged: bool
    """Whether events are judged; otherwise only their sequence numbers count."""
    numbered: bool
    """Whether the events of this input have sequence numbers."""

    def __len__(self) -> int:
        return self.events.num_rows

    @cached_property
    def arrival(self) -> NDArray[np.int64]:
        return self._numbers("arrival")

    @cached_property
    def number(self) -> NDArray[np.int64]:
        return self._numbers("number")

    @cached_property
    def unrolled(self) -> NDArray[np.int64]:
        return self._numbers("unrolled")

    @cached_property
    def enqueued(self) -> NDArray[np.int64]:
        return self._numbers("enqueued")

    @cached_property
    def blob(self) -> NDArray[np.int64]:
        return self._numbers("blob")

    @cached_property
    def sequence_partition(self) -> NDArray[np.int64] | None:
        """Sequence partition of each event, or UNNUMBERED; None if the blobs' own partition numbers all events."""
        return None if self._all_null("sequence_partition") else self._numbers("sequence_partition")

    @property
    def body(self) -> pa.Array:
        return self.events["body"]

    @property
    def unreadable(self) -> pa.Array | None:
        """Why an event has no body that could be parsed, NULL if it has one; None if all have."""
        return None if self._all_null("unreadable") else self.events["unreadable"]

    def metadata(self, column: MetadataColumn) -> pa.Array:
        """Return the values of metadata that was read of the events."""
        return self.events[column.name]

    @cached_property
    def blob_arrivals(self) -> NDArray[np.int64]:
        """Arrival of each of `blobs` in ticks."""
        return np.array([pinned.arrival for pinned in self.blobs], np.int64)

    @cached_property
    def blob_arrival(self) -> NDArray[np.int64]:
        """Arrival of each event's blob in ticks."""
        return self.blob_arrivals[self.blob]

    @cached_property
    def body_sizes(self) -> NDArray[np.int64]:
        """Size of each event's body in bytes."""
        sizes: NDArray[np.int64] = pc.binary_length(self.body).fill_null(0).cast(pa.int64()).to_numpy()
        return sizes

    def arrived_in(self, slice_: Slice) -> Rows:
        """Return the events that arrived in a slice."""
        if self._rising:
            return slice(*np.searchsorted(self.arrival, [slice_.start, slice_.end], side="right").tolist())
        return np.flatnonzero(slice_.holds(self.arrival))

    def has_number(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these events have a sequence number; the others have a place in their blob."""
        if not self.numbered or self.sequence_partition is None:
            return np.full(len(rows), self.numbered)
        return self.sequence_partition[rows] != UNNUMBERED

    def without(self, duplicates: NDArray[np.bool_]) -> "Chunk":
        """Return the chunk without its duplicates."""
        return self._take(np.flatnonzero(~duplicates)) if duplicates.any() else self

    def in_sequence(self) -> "Chunk":
        """Return the chunk with events of equal blob arrival sorted by sequence partition, then by number."""
        if not self.numbered:
            return self
        if self.sequence_partition is not None:
            return self._take(np.lexsort((self.unrolled, self.sequence_partition, self.blob_arrival)))
        if np.any((np.diff(self.unrolled) < 0) & (np.diff(self.blob_arrival) == 0)):
            return self._take(np.lexsort((self.unrolled, self.blob_arrival)))
        return self

    @cached_property
    def _rising(self) -> bool:
        """Whether arrivals rise: if events arrive with their blobs, and not by the clock of a broker."""
        return all(pinned.enqueued is None for pinned in self.blobs)

    def _take(self, rows: NDArray[np.intp]) -> "Chunk":
        return replace(self, events=self.events.take(pa.array(rows)))

    def _numbers(self, column: str) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = self.events[column].to_numpy()
        return numbers

    def _all_null(self, column: str) -> bool:
        return bool(self.events[column].null_count == len(self))


def chunks(
    task: Task, container: Container, query: CompiledQuery, reader: Reader, quarantine_damaged: bool
) -> Iterator[Chunk]:
    """Yield the events of a task. Raise what `Decoder.decode` does."""
    over = [column for column in query.over if isinstance(column, MetadataColumn)]
    metadata = tuple(dict.fromkeys([*query.metadata, *over, *metadata_of(query.timestamp_by)]))
    numbering, judging = Decoder(reader, (), quarantine_damaged), Decoder(reader, metadata, quarantine_damaged)
    unrolled = UnrolledNumbers()
    with ThreadPoolExecutor(1) as pool:
        downloads = prefetched(pool, container, task.blobs)
        for batch in batched(_decoded(numbering, task.blobs[: task.first_judged], downloads)):
            yield _chunk(batch, (), False, reader.numbered, unrolled)
        for batch in batched(_decoded(judging, task.blobs[task.first_judged :], downloads)):
            yield _chunk(batch, metadata, True, reader.numbered, unrolled)


def prefetched(pool: ThreadPoolExecutor, container: Container, blobs: Iterable[CaptureBlob]) -> Iterator[Future[bytes]]:
    """Yield the download of each blob; that of the next blob has begun by then."""
    current = None
    for pinned in blobs:
        following = pool.submit(container.read, pinned.blob)
        if current is not None:
            yield current
        current = following
    if current is not None:
        yield current


def batched(arrivals: Iterable[list[DecodedBlob]]) -> Iterator[list[DecodedBlob]]:
    """Yield whole arrivals together, until their events are CHUNK_EVENTS or take CHUNK_BYTES."""
    batch: list[DecodedBlob] = []
    for blobs in arrivals:
        batch += blobs
        events = sum(len(blob.arrival) for blob in batch)
        if events >= CHUNK_EVENTS or sum(blob.events.size for blob in batch) >= CHUNK_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _decoded(
    decoder: Decoder, blobs: Sequence[CaptureBlob], downloads: Iterator[Future[bytes]]
) -> Iterator[list[DecodedBlob]]:
    """Yield the blobs of one arrival after the other."""
    for _, arrived_together in itertools.groupby(blobs, key=lambda pinned: pinned.arrival):
        yield [decoder.decode(pinned, next(downloads)) for pinned in arrived_together]


def _chunk(
    blobs: list[DecodedBlob],
    metadata: Sequence[MetadataColumn],
    judged: bool,
    numbered: bool,
    unrolled: UnrolledNumbers,
) -> Chunk:
    events = pa.concat_batches([_columns(blob, index, metadata) for index, blob in enumerate(blobs)])
    return Chunk(
        events=events.append_column("unrolled", _unrolled(events, unrolled)),
        blobs=tuple(blob.pinned for blob in blobs),
        damaged=tuple(blob for blob in blobs if blob.damage is not None),
        without_block=tuple(blob.pinned for blob in blobs if blob.events.without_block),
        judged=judged,
        numbered=numbered,
    ).in_sequence()


def _unrolled(events: pa.RecordBatch, unrolled: UnrolledNumbers) -> pa.Array:
    number, sequence_partition = events["number"], events["sequence_partition"]
    if sequence_partition.null_count:
        return number
    return pa.array(unrolled.read(number.to_numpy(), sequence_partition.to_numpy()))


def _columns(blob: DecodedBlob, index: int, metadata: Sequence[MetadataColumn]) -> pa.RecordBatch:
    events, count = blob.events, len(blob.arrival)
    columns = {
        "arrival": pa.array(blob.arrival),
        "number": pa.array(events.number),
        "enqueued": pa.array(events.enqueued),
        "sequence_partition": pa.nulls(count, pa.int64()) if events.entity is None else pa.array(events.entity),
        "blob": pa.array(np.full(count, index)),
        "body": events.body,
        "unreadable": pa.nulls(count, pa.string()) if events.unreadable is None else events.unreadable,
        **{column.name: events.metadata[column] for column in metadata},
    }
    return pa.RecordBatch.from_pydict(columns)
