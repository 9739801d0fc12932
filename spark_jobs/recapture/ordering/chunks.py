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
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import UNNUMBERED, Reader
from recapture.model import MetadataColumn
from recapture.ordering.application_time import metadata_of
from recapture.ordering.decoding import DecodedBlob, Decoder
from recapture.ordering.sequence_partitions import ContinuousNumbers
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput
from recapture.storage import Blob, Container
from recapture.time_model.slices import Slice

CHUNK_EVENTS = 65_536
"""Least number of events in a chunk that has less than CHUNK_BYTES; the last one may be smaller.

Small blobs share a chunk, because each call has a fixed cost. A chunk has less than twice as many events.
"""
CHUNK_BYTES = 64 * 1024 * 1024
"""Size in memory, in bytes, from which a chunk is full."""
AHEAD_BYTES = 64 * 1024 * 1024
"""Size of two successive blobs, in bytes, up to which the second is downloaded while the first is processed.

Otherwise the download waits until then, so that two large blobs are not in memory together.
"""

RowIndex = slice | NDArray[np.intp]
"""Index of some events of a chunk, as NumPy accepts it: a slice, or an array of row numbers."""


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
    """Damaged blobs."""
    without_block: tuple[PinnedBlob, ...]
    """Blobs that are Avro files with a header and no block."""
    is_last: bool
    """Whether the chunk contains the last events of its blobs; otherwise the next one is of the same blobs."""
    is_judged: bool
    """Whether events are judged; otherwise only their sequence numbers count."""
    numbered: bool
    """Whether the events of this input have sequence numbers."""

    def __len__(self) -> int:
        return self.events.num_rows

    @cached_property
    def arrival(self) -> NDArray[np.int64]:
        return self._int64s("arrival")

    @cached_property
    def number(self) -> NDArray[np.int64]:
        return self._int64s("number")

    @cached_property
    def continuous_number(self) -> NDArray[np.int64]:
        return self._int64s("continuous_number")

    @cached_property
    def enqueued(self) -> NDArray[np.int64]:
        return self._int64s("enqueued")

    @cached_property
    def blob_index(self) -> NDArray[np.int64]:
        return self._int64s("blob_index")

    @cached_property
    def sequence_partition(self) -> NDArray[np.int64] | None:
        """Sequence partition of each event, or UNNUMBERED; None if all numbers come from the blobs' own partition."""
        return None if self._all_null("sequence_partition") else self._int64s("sequence_partition")

    @property
    def body(self) -> pa.Array:
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
        sizes: NDArray[np.int64] = pc.binary_length(self.body).fill_null(0).cast(pa.int64()).to_numpy()
        return sizes

    def arrived_in(self, slice_: Slice) -> RowIndex:
        """Return the events that arrived in a slice."""
        if self._arrivals_ascend:
            return slice(*np.searchsorted(self.arrival, [slice_.start, slice_.end], side="right").tolist())
        return np.flatnonzero(slice_.contains(self.arrival))

    def has_number(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these events have a sequence number; the number of any other is its index in its blob."""
        if not self.numbered or self.sequence_partition is None:
            return np.full(len(rows), self.numbered)
        return self.sequence_partition[rows] != UNNUMBERED

    def without(self, duplicates: NDArray[np.bool_]) -> "Chunk":
        """Return the chunk without its duplicates."""
        return self._take(np.flatnonzero(~duplicates)) if duplicates.any() else self

    @cached_property
    def _arrivals_ascend(self) -> bool:
        """Whether arrivals ascend, because events arrive with their blobs and not at their enqueued times."""
        return all(pinned.enqueued is None for pinned in self.blobs)

    def _take(self, rows: NDArray[np.intp]) -> "Chunk":
        return replace(self, events=self.events.take(pa.array(rows)))

    def _int64s(self, column: str) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = self.events[column].to_numpy()
        return numbers

    def _all_null(self, column: str) -> bool:
        return bool(self.events[column].null_count == len(self))


def chunks(
    task: Task, container: Container, compiled: CompiledInput, reader: Reader, quarantine_damaged: bool
) -> Iterator[Chunk]:
    """Yield the events of a task. The errors are those of `Decoder.decode`."""
    over = [column for column in compiled.over if isinstance(column, MetadataColumn)]
    metadata = tuple(dict.fromkeys([*compiled.metadata, *over, *metadata_of(compiled.timestamp_by)]))
    numbers_decoder = Decoder(reader, (), quarantine_damaged)
    events_decoder = Decoder(reader, metadata, quarantine_damaged)
    numbers = ContinuousNumbers()
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, task.blobs)
        for batch in batched(_decoded(numbers_decoder, task.blobs[: task.first_judged_index], downloads)):
            yield from _in_chunks(batch, (), numbers, is_judged=False, numbered=reader.numbered)
            del batch  # before the next blobs are decoded
        for batch in batched(_decoded(events_decoder, task.blobs[task.first_judged_index :], downloads)):
            yield from _in_chunks(batch, metadata, numbers, is_judged=True, numbered=reader.numbered)
            del batch


class Downloads:
    """Downloads blobs one after the other, and the next one ahead."""

    def __init__(self, pool: ThreadPoolExecutor, container: Container, blobs: Iterable[PinnedBlob]) -> None:
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
            self._ahead, self._size = self._pool.submit(self._download, blob), blob.size

    def _download(self, blob: Blob) -> bytes:
        return self._container.read(blob)


def batched(groups: Iterable[list[DecodedBlob]]) -> Iterator[list[DecodedBlob]]:
    """Yield the blobs in batches of at least CHUNK_EVENTS events or CHUNK_BYTES; the last batch may be smaller.

    Each group, the blobs of one arrival, stays together.
    """
    batch: list[DecodedBlob] = []
    for blobs in groups:
        batch += blobs
        del blobs  # they would stay in memory while the next ones are decoded
        events = sum(len(blob.arrival) for blob in batch)
        if events >= CHUNK_EVENTS or sum(blob.events.size for blob in batch) >= CHUNK_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _decoded(decoder: Decoder, blobs: Sequence[PinnedBlob], downloads: Downloads) -> Iterator[list[DecodedBlob]]:
    """Yield the decoded blobs in groups of equal arrival."""
    for _, arrived_together in itertools.groupby(blobs, key=lambda pinned: pinned.arrival):
        decoded = []
        for pinned in arrived_together:
            decoded.append(decoder.decode(pinned, downloads.take()))
        yield decoded


def _in_chunks(
    blobs: list[DecodedBlob],
    metadata: Sequence[MetadataColumn],
    numbers: ContinuousNumbers,
    *,
    is_judged: bool,
    numbered: bool,
) -> Iterator[Chunk]:
    """Yield the events of a batch of blobs in chunks that have about as many events as each other."""
    events = pa.concat_tables([_columns(blob, index, metadata) for index, blob in enumerate(blobs)])
    events = events.append_column("continuous_number", _continuous_number(events, numbers))
    arrival_by_blob = np.array([blob.pinned.arrival for blob in blobs], np.int64)
    if numbered:
        events = _sorted_by_number(events, arrival_by_blob[events["blob_index"].to_numpy()])
    count = min(max(len(events) // CHUNK_EVENTS, events.nbytes // CHUNK_BYTES, 1), max(len(events), 1))
    bounds = [len(events) * chunk // count for chunk in range(count + 1)]
    for begin, end in itertools.pairwise(bounds):
        part = events.slice(begin, end - begin)
        columns = {name: one_array(part[name]) for name in part.column_names}
        columns["body"] = columns["body"].cast(pa.binary())
        yield Chunk(
            events=pa.RecordBatch.from_pydict(columns),
            blobs=tuple(blob.pinned for blob in blobs),
            damaged=tuple(blob for blob in blobs if blob.damage is not None),
            without_block=tuple(blob.pinned for blob in blobs if blob.events.without_block),
            is_last=end == len(events),
            is_judged=is_judged,
            numbered=numbered,
        )


def _continuous_number(events: pa.Table, numbers: ContinuousNumbers) -> pa.ChunkedArray:
    number, sequence_partition = events["number"], events["sequence_partition"]
    if sequence_partition.null_count:
        return number
    return pa.chunked_array([numbers.continued(number.to_numpy(), sequence_partition.to_numpy())])


def _sorted_by_number(events: pa.Table, blob_arrival: NDArray[np.int64]) -> pa.Table:
    """Return events with those of equal blob arrival sorted by sequence partition, then by number."""
    number, sequence_partition = events["continuous_number"].to_numpy(), events["sequence_partition"]
    if sequence_partition.null_count < len(events):
        order = np.lexsort((number, sequence_partition.to_numpy(), blob_arrival))
    elif np.any((np.diff(number) < 0) & (np.diff(blob_arrival) == 0)):
        order = np.lexsort((number, blob_arrival))
    else:
        return events
    body = events["body"].cast(pa.binary())  # Arrow cannot take views
    return events.set_column(events.schema.get_field_index("body"), "body", body).take(pa.array(order))


def _columns(blob: DecodedBlob, index: int, metadata: Sequence[MetadataColumn]) -> pa.Table:
    events, count = blob.events, len(blob.arrival)
    partition = events.sequence_partition
    columns = {
        "arrival": pa.array(blob.arrival),
        "number": pa.array(events.number),
        "enqueued": pa.array(events.enqueued),
        "sequence_partition": pa.nulls(count, pa.int64()) if partition is None else pa.array(partition),
        "blob_index": pa.array(np.full(count, index)),
        "body": events.body.cast(pa.binary_view()),
        "unreadable": pa.nulls(count, pa.string()) if events.unreadable is None else events.unreadable,
        **{column.name: events.metadata[column] for column in metadata},
    }
    return pa.table(columns)
