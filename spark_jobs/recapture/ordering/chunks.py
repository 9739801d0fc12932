"""The blobs of a task as chunks of events in arrival order: downloaded ahead, decoded, and batched.

A chunk has the columns `number`, `enqueued`, `sequence_partition`, `body` and `unreadable` of `Events`, one column for
each metadata column that is read, under its name, and

    arrival            arrival of the event in ticks: that of its blob, or its enqueued time
    continuous_number  its number, which keeps rising where the numbers of a sequence partition roll over to 0
    blob_index         index of its blob in the chunk's `blobs`
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.formats import messages
from recapture.formats.bodies import Bodies, BodyDecoder, Projection
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import UNNUMBERED, Reader
from recapture.formats.messages import Messages
from recapture.formats.views import lengths, taken
from recapture.model import MetadataColumn
from recapture.ordering.application_time import metadata_of
from recapture.ordering.decoding import BlobDecoder, DecodedBlob
from recapture.ordering.keys import concatenated
from recapture.ordering.sequence_partitions import ContinuousNumbers
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput
from recapture.storage import Archive
from recapture.time_model.slices import Slice

CHUNK_EVENTS = 65_536
"""Minimum events per chunk, unless CHUNK_BYTES is reached first or the input ends.

Small blobs share a chunk, because each call has a fixed cost. A chunk has less than twice as many events.
"""
CHUNK_BYTES = 64 * 1024 * 1024
"""Size in memory, in bytes, from which a chunk is full."""
AHEAD_BYTES = 64 * 1024 * 1024
"""Size of two successive blobs, in bytes, up to which the second is downloaded while the first is processed.

Otherwise it is downloaded when the first has been processed, so that two large blobs are not in memory together.
"""

NOTHING = Projection()
RowIndex = slice | NDArray[np.intp]
"""Index of some events of a chunk, as NumPy accepts it: a slice, or an array of row numbers."""


def _int64s(column: str) -> "cached_property[NDArray[np.int64]]":
    """Declare a column of a chunk's events as an array."""
    return cached_property(lambda chunk: chunk.events[column].to_numpy())


@dataclass(frozen=True)
class Chunk:
    """Events of one partition in arrival order: by the arrival of their blobs, then by sequence number.

    It has the events of several small blobs, or a part of those of a large blob. If the numbers come from several
    sequence partitions (Service Bus), the sequence partition comes before the number.
    Events without sequence numbers keep the order that they have in their blob.
    """

    events: pa.RecordBatch
    """The columns that this module's docstring lists."""
    blobs: tuple[PinnedBlob, ...]
    """Blobs that were read, empty and damaged ones included."""
    damaged: tuple[DecodedBlob, ...]
    without_block: tuple[PinnedBlob, ...]
    """Blobs that are Avro files with a header and no block."""
    is_last: bool
    """Whether the chunk contains the last events of its blobs; otherwise the next one is of the same blobs."""
    is_judged: bool
    """Whether events are judged; otherwise only their sequence numbers count."""
    numbered: bool
    """Whether the events of this input have sequence numbers."""
    decoder: BodyDecoder
    """Decoder of the bodies of events."""
    messages: Messages | None = None
    """What takes events out of the bodies; None if each is the body of one event."""

    def __len__(self) -> int:
        return self.events.num_rows

    arrival = _int64s("arrival")
    number = _int64s("number")
    continuous_number = _int64s("continuous_number")
    enqueued = _int64s("enqueued")
    blob_index = _int64s("blob_index")

    @cached_property
    def sequence_partition(self) -> NDArray[np.int64] | None:
        """Sequence partition of each event, or UNNUMBERED; None if all numbers come from the blobs' own partition."""
        return None if self._all_null("sequence_partition") else self.events["sequence_partition"].to_numpy()

    @property
    def body(self) -> pa.Array:
        """Bytes of each event's body (views), or NULL."""
        return self.events["body"]

    @property
    def unreadable(self) -> pa.Array | None:
        """Reason why an event has no body to parse, or NULL; None if every event has a body."""
        return None if self._all_null("unreadable") else self.events["unreadable"]

    def metadata(self, column: MetadataColumn) -> pa.Array:
        """Return the values of a metadata column, which must be one that was read."""
        return self.events[column.name]

    @cached_property
    def arrival_by_blob(self) -> NDArray[np.int64]:
        """Arrival of each of `blobs` in ticks."""
        return np.array([pinned.arrival for pinned in self.blobs], np.int64)

    @cached_property
    def blob_arrival_by_event(self) -> NDArray[np.int64]:
        """Arrival of each event's blob in ticks."""
        return self.arrival_by_blob[self.blob_index]

    @cached_property
    def body_sizes(self) -> NDArray[np.int64]:
        """Size of each event's body in bytes."""
        return lengths(self.body)

    def in_events(self, projection: Projection = NOTHING) -> "tuple[Chunk, Bodies]":
        """Return the chunk with a row for each event of its messages, and what is read of the bodies.

        Events of one message have all else in common. Duplicates are messages: look for them first.
        """
        if self.messages is None:
            return self, self.decoded(projection)
        events, bodies = messages.read(self.messages, self.decoder, self.body, projection, self.unreadable)
        if events is None:
            return replace(self, messages=None), bodies
        rows = _taken(self.events, events.message)
        unreadable = pa.nulls(len(rows), pa.string()) if events.unreadable is None else events.unreadable
        for name, values in (("body", events.body.cast(pa.binary_view())), ("unreadable", unreadable)):
            rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        return replace(self, events=rows, messages=None), bodies

    def decoded(self, projection: Projection) -> Bodies:
        """Return what is read of the bodies of events."""
        return self.decoder.decode(self.body, projection, self.unreadable)

    def arrived_in(self, slice_: Slice) -> RowIndex:
        """Return the events that arrived in a slice."""
        if self._arrivals_ascend:
            return slice(*np.searchsorted(self.arrival, [slice_.start, slice_.end], side="right").tolist())
        return np.flatnonzero(slice_.contains(self.arrival))

    def numbers_and_places(self, rows: NDArray[np.intp]) -> tuple[pa.Array, pa.Array]:
        """Return the sequence number of each of these events, and the index in its blob of each that has none."""
        has_number = np.full(len(rows), self.numbered)
        if self.numbered and self.sequence_partition is not None:
            has_number = self.sequence_partition[rows] != UNNUMBERED
        return pa.array(self.number[rows], mask=~has_number), pa.array(self.number[rows], mask=has_number)

    def without(self, duplicates: NDArray[np.bool_]) -> "Chunk":
        """Return the chunk without its duplicates."""
        return self.taken(np.flatnonzero(~duplicates)) if duplicates.any() else self

    def taken(self, rows: NDArray[np.intp]) -> "Chunk":
        """Return the chunk with the events at these indices only."""
        return replace(self, events=_taken(self.events, rows))

    @cached_property
    def _arrivals_ascend(self) -> bool:
        """Whether arrivals ascend: those of blobs do, and usually the enqueued times of a partition, too."""
        return bool((self.arrival[1:] >= self.arrival[:-1]).all())

    def _all_null(self, column: str) -> bool:
        return bool(self.events[column].null_count == len(self))


def chunks(
    task: Task,
    container: Archive,
    compiled: CompiledInput,
    reader: Reader,
    quarantine_damaged: bool,
    more: Iterable[MetadataColumn] = (),
) -> Iterator[Chunk]:
    """Yield the events of a task, with `more` metadata than a query reads. Errors are those of `BlobDecoder.decode`."""
    over = [column for column in compiled.over if isinstance(column, MetadataColumn)]
    metadata = tuple(dict.fromkeys([*compiled.metadata, *over, *metadata_of(compiled.timestamp_by), *more]))
    numbers_decoder = BlobDecoder(reader, (), quarantine_damaged)
    events_decoder = BlobDecoder(reader, metadata, quarantine_damaged)
    numbers = ContinuousNumbers()
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, task.blobs)
        for batch in batched(_decoded(numbers_decoder, task.blobs[: task.first_judged_index], downloads)):
            yield from _in_chunks(batch, (), numbers, reader, is_judged=False)
            del batch  # before the next blobs are decoded
        for batch in batched(_decoded(events_decoder, task.blobs[task.first_judged_index :], downloads)):
            yield from _in_chunks(batch, metadata, numbers, reader, is_judged=True)
            del batch


class Downloads:
    """Downloads blobs one after the other, and the next one ahead."""

    def __init__(self, pool: ThreadPoolExecutor, container: Archive, blobs: Iterable[PinnedBlob]) -> None:
        self._pool, self._container = pool, container
        self._blobs = deque(pinned.blob for pinned in blobs)
        self._ahead: Future[bytes] | None = None
        self._size = 0

    def take(self) -> Future[bytes]:
        """Return the download of the next blob, and begin that of the one after it if both are small."""
        self.begin_next()
        current, size = self._ahead, self._size
        assert current is not None, "all blobs have been taken"
        self._ahead = None
        if self._blobs and size + self._blobs[0].size <= AHEAD_BYTES:
            self.begin_next()
        return current

    def begin_next(self) -> None:
        """Begin to download the next blob, unless it has begun or there is none."""
        if self._ahead is None and self._blobs:
            blob = self._blobs.popleft()
            self._ahead, self._size = self._pool.submit(self._container.read, blob), blob.size


def batched(groups: Iterable[list[DecodedBlob]]) -> Iterator[list[DecodedBlob]]:
    """Yield the blobs in batches of at least CHUNK_EVENTS events or CHUNK_BYTES; the last batch may be smaller.

    Each group, the blobs of one arrival, stays together.
    """
    batch: list[DecodedBlob] = []
    events = size = 0
    for blobs in groups:
        batch += blobs
        events += sum(len(blob.arrival) for blob in blobs)
        size += sum(blob.events.size for blob in blobs)
        del blobs  # they would stay in memory while the next ones are decoded
        if events >= CHUNK_EVENTS or size >= CHUNK_BYTES:
            yield batch
            batch, events, size = [], 0, 0
    if batch:
        yield batch


def _decoded(decoder: BlobDecoder, blobs: Sequence[PinnedBlob], downloads: Downloads) -> Iterator[list[DecodedBlob]]:
    """Yield the decoded blobs in groups of equal arrival."""
    for _, group in itertools.groupby(blobs, key=lambda pinned: pinned.arrival):
        decoded = []
        for pinned in group:
            decoded.append(decoder.decode(pinned, downloads.take()))
        yield decoded


def _in_chunks(
    blobs: list[DecodedBlob],
    metadata: Sequence[MetadataColumn],
    numbers: ContinuousNumbers,
    reader: Reader,
    *,
    is_judged: bool,
) -> Iterator[Chunk]:
    """Yield the events of a batch of blobs in chunks that have about as many events as each other.

    Unless events must be sorted, columns are made for one chunk at a time: those of a large blob would take a third of
    its memory.
    """
    number = concatenated([blob.events.number for blob in blobs])
    partitions = [blob.events.sequence_partition for blob in blobs if blob.events.sequence_partition is not None]
    partition = concatenated(partitions) if partitions else None
    continuous = number if partition is None else numbers.continued(number, partition)
    order = _order_by_number(blobs, partition, continuous) if reader.numbered else None
    ordered = None if order is None else _taken(_columns(blobs, continuous, metadata, 0, len(number)), order)
    size = sum(blob.events.size for blob in blobs)
    count = min(max(len(number) // CHUNK_EVENTS, size // CHUNK_BYTES, 1), max(len(number), 1))
    bounds = [len(number) * chunk // count for chunk in range(count + 1)]
    for begin, end in itertools.pairwise(bounds):
        yield Chunk(
            events=_columns(blobs, continuous, metadata, begin, end)
            if ordered is None
            else ordered.slice(begin, end - begin),
            blobs=tuple(blob.pinned for blob in blobs),
            damaged=tuple(blob for blob in blobs if blob.damage is not None),
            without_block=tuple(blob.pinned for blob in blobs if blob.events.without_block),
            is_last=end == len(number),
            is_judged=is_judged,
            numbered=reader.numbered,
            decoder=reader.decoder,
            messages=reader.messages,
        )


def _order_by_number(
    blobs: Sequence[DecodedBlob], partition: NDArray[np.int64] | None, continuous_number: NDArray[np.int64]
) -> NDArray[np.intp] | None:
    """Return the order of events by blob arrival, then sequence partition, then number; None if it is theirs."""
    blob_arrival = np.repeat([blob.pinned.arrival for blob in blobs], [len(blob.arrival) for blob in blobs])
    if partition is not None:
        return np.lexsort((continuous_number, partition, blob_arrival))
    falls = np.flatnonzero(continuous_number[1:] < continuous_number[:-1])
    if np.any(blob_arrival[falls] == blob_arrival[falls + 1]):
        return np.lexsort((continuous_number, blob_arrival))
    return None


def _columns(
    blobs: Sequence[DecodedBlob],
    continuous_number: NDArray[np.int64],
    metadata: Sequence[MetadataColumn],
    begin: int,
    end: int,
) -> pa.RecordBatch:
    """Return the events of a batch of blobs from one index to another."""
    starts = itertools.accumulate((len(blob.arrival) for blob in blobs), initial=0)
    parts = [
        _columns_of_blob(blob, index, metadata, slice(max(begin - start, 0), max(end - start, 0)))
        for index, (blob, start) in enumerate(zip(blobs, starts, strict=False))
    ]
    columns = pa.concat_tables(parts).append_column("continuous_number", pa.array(continuous_number[begin:end]))
    return pa.RecordBatch.from_pydict({name: one_array(columns[name]) for name in columns.column_names})


def _columns_of_blob(blob: DecodedBlob, index: int, metadata: Sequence[MetadataColumn], rows: slice) -> pa.Table:
    events, arrival, partition = blob.events, blob.arrival[rows], blob.events.sequence_partition
    count = len(arrival)
    columns = {
        "arrival": pa.array(arrival),
        "number": pa.array(events.number[rows]),
        "enqueued": pa.array(events.enqueued[rows]),
        "sequence_partition": pa.nulls(count, pa.int64()) if partition is None else pa.array(partition[rows]),
        "blob_index": pa.array(np.full(count, index)),
        "body": events.body[rows].cast(pa.binary_view()),
        "unreadable": pa.nulls(count, pa.string()) if events.unreadable is None else events.unreadable[rows],
        **{column.name: events.metadata[column][rows] for column in metadata},
    }
    return pa.table(columns)


def _taken(events: pa.RecordBatch, rows: NDArray[np.intp]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([taken(column, rows) for column in events.columns], schema=events.schema)
