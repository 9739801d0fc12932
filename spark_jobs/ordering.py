"""One task of a run: the blobs of a partition, in arrival order, become ordered events of one or more slices.

Everything happens in one pass, carrying one watermark; nothing is shuffled (time model, section 3).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.capture import bodies
from spark_jobs.capture.decode import decode
from spark_jobs.capture.manifest import CaptureBlob, PlannedSlice
from spark_jobs.query.model import CompiledQuery
from spark_jobs.storage import Container
from spark_jobs.time_model import timestamps
from spark_jobs.time_model.policies import Judged, Policies, Verdict, Watermark, judge
from spark_jobs.time_model.slices import Slice

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


@dataclass
class Counters:
    """What a task counts in one slice of its partition: every arrival in (start, end], once."""

    events: int = 0
    event_bytes: int = 0
    blobs: int = 0
    late: int = 0
    out_of_order: int = 0
    verdicts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Verdict), np.int64))
    quarantine: list[pa.RecordBatch] = field(default_factory=list)


def split(slices: Sequence[PlannedSlice], blobs: Iterable[CaptureBlob], task_bytes: int) -> Iterator[Task]:
    """The tasks of a run: neighbouring slices of a partition share a task until it reads `task_bytes`.

    A slice whose arrivals have no end stands alone: its verdicts depend on where reading starts.
    """
    for partition, group in itertools.groupby(blobs, key=lambda pinned: pinned.partition):
        pinned = list(group)
        together: list[PlannedSlice] = []
        for planned in slices:
            joined = [*together, planned]
            if together and (planned.arrivals.last is None or _size(_needed(joined, pinned)) > task_bytes):
                yield Task(partition, tuple(together), tuple(_needed(together, pinned)))
                joined = [planned]
            together = joined
        yield Task(partition, tuple(together), tuple(_needed(together, pinned)))


def _needed(slices: Sequence[PlannedSlice], blobs: Iterable[CaptureBlob]) -> list[CaptureBlob]:
    return [pinned for pinned in blobs if any(planned.arrivals.hold(pinned.arrival) for planned in slices)]


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
    for arrival, chunk in _chunks(task.blobs, container):
        read = bodies.parse(chunk.body, query.columns, query.timestamp_by)
        judged, reasons = _judge(read, arrival, query, policies, watermark)
        counted = next((counter for each, counter in counters.items() if each.start < arrival <= each.end), None)
        if counted is not None:
            _count(counted, task.partition, chunk, judged, reasons)
        processed = judged.processed
        if not processed.any():
            continue
        times = judged.system_timestamp[processed]
        earliest, latest = times.min(), times.max()
        for wanted in counters:
            if latest <= wanted.start - query.window.look_back or earliest > wanted.end:
                continue
            here = np.flatnonzero(processed)[query.window.reaches(times, wanted.start, wanted.end)]
            if len(here):
                yield _batch(out, task.partition, wanted, judged.system_timestamp[here], read, here)


@dataclass(frozen=True)
class _Chunk:
    """Events of one partition that arrived at once, in order of their sequence numbers."""

    sequence: NDArray[np.int64]
    body: pa.Array
    blob: pa.Array
    blobs: int


def _chunks(blobs: Sequence[CaptureBlob], container: Container) -> Iterator[tuple[int, _Chunk]]:
    """The events by arrival; the next blob is fetched while the last one is worked on."""
    with ThreadPoolExecutor(1) as fetcher:
        coming = fetcher.submit(container.read, blobs[0].blob) if blobs else None
        parts: list[tuple[str, pa.Table]] = []
        for place, pinned in enumerate(blobs):
            assert coming is not None
            content = coming.result()
            following = blobs[place + 1] if place + 1 < len(blobs) else None
            if following is not None:
                coming = fetcher.submit(container.read, following.blob)
            parts.append((pinned.blob.name, decode(pinned.blob.name, content)))
            if following is None or following.arrival != pinned.arrival:
                yield pinned.arrival, _in_sequence(parts)
                parts = []


def _in_sequence(parts: list[tuple[str, pa.Table]]) -> _Chunk:
    table = pa.concat_tables([part for _, part in parts]).combine_chunks()
    names = pa.array([name for name, _ in parts], pa.string())
    blob = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(parts), dtype=np.int32), [part.num_rows for _, part in parts]), names
    )
    sequence = table["SequenceNumber"].to_numpy()
    body = bodies.whole(table["Body"])
    if np.any(sequence[1:] < sequence[:-1]):
        order = np.argsort(sequence, kind="stable")
        sequence, body, blob = sequence[order], body.take(pa.array(order)), blob.take(pa.array(order))
    return _Chunk(sequence, body, blob, len(parts))


def _judge(
    read: bodies.Bodies, arrival: int, query: CompiledQuery, policies: Policies | None, watermark: Watermark
) -> tuple[Judged, pa.Array]:
    """Verdicts for every event of a chunk, and why one is malformed or has no time."""
    count = len(read.malformed)
    decoded = pc.is_null(read.malformed).to_numpy(zero_copy_only=False)
    arrivals = np.full(count, arrival, np.int64)
    none = np.zeros(count, bool)
    if policies is None or read.timestamp is None or query.timestamp_by is None:
        verdict = np.where(decoded, Verdict.ON_TIME, Verdict.MALFORMED).astype(np.int8)
        return Judged(verdict, arrivals, none, none), read.malformed
    text = read.timestamp
    time, valid = timestamps.parse(text)
    scope = _scope(read, query)
    judged = judge(policies, watermark, time, valid & decoded, arrivals, scope)
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


def _count(counted: Counters, partition: str, chunk: _Chunk, judged: Judged, reasons: pa.Array) -> None:
    counted.events += len(chunk.sequence)
    counted.event_bytes += pc.sum(pc.binary_length(chunk.body)).as_py() or 0
    counted.blobs += chunk.blobs
    counted.late += int(judged.late.sum())
    counted.out_of_order += int(judged.out_of_order.sum())
    counted.verdicts += np.bincount(judged.verdict, minlength=len(Verdict))
    aside = pc.indices_nonzero(pc.is_valid(reasons))
    if len(aside):
        rows = aside.to_numpy()
        verdicts = [Verdict(verdict).name.lower() for verdict in judged.verdict[rows]]
        columns = [
            pa.repeat(partition, len(rows)),
            pa.array(chunk.sequence[rows]),
            chunk.blob.take(aside).cast(pa.string()),
            pa.array(verdicts),
            reasons.take(aside),
            chunk.body.take(aside),
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
