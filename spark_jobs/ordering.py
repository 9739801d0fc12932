"""One task of a run: the blobs of a partition, in arrival order, become ordered events of one or more slices.

Everything happens in one pass, carrying one watermark; nothing is shuffled (time model, section 3).
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.capture import bodies
from spark_jobs.capture.decode import decode
from spark_jobs.capture.manifest import CaptureBlob, PlannedSlice, arrived_in
from spark_jobs.query.model import CompiledQuery
from spark_jobs.storage import Container
from spark_jobs.time_model import timestamps
from spark_jobs.time_model.policies import Judged, Policies, Verdict, Watermark, judge
from spark_jobs.time_model.slices import Arrivals, Slice

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
        ("blob", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("body", pa.binary()),
    ]
)


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
    sequence_number: int
    blob: str


@dataclass
class Counters:
    """What a task counts in one slice of its partition: every arrival in (start, end], once."""

    events: int = 0
    event_bytes: int = 0
    blobs: int = 0
    late: int = 0
    out_of_order: int = 0
    verdicts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Verdict), np.int64))
    furthest_ahead: Ahead | None = None
    quarantine: list[pa.RecordBatch] = field(default_factory=list)


def split(slices: Sequence[PlannedSlice], blobs: Iterable[CaptureBlob], task_bytes: int) -> Iterator[Task]:
    """The tasks of a run: neighbouring slices of a partition share a task that reads about `task_bytes`.

    A slice whose arrivals have no end stands alone: its verdicts depend on where reading starts.
    """
    alone = any(planned.arrivals.last is None for planned in slices)
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
    return pa.schema([*SYSTEM_COLUMNS, *((column.name, bodies.ARROW_TYPES[column.type]) for column in query.columns)])


def order(
    task: Task, container: Container, query: CompiledQuery, policies: Policies | None
) -> tuple[Iterator[pa.RecordBatch], dict[Slice, Counters]]:
    """The ordered events of a task as batches of `schema(query)`, and its counters, complete once these are consumed.

    An event stands once under each slice in which one of its windows ends.
    Raises RunError for a blob that is damaged or was changed since it was planned.
    """
    counters = {planned.slice: Counters() for planned in task.slices}
    return _ordered(task, container, query, policies, counters), counters


def _ordered(
    task: Task,
    container: Container,
    query: CompiledQuery,
    policies: Policies | None,
    counters: dict[Slice, Counters],
) -> Iterator[pa.RecordBatch]:
    watermark = Watermark()
    out = schema(query)
    columns = tuple(dict.fromkeys([*query.columns, *query.over]))
    for chunk in _chunks(task.blobs, container):
        read = bodies.parse(chunk.body, columns, query.timestamp_by)
        judged, reasons = _judge(read, chunk.arrival, query, policies, watermark)
        for wanted, counted in counters.items():
            begin, end = np.searchsorted(chunk.arrival, [wanted.start, wanted.end], side="right").tolist()
            if begin < end:
                _count(counted, task.partition, chunk, judged, reasons, slice(begin, end))
            counted.blobs += sum(wanted.start < arrival <= wanted.end for arrival in chunk.blob_arrivals)
        processed = np.flatnonzero(judged.processed)
        times = judged.system_timestamp[processed]
        if not len(times):
            continue
        earliest, latest = times.min(), times.max()
        for wanted in counters:
            if latest <= wanted.start - query.window.look_back or earliest > wanted.end:
                continue
            here = processed[query.window.reaches(times, wanted.start, wanted.end)]
            if len(here):
                yield _batch(out, task.partition, wanted, judged.system_timestamp[here], read, here)


@dataclass(frozen=True)
class _Chunk:
    """Events of one partition in arrival order: by arrival, then by sequence number."""

    arrival: NDArray[np.int64]
    sequence: NDArray[np.int64]
    body: pa.Array
    blob: pa.Array
    blob_arrivals: tuple[int, ...]
    """One for each blob read, empty ones included."""


def _chunks(blobs: Sequence[CaptureBlob], container: Container) -> Iterator[_Chunk]:
    """The events in chunks of whole arrivals; the next blob is fetched while the last one is worked on."""
    with ThreadPoolExecutor(1) as fetcher:
        coming = fetcher.submit(container.read, blobs[0].blob) if blobs else None
        parts: list[tuple[CaptureBlob, pa.Table]] = []
        for place, pinned in enumerate(blobs):
            assert coming is not None
            content = coming.result()
            following = blobs[place + 1] if place + 1 < len(blobs) else None
            if following is not None:
                coming = fetcher.submit(container.read, following.blob)
            parts.append((pinned, decode(pinned.blob.name, content)))
            full = (
                sum(part.num_rows for _, part in parts) >= CHUNK_EVENTS
                or sum(part.nbytes for _, part in parts) >= CHUNK_BYTES
            )
            if following is None or (full and following.arrival != pinned.arrival):
                yield _in_arrival_order(parts)
                parts = []


def _in_arrival_order(parts: list[tuple[CaptureBlob, pa.Table]]) -> _Chunk:
    table = pa.concat_tables([part for _, part in parts])
    sizes = [part.num_rows for _, part in parts]
    arrivals = tuple(pinned.arrival for pinned, _ in parts)
    arrival = np.repeat(np.array(arrivals, np.int64), sizes)
    sequence = table["SequenceNumber"].to_numpy()
    body = bodies.whole(table["Body"])
    names = pa.array([pinned.blob.name for pinned, _ in parts], pa.string())
    blob = pa.DictionaryArray.from_arrays(np.repeat(np.arange(len(parts), dtype=np.int32), sizes), names)
    if np.any((sequence[1:] < sequence[:-1]) & (arrival[1:] == arrival[:-1])):
        order = np.lexsort((sequence, arrival))
        rows = pa.array(order)
        sequence, body, blob = sequence[order], body.take(rows), blob.take(rows)
    return _Chunk(arrival, sequence, body, blob, arrivals)


def _judge(
    read: bodies.Bodies,
    arrival: NDArray[np.int64],
    query: CompiledQuery,
    policies: Policies | None,
    watermark: Watermark,
) -> tuple[Judged, pa.Array]:
    """Verdicts for every event of a chunk, and why one is malformed or has no time."""
    count = len(read.malformed)
    decoded = pc.is_null(read.malformed).to_numpy(zero_copy_only=False)
    none = np.zeros(count, bool)
    if policies is None or read.timestamp is None or query.timestamp_by is None:
        verdict = np.where(decoded, Verdict.ON_TIME, Verdict.MALFORMED).astype(np.int8)
        return Judged(verdict, arrival, none, none), read.malformed
    text = read.timestamp
    time, valid = timestamps.parse(text)
    scope = _scope(read, query)
    judged = judge(policies, watermark, time, valid & decoded, arrival, scope)
    judged.verdict[~decoded] = Verdict.MALFORMED
    untimed = pa.array(judged.verdict == Verdict.INVALID_TIMESTAMP)
    why = pc.if_else(pc.is_null(text), f"{query.timestamp_by.name} is missing or null", pa.scalar(None, pa.string()))
    why = pc.coalesce(why, pc.if_else(pa.array(valid), "the OVER key is missing or null", "not a time"))
    return judged, pc.coalesce(read.malformed, pc.if_else(untimed, why, None))


def _scope(read: bodies.Bodies, query: CompiledQuery) -> pa.Array | None:
    if not query.over:
        return None
    keys = [read.columns[column.name] for column in query.over]
    return keys[0] if len(keys) == 1 else pa.StructArray.from_arrays(keys, [column.name for column in query.over])


def _count(
    counted: Counters, partition: str, chunk: _Chunk, judged: Judged, reasons: pa.Array, arrived: slice
) -> None:
    """Count the events of a chunk that arrived in a slice, and set aside those that were not decoded or timed."""
    begin, count = arrived.start, arrived.stop - arrived.start
    verdicts = judged.verdict[arrived]
    counted.events += count
    counted.event_bytes += pc.sum(pc.binary_length(chunk.body.slice(begin, count))).as_py() or 0
    counted.late += int(judged.late[arrived].sum())
    counted.out_of_order += int(judged.out_of_order[arrived].sum())
    counted.verdicts += np.bincount(verdicts, minlength=len(Verdict))
    processed = np.flatnonzero(judged.processed[arrived]) + begin
    if len(processed):
        lead = judged.system_timestamp[processed] - chunk.arrival[processed]
        place = int(lead.argmax())
        row = int(processed[place])
        ahead = Ahead(int(lead[place]), int(chunk.sequence[row]), chunk.blob[row].as_py())
        counted.furthest_ahead = max(ahead, counted.furthest_ahead or ahead)
    aside = np.flatnonzero(pc.is_valid(reasons.slice(begin, count)).to_numpy(zero_copy_only=False)) + begin
    if len(aside):
        rows = pa.array(aside)
        columns = [
            pa.repeat(partition, len(rows)),
            pa.array(chunk.sequence[aside]),
            chunk.blob.take(rows).cast(pa.string()),
            pa.array([Verdict(verdict).name.lower() for verdict in judged.verdict[aside]]),
            reasons.take(rows),
            chunk.body.take(rows),
        ]
        counted.quarantine.append(pa.RecordBatch.from_arrays(columns, schema=QUARANTINE))


def _batch(
    out: pa.Schema,
    partition: str,
    wanted: Slice,
    times: NDArray[np.int64],
    read: bodies.Bodies,
    here: NDArray[np.intp],
) -> pa.RecordBatch:
    rows = pa.array(here)
    system = [
        pa.repeat(partition, len(here)),
        pa.repeat(pa.scalar(wanted.start, pa.int64()), len(here)),
        pa.repeat(pa.scalar(wanted.end, pa.int64()), len(here)),
        pa.array(times),
    ]
    payload = [read.columns[name].take(rows) for name in out.names[len(system) :]]
    return pa.RecordBatch.from_arrays([*system, *payload], schema=out)
