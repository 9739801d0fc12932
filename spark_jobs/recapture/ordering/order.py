"""One task of a run: the blobs of a partition, in arrival order, become ordered events of one or more slices.

Everything happens in one pass, carrying one watermark; nothing is shuffled (time model, section 3).
"""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.manifest import CLOCKS_APART, CaptureBlob, PlannedSlice, arrived_in
from recapture.errors import DamagedBlobError, RecaptureError, RunError
from recapture.formats import bodies
from recapture.formats.event_hubs import CaptureReader
from recapture.formats.events import ENQUEUED, UNNUMBERED, Events, Reader
from recapture.model import TYPES, InputColumn, MetadataColumn, amounts, fields
from recapture.ordering.application_time import metadata_of, times_of
from recapture.ordering.entities import EntityNumbers, Unrolled
from recapture.ordering.sequence import Missing, Step
from recapture.query.model import CompiledQuery
from recapture.storage import Container
from recapture.time_model import ticks
from recapture.time_model.policies import Judged, Policies, Verdict, Watermark, judge
from recapture.time_model.slices import Arrivals, Slice

CHUNK_EVENTS = 65_536
"""Events that are parsed and judged at once, where blobs are small: each call costs its start."""
CHUNK_BYTES = 64 * 1024 * 1024
"""What such events may take in memory, where they are large; a blob that is larger stays whole."""
SYSTEM_COLUMNS = (
    pa.field("_partition", pa.string()),
    pa.field("_slice_start", pa.int64()),
    pa.field("_slice_end", pa.int64()),
    pa.field("_system_timestamp", pa.int64()),
)
QUARANTINE = pa.schema(
    [
        ("partition", pa.string()),
        ("sequence_number", pa.int64()),
        ("place", pa.int64()),
        ("blob", pa.string()),
        ("etag", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("body", pa.binary()),
    ]
)
"""Events that were not decoded or not timed, and blobs that are damaged.

These have no sequence number; an event that has none has its place in its blob instead, from 0.
"""
DAMAGED = "damaged"
"""The verdict on such a blob."""
KEPT_BYTES = 16 * 1024 * 1024
"""What is kept of a damaged blob, whole; of a larger one only name and etag."""
CAPTURE = CaptureReader()


@dataclass(frozen=True)
class Task:
    """Consecutive slices of one partition, and the blobs that decide them in arrival order."""

    partition: str
    slices: tuple[PlannedSlice, ...]
    blobs: tuple[CaptureBlob, ...]


@dataclass(frozen=True, order=True)
class Ahead:
    """The processed event whose time is furthest ahead of its arrival: who pushed the watermark (time model, 2)."""

    ticks: int
    """System.Timestamp less arrival."""
    number: int
    """The sequence number; where it has none, its place in the blob from 0."""
    blob: str
    numbered: bool


@dataclass
class Counters:
    """What a task counts in one slice of its partition: every arrival in (start, end], once."""

    events: int = 0
    event_bytes: int = 0
    blobs: int = 0
    damaged: int = 0
    whole: bool = True
    """Whether no blob is damaged of all that are read for the slice, in whichever slice it arrived."""
    without_block: list[str] = field(default_factory=list)
    """Blobs that are an Avro file of a header alone."""
    duplicates: int = 0
    """Copies of events that arrived before: these have no verdict."""
    missing: list[Missing] = field(default_factory=list)
    """Sequence numbers that were skipped by what arrived, and had not come by the end of what is read for the slice."""
    early: int = 0
    late: int = 0
    out_of_order: int = 0
    verdicts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Verdict), np.int64))
    furthest_ahead: Ahead | None = None
    quarantine: list[pa.RecordBatch] = field(default_factory=list)
    newest_arrival: int | None = None
    """Of an event; ticks, as is the next."""
    newest_time: int | None = None
    """The largest System.Timestamp of the events that arrived."""


def split(slices: Sequence[PlannedSlice], blobs: Iterable[CaptureBlob], task_bytes: int) -> Iterator[Task]:
    """The tasks of a run: neighbouring slices of a partition share a task that reads about `task_bytes`.

    A slice whose events depend on where reading begins stands alone, so that it gives the same in any company.
    """
    alone = not all(planned.arrivals.settled for planned in slices)
    for partition, group in itertools.groupby(blobs, key=lambda pinned: pinned.partition):
        pinned = list(group)
        tasks = len(slices) if alone else min(len(slices), math.ceil(_size(pinned) / task_bytes))
        for together in np.array_split(np.arange(len(slices)), tasks):
            neighbours = tuple(slices[place] for place in together)
            yield Task(partition, neighbours, tuple(_needed(neighbours, pinned)))


def _needed(slices: Sequence[PlannedSlice], blobs: Sequence[CaptureBlob]) -> Sequence[CaptureBlob]:
    """What neighbouring slices read: the ranges of their arrivals overlap, so it lies side by side."""
    return arrived_in(blobs, Arrivals(slices[0].arrivals.first, slices[-1].arrivals.last))


def _size(blobs: Iterable[CaptureBlob]) -> int:
    return sum(pinned.blob.size for pinned in blobs)


def schema(query: CompiledQuery) -> pa.Schema:
    """The columns of the view `events`."""
    columns: tuple[InputColumn | MetadataColumn, ...] = (*query.columns, *query.metadata)
    return pa.schema([*SYSTEM_COLUMNS, *((column.name, TYPES[column.type].view) for column in columns)])


def order(
    task: Task,
    container: Container,
    query: CompiledQuery,
    policies: Policies | None,
    set_aside: bool = False,
    reader: Reader = CAPTURE,
) -> tuple[Iterator[pa.RecordBatch], dict[Slice, Counters]]:
    """The ordered events of a task as batches of `schema(query)`, and its counters, complete once these are consumed.

    An event stands once under each slice in which one of its windows ends. A damaged blob is counted and set aside if
    the caller says so. Raises RunError for one otherwise, and for a blob that was changed since it was planned.
    """
    counters = {planned.slice: Counters() for planned in task.slices}
    return _ordered(task, container, query, policies, counters, set_aside, reader), counters


def _ordered(
    task: Task,
    container: Container,
    query: CompiledQuery,
    policies: Policies | None,
    counters: dict[Slice, Counters],
    set_aside: bool,
    reader: Reader,
) -> Iterator[pa.RecordBatch]:
    watermark = Watermark()
    numbers = EntityNumbers()
    out = schema(query)
    columns = query.body_columns
    judged_fields = tuple(dict.fromkeys([*fields(query.timestamp_by), *amounts(query.timestamp_by)]))
    for chunk in _chunks(task, container, query, set_aside, reader):
        if reader.numbered:
            copies, steps = numbers.read(chunk.turn, chunk.entity, chunk.group, chunk.arrival, chunk.enqueued)
        else:
            copies, steps = np.zeros(len(chunk.number), bool), []
        for planned in task.slices:
            _count_blobs(counters[planned.slice], planned, chunk)
            _count_numbers(counters[planned.slice], planned, chunk, copies, steps)
        if not chunk.judged:
            continue
        chunk = chunk.without(copies)
        read = bodies.parse(chunk.body, columns, judged_fields)
        if chunk.unreadable is not None:
            read = replace(read, malformed=pc.coalesce(chunk.unreadable, read.malformed))
        judged, reasons = _judge(read, chunk, query, policies, watermark)
        for wanted, counted in counters.items():
            _count(counted, task.partition, chunk, judged, reasons, chunk.arrived(wanted))
        processed = np.flatnonzero(judged.processed)
        times = judged.system_timestamp[processed]
        if not len(times):
            continue
        earliest, latest = times.min(), times.max()
        payload = [read.columns[column] for column in query.columns]
        payload += [chunk.metadata[column] for column in query.metadata]
        for wanted in counters:
            if latest <= wanted.start - query.look_back or earliest > wanted.end:
                continue
            here = processed[query.needs(times, wanted.start, wanted.end)]
            if len(here):
                yield _batch(out, task.partition, wanted, judged.system_timestamp[here], payload, here)


@dataclass(frozen=True)
class _Chunk:
    """Events of one partition in arrival order: by their blobs' arrival, then by sequence number or place."""

    arrival: NDArray[np.int64]
    """Of each event. It rises where it is the blob's; what is enqueued may carry a time before its neighbour's."""
    number: NDArray[np.int64]
    turn: NDArray[np.int64]
    """The number, counted on where it rolled over to 0."""
    entity: NDArray[np.int64] | None
    numbered: bool
    enqueued: NDArray[np.int64]
    """To the second."""
    body: pa.Array
    unreadable: pa.Array | None
    blob: NDArray[np.int64]
    """Which of `blobs`."""
    metadata: dict[MetadataColumn, pa.Array]
    """What the query reads of it."""
    blobs: tuple[CaptureBlob, ...]
    """All that were read, empty and damaged ones included."""
    damaged: tuple["_Damaged", ...]
    without_block: tuple[CaptureBlob, ...]
    judged: bool
    """False where only the sequence numbers count."""
    rising: bool

    @cached_property
    def blob_arrivals(self) -> NDArray[np.int64]:
        return np.array([pinned.arrival for pinned in self.blobs], np.int64)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Of each event, its blob's arrival."""
        return self.blob_arrivals[self.blob]

    @cached_property
    def body_sizes(self) -> NDArray[np.int64]:
        """In bytes."""
        sizes: NDArray[np.int64] = pc.binary_length(self.body).fill_null(0).cast(pa.int64()).to_numpy()
        return sizes

    def arrived(self, wanted: Slice) -> slice | NDArray[np.intp]:
        """Where the events are that arrived in a slice."""
        if self.rising:
            return slice(*np.searchsorted(self.arrival, [wanted.start, wanted.end], side="right").tolist())
        return np.flatnonzero((self.arrival > wanted.start) & (self.arrival <= wanted.end))

    def without(self, copies: NDArray[np.bool_]) -> "_Chunk":
        if not copies.any():
            return self
        return self._rows(np.flatnonzero(~copies))

    def _rows(self, rows: NDArray[np.intp]) -> "_Chunk":
        places = pa.array(rows)
        return replace(
            self,
            arrival=self.arrival[rows],
            number=self.number[rows],
            turn=self.turn[rows],
            entity=None if self.entity is None else self.entity[rows],
            enqueued=self.enqueued[rows],
            body=self.body.take(places),
            unreadable=None if self.unreadable is None else self.unreadable.take(places),
            blob=self.blob[rows],
            metadata={column: values.take(places) for column, values in self.metadata.items()},
        )

    def in_sequence(self) -> "_Chunk":
        """Within an arrival by sequence number, those of an entity's partition one behind the other."""
        if not self.numbered:
            return self
        if self.entity is not None:
            return self._rows(np.lexsort((self.turn, self.entity, self.group)))
        if np.any((np.diff(self.turn) < 0) & (np.diff(self.group) == 0)):
            return self._rows(np.lexsort((self.turn, self.group)))
        return self

    def has_number(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        if not self.numbered or self.entity is None:
            return np.full(len(rows), self.numbered)
        return self.entity[rows] != UNNUMBERED


@dataclass(frozen=True)
class _Damaged:
    """A blob that is set aside."""

    pinned: CaptureBlob
    reason: str
    content: bytes | None


def _chunks(
    task: Task, container: Container, query: CompiledQuery, set_aside: bool, reader: Reader
) -> Iterator[_Chunk]:
    """The events in chunks of whole arrivals; the next blob is fetched while the last one is worked on."""
    blobs, judged_from = task.blobs, Arrivals(task.slices[0].arrivals.judged, None)
    over = [column for column in query.over if isinstance(column, MetadataColumn)]
    wanted = tuple(dict.fromkeys([*query.metadata, *over, *metadata_of(query.timestamp_by)]))
    unrolled = Unrolled()
    with ThreadPoolExecutor(1) as fetcher:
        coming = fetcher.submit(container.read, blobs[0].blob) if blobs else None
        parts: list[_Part] = []
        for place, pinned in enumerate(blobs):
            assert coming is not None
            fetched = coming
            following = blobs[place + 1] if place + 1 < len(blobs) else None
            if following is not None:
                coming = fetcher.submit(container.read, following.blob)
            judged = bool(arrived_in([pinned], judged_from))
            parts.append(_part(pinned, fetched, wanted if judged else (), set_aside, reader))
            full = (
                sum(len(part.arrival) for part in parts) >= CHUNK_EVENTS
                or sum(part.events.size for part in parts) >= CHUNK_BYTES
            )
            turning = following is not None and judged != bool(arrived_in([following], judged_from))
            if following is None or turning or (full and following.arrival != pinned.arrival):
                yield _in_arrival_order(parts, wanted if judged else (), judged, reader.numbered, unrolled)
                parts = []


@dataclass(frozen=True)
class _Part:
    """The events of one blob, in its order."""

    pinned: CaptureBlob
    arrival: NDArray[np.int64]
    events: Events
    damaged: _Damaged | None = None
    """Where it is damaged, there are no events."""


def _part(
    pinned: CaptureBlob, fetched: Future[bytes], wanted: Sequence[MetadataColumn], set_aside: bool, reader: Reader
) -> _Part:
    """What a blob holds. Raises RunError where it is damaged and may not be set aside."""
    content = None
    try:
        content = fetched.result()
        with _damage(pinned.blob.name):
            return _decoded(pinned, content, wanted, reader)
    except DamagedBlobError as error:
        if not set_aside:
            raise
        kept = content if content is not None and len(content) <= KEPT_BYTES else None
        none = Events.none(wanted)
        return _Part(pinned, none.number, none, _Damaged(pinned, error.reason, kept))


@contextlib.contextmanager
def _damage(name: str) -> Iterator[None]:
    """Raise DamagedBlobError for whatever the content of a blob makes a reader raise, but not for a full disk."""
    try:
        yield
    except RecaptureError:
        raise
    except OSError as error:
        raise RunError(f"cannot unpack blob {name}: {error.strerror or type(error).__name__}") from error
    except Exception as error:
        said = (str(error).splitlines() or [""])[0]
        raise DamagedBlobError(name, f"it cannot be read ({type(error).__name__}{': ' * bool(said)}{said})") from error


def _decoded(pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn], reader: Reader) -> _Part:
    """Raises RunError where the blob is damaged, or its events were enqueued at another time than it says."""
    if pinned.window is None:
        events = reader.read(pinned, content, wanted)
        return _Part(pinned, np.full(len(events.number), pinned.arrival), events)
    events = reader.read(pinned, content, tuple(dict.fromkeys([*wanted, ENQUEUED])))
    arrival = events.metadata[ENQUEUED].to_numpy()
    _require_in_window(pinned, arrival)
    return _Part(pinned, arrival, events)


def _require_in_window(pinned: CaptureBlob, enqueued: NDArray[np.int64]) -> None:
    """Which blobs a slice needs is told by their names; so a blob that holds what its name denies is an error."""
    window = pinned.window
    if window is None or not len(enqueued):
        return
    first, last = int(enqueued.min()), int(enqueued.max())
    if first < window.first - CLOCKS_APART or last > window.last + CLOCKS_APART:
        raise RunError(
            f"blob {pinned.blob.name} holds events enqueued from {ticks.to_text(first)} to {ticks.to_text(last)}, but "
            f"its name and LastModified tell of {ticks.to_text(window.first)} to {ticks.to_text(window.last)}: so no "
            "slice can find its events by enqueued time; set input.arrival_time to BlobLastModified"
        )


def _in_arrival_order(
    parts: list[_Part], wanted: Sequence[MetadataColumn], judged: bool, numbered: bool, unrolled: Unrolled
) -> _Chunk:
    events = [part.events for part in parts]
    number = np.concatenate([each.number for each in events])
    entity = None
    if any(each.entity is not None for each in events):
        entity = np.concatenate([each.number if each.entity is None else each.entity for each in events])
    unreadable = None
    if any(each.unreadable is not None for each in events):
        none = [pa.nulls(len(each.number), pa.string()) for each in events]
        unreadable = pa.concat_arrays([each.unreadable or nulls for each, nulls in zip(events, none, strict=True)])
    return _Chunk(
        arrival=np.concatenate([part.arrival for part in parts]),
        number=number,
        turn=number if entity is None else unrolled.read(number, entity),
        entity=entity,
        numbered=numbered,
        enqueued=np.concatenate([each.enqueued for each in events]),
        body=pa.concat_arrays([each.body for each in events]),
        unreadable=unreadable,
        blob=np.repeat(np.arange(len(parts)), [len(each.number) for each in events]),
        metadata={column: pa.concat_arrays([each.metadata[column] for each in events]) for column in wanted},
        blobs=tuple(part.pinned for part in parts),
        damaged=tuple(part.damaged for part in parts if part.damaged is not None),
        without_block=tuple(part.pinned for part in parts if part.events.without_block),
        judged=judged,
        rising=all(part.pinned.window is None for part in parts),
    ).in_sequence()


def _judge(
    read: bodies.Bodies,
    chunk: _Chunk,
    query: CompiledQuery,
    policies: Policies | None,
    watermark: Watermark,
) -> tuple[Judged, pa.Array]:
    """Verdicts for every event of a chunk, and why one is malformed or has no time."""
    decoded = pc.is_null(read.malformed).to_numpy(zero_copy_only=False)
    if policies is None or query.timestamp_by is None:
        none = np.zeros(len(decoded), bool)
        verdict = np.where(decoded, Verdict.ON_TIME, Verdict.MALFORMED).astype(np.int8)
        return Judged(verdict, chunk.arrival, none, none, none), read.malformed
    times = times_of(query.timestamp_by, read, chunk.metadata)
    keys = _keys(read, chunk, query)
    scope = _scope(keys if chunk.entity is None else keys | {"": pa.array(chunk.entity)})
    judged = judge(policies, watermark, times.ticks, times.valid & decoded, chunk.arrival, scope)
    judged.verdict[~decoded] = Verdict.MALFORMED
    reasons = pc.coalesce(read.malformed, times.reason)
    for name, values in keys.items():
        reasons = pc.coalesce(reasons, pc.if_else(pc.is_null(values), f"the OVER key {name} is missing or null", None))
    return judged, reasons


def _keys(read: bodies.Bodies, chunk: _Chunk, query: CompiledQuery) -> dict[str, pa.Array]:
    return {
        column.name: read.columns[column] if isinstance(column, InputColumn) else chunk.metadata[column]
        for column in query.over
    }


def _scope(keys: dict[str, pa.Array]) -> pa.Array | None:
    """What tells the scopes of a blob's partition apart: entity's partition and OVER key, together as a struct."""
    if len(keys) < 2:
        return next(iter(keys.values()), None)
    return pa.StructArray.from_arrays(list(keys.values()), list(keys))


def _count_blobs(counted: Counters, planned: PlannedSlice, chunk: _Chunk) -> None:
    """Count the blobs that arrived in a slice, and set aside those that are damaged."""
    wanted = planned.slice
    counted.blobs += int(((chunk.blob_arrivals > wanted.start) & (chunk.blob_arrivals <= wanted.end)).sum())
    counted.without_block += [
        pinned.blob.name for pinned in chunk.without_block if wanted.start < pinned.arrival <= wanted.end
    ]
    for each in chunk.damaged:
        pinned = each.pinned
        counted.whole &= not arrived_in([pinned], planned.arrivals)
        if wanted.start < pinned.arrival <= wanted.end:
            counted.damaged += 1
            row = [pinned.partition, None, None, pinned.blob.name, pinned.blob.etag, DAMAGED, each.reason, each.content]
            columns = [pa.array([value], kind) for value, kind in zip(row, QUARANTINE.types, strict=True)]
            counted.quarantine.append(pa.RecordBatch.from_arrays(columns, schema=QUARANTINE))


def _count_numbers(
    counted: Counters, planned: PlannedSlice, chunk: _Chunk, copies: NDArray[np.bool_], steps: Sequence[Step]
) -> None:
    """Count the copies that arrived in a slice, and keep what its sequence numbers miss."""
    wanted, last = planned.slice, planned.arrivals.last
    if copies.any():
        arrived = np.arange(len(copies))[chunk.arrived(wanted)]
        rows = arrived[copies[arrived]]
        counted.duplicates += len(rows)
        counted.events += len(rows)
        counted.event_bytes += int(chunk.body_sizes[rows].sum())
    for step in steps:
        if step.goes_back and counted.missing:
            came = step.rows if last is None else step.rows[chunk.arrival[step.rows] <= last]
            left = [
                each.without(chunk.turn[came], chunk.enqueued[came]) if each.entity == step.entity else each
                for each in counted.missing
            ]
            counted.missing = [each for each in left if len(each.ranges.first)]
        if step.missing is not None:
            arrival = chunk.arrival[step.before]
            here = step.missing.of((arrival > wanted.start) & (arrival <= wanted.end))
            if len(here.ranges.first):
                counted.missing.append(here)


def _count(
    counted: Counters,
    partition: str,
    chunk: _Chunk,
    judged: Judged,
    reasons: pa.Array,
    arrived: slice | NDArray[np.intp],
) -> None:
    """Count the events of a chunk that arrived in a slice, and set aside those that were not decoded or timed."""
    rows = np.arange(len(chunk.arrival))[arrived]
    if not len(rows):
        return
    counted.events += len(rows)
    counted.event_bytes += int(chunk.body_sizes[arrived].sum())
    counted.early += int(judged.early[arrived].sum())
    counted.late += int(judged.late[arrived].sum())
    counted.out_of_order += int(judged.out_of_order[arrived].sum())
    counted.verdicts += np.bincount(judged.verdict[arrived], minlength=len(Verdict))
    processed = rows[judged.processed[arrived]]
    if len(processed):
        lead = judged.system_timestamp[processed] - chunk.arrival[processed]
        tied = processed[lead == lead.max()]
        number = int(chunk.number[tied].max())
        blob = max(chunk.blobs[place].blob.name for place in np.unique(chunk.blob[tied[chunk.number[tied] == number]]))
        ahead = Ahead(int(lead.max()), number, blob, chunk.numbered)
        counted.furthest_ahead = max(ahead, counted.furthest_ahead or ahead)
    aside = rows[pc.is_valid(reasons).to_numpy(zero_copy_only=False)[arrived]]
    if len(aside):
        places = pa.array(aside)
        blobs = pa.array(chunk.blob[aside])
        has_number = chunk.has_number(aside)
        columns = [
            pa.repeat(partition, len(aside)),
            pa.array(chunk.number[aside], mask=~has_number),
            pa.array(chunk.number[aside], mask=has_number),
            pa.array([pinned.blob.name for pinned in chunk.blobs]).take(blobs),
            pa.array([pinned.blob.etag for pinned in chunk.blobs]).take(blobs),
            pa.array([Verdict(verdict).name.lower() for verdict in judged.verdict[aside]]),
            reasons.take(places),
            chunk.body.take(places),
        ]
        counted.quarantine.append(pa.RecordBatch.from_arrays(columns, schema=QUARANTINE))
    newest = int(chunk.arrival[rows].max())
    counted.newest_arrival = max(newest, counted.newest_arrival or newest)
    if len(processed):
        newest = int(judged.system_timestamp[processed].max())
        counted.newest_time = max(newest, counted.newest_time or newest)


def _batch(
    out: pa.Schema,
    partition: str,
    wanted: Slice,
    times: NDArray[np.int64],
    payload: Sequence[pa.Array],
    here: NDArray[np.intp],
) -> pa.RecordBatch:
    rows = pa.array(here)
    system = [
        pa.repeat(partition, len(here)),
        pa.repeat(pa.scalar(wanted.start, pa.int64()), len(here)),
        pa.repeat(pa.scalar(wanted.end, pa.int64()), len(here)),
        pa.array(times),
    ]
    return pa.RecordBatch.from_arrays([*system, *(column.take(rows) for column in payload)], schema=out)
