"""Read the events of a range that fulfil conditions, with the verdicts that a run gives them.

All events that a verdict depends on are read and judged, as in a task of a run. Of those that are not selected, only
the watermarks remain. So the memory depends on the size of a chunk and on the events that are selected.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.definitions import InputDefinition
from recapture.archive.pinning import blobs_that_may_hold, is_complete, pin_input
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.formats.bodies import Bodies
from recapture.formats.events import ENQUEUED, Reader
from recapture.formats.sections import Input
from recapture.formats.views import copies
from recapture.model import Metadata, MetadataColumn
from recapture.ordering.chunk_judge import ChunkJudge, JudgedChunk, observe_numbers, parse_bodies
from recapture.ordering.chunks import Chunk, chunks
from recapture.ordering.pushers import Events, Pushers
from recapture.ordering.sequence_partitions import PartitionedNumbers
from recapture.ordering.task import Task, split
from recapture.query.model import CompiledInput
from recapture.run.slices import slice_length
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.policies import BEFORE_EVERYTHING, Policies
from recapture.time_model.slices import Arrivals, Slice, slices_between
from recapture.tools.events.conditions import Selection
from recapture.tools.events.index import NOTHING_SKIPPED, ArchiveIndex, BlobsRead, Note, Skipped, WhyRead
from recapture.tools.events.reasons import Judgement, reason

Collected = TypeVar("Collected")

DUPLICATE = "duplicate"
"""What is said of an event that arrived before, in place of a verdict."""
MAX_BYTES = 1024**3
"""Largest size of the bodies that are selected, in bytes."""
SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("partition", pa.string()),
        ("sequence_number", pa.int64()),
        ("place", pa.int64()),
        ("offset", pa.string()),
        ("blob", pa.string()),
        ("enqueued", pa.int64()),
        ("arrival", pa.int64()),
        ("time", pa.int64()),
        ("system_timestamp", pa.int64()),
        ("largest_time", pa.int64()),
        ("pushed_by_number", pa.int64()),
        ("pushed_by_place", pa.int64()),
        ("pushed_by_blob", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("body", pa.binary()),
    ]
)
"""Schema of judged events; times are ticks.

An event has a sequence number or, if it has none, a `place`: its index in the blob, from 0. `offset` and `enqueued` are
null if the format does not have them, `time` without TIMESTAMP BY and if it is not a time, and `system_timestamp` if
the event does not reach the query. `largest_time` is the largest System.Timestamp so far in the event's scope, itself
included, and null if the event does not reach the disorder rule.
"""
IDENTITY = ("partition", "blob", "sequence_number", "place", "system_timestamp")
"""Columns that tell an event from others of its input, and from itself in a slice that gave it another time."""
_ORDER = [(name, "ascending") for name in ("arrival", "partition", "sequence_number", "blob", "place")]


@dataclass(frozen=True)
class InputToSearch:
    """An input whose archive is searched, and for what."""

    compiled: CompiledInput
    section: Input
    definition: InputDefinition
    policies: Policies | None
    reader: Reader
    slice_length: int | None
    """Length of the slices on which the verdicts depend, in ticks; None if they depend on none.

    They do without an early window or a late limit: a slice is then judged from its first arrival on.
    """

    @classmethod
    def of(cls, pipeline: Pipeline, compiled: CompiledInput, more: Iterable[MetadataColumn] = ()) -> "InputToSearch":
        """Return an input of a pipeline, with more metadata than its query and the events' place need."""
        definitions = run_definition(pipeline).inputs
        policies = pipeline.policies(compiled)
        definition = next(definition for definition in definitions if definition.alias == compiled.alias)
        independent = policies is None or (policies.early_window is not None and policies.late_tolerance is not None)
        section = pipeline.section(compiled.alias)
        shown = (MetadataColumn(Metadata.OFFSET), ENQUEUED)
        known = tuple(column for column in shown if column.metadata in section.metadata.known)
        return cls(
            compiled=replace(compiled, metadata=tuple(dict.fromkeys([*compiled.metadata, *known, *more]))),
            section=section,
            definition=replace(definition, look_back=0) if independent else definition,
            policies=policies,
            reader=pipeline.reader(compiled),
            slice_length=None if independent else slice_length(pipeline),
        )

    def tasks(self, range_: Slice, now: datetime) -> tuple[list[Task], tuple[str, ...]]:
        """Return the tasks that judge what arrived in a range, and the partitions from which more may arrive.

        Errors are those of `pin_input`.
        """
        end = min(range_.end, ticks.from_datetime(now))
        if range_.start >= end:
            return [], ()
        slices = [Slice(range_.start, end)]
        if self.slice_length is not None:
            start = range_.start // self.slice_length * self.slice_length
            slices = list(slices_between(start, end, self.slice_length))
        container = open_container(self.section.container)
        planned = pin_input(self.definition, container, slices, now)
        newest = {blob.partition: blob for blob in planned.newest}
        written = replace(self.definition, policies=None)
        incomplete = (name for name in planned.partitions if not is_complete(written, range_, newest.get(name), now))
        tasks = []
        for task in split(planned.slices, planned.blobs, 1 << 62):
            tasks += until(task, range_.end)
        return tasks, tuple(incomplete)


def until(task: Task, end: int) -> list[Task]:
    """Return a task without what arrived after its slices or after `end`, in ticks; nothing if it reads no blob then.

    What arrived later does not matter to verdicts.
    """
    blobs = blobs_that_may_hold(task.blobs, Arrivals(0, min(end, task.slices[-1].slice.end)))
    return [replace(task, blobs=tuple(blobs))] if blobs else []


@dataclass
class EventsRead(BlobsRead):
    """The events of an input that were selected, and what was read."""

    events: pa.Table = field(default_factory=SCHEMA.empty_table)
    """Events with SCHEMA, in order of arrival, then by partition and sequence number."""
    unreadable: int = 0
    """Events that arrived in the range and hold the bytes of the values, in bodies that cannot be read."""
    damaged: set[str] = field(default_factory=set)
    """Names of the damaged blobs, whose events are unknown."""
    incomplete: tuple[str, ...] = ()
    """Partitions from which more may arrive in the range."""


def read_events(
    source: InputToSearch, selection: Selection, range_: Slice, now: datetime, index: ArchiveIndex | None = None
) -> EventsRead:
    """Return the selected events that arrived in a range. With an index, blobs without them are not read.

    Raise DamagedBlobError for a damaged blob, unless the input quarantines those. Raise RunError if a blob changed
    while it was read, or if the selected events are too large; other errors are those of `pin_input`.
    """
    tasks, incomplete = source.tasks(range_, now)
    return read_tasks(source, selection, range_, tasks, incomplete, index)


def read_tasks(
    source: InputToSearch,
    selection: Selection,
    range_: Slice,
    tasks: Iterable[Task],
    incomplete: tuple[str, ...] = (),
    index: ArchiveIndex | None = None,
) -> EventsRead:
    """Return the selected events of tasks that arrived in a range; errors are those of `read_events`."""
    read = EventsRead(index, incomplete=incomplete)
    batches: list[pa.RecordBatch] = []
    size = 0

    def selected(judged: Iterator[JudgedEvents]) -> tuple[list[pa.RecordBatch], int, int]:
        task_batches: list[pa.RecordBatch] = []
        unreadable, total = 0, size
        for events in judged:
            for batch, count in _selected(source, selection, own, events):
                task_batches.append(batch)
                unreadable += count
                total += batch["body"].nbytes
            if total > MAX_BYTES:
                raise RunError(
                    f"more than {MAX_BYTES // 1024**2} MiB of events were found: choose a shorter range with --from "
                    "and --to, or add a condition with --where"
                )
        return task_batches, unreadable, total

    for task in tasks:
        own = Slice(max(range_.start, task.slices[0].slice.start), min(range_.end, task.slices[-1].slice.end))
        (task_batches, unreadable, size), skipped = with_index(source, task, index, selected, read.damaged)
        batches += task_batches
        read.unreadable += unreadable
        read.add(task, skipped)
    events_read = pa.Table.from_batches(batches, SCHEMA)
    read.events = events_read.take(pc.sort_indices(events_read, _ORDER))
    return read


@dataclass(frozen=True)
class JudgedEvents:
    """The events of a chunk, with what became of them."""

    task: Task
    chunk: Chunk
    """Events without duplicates."""
    duplicates: Chunk
    parsed: Bodies
    judged: JudgedChunk
    pushed: Events
    """Events that pushed the watermark before each of the events that are out of order."""


class NumbersOverlapError(Exception):
    """Events have sequence numbers of a blob that was left out: one of them may be a duplicate."""


def with_index(
    source: InputToSearch,
    task: Task,
    index: ArchiveIndex | None,
    collect: Callable[[Iterator[JudgedEvents]], Collected],
    damaged: set[str],
) -> tuple[Collected, Skipped]:
    """Return what `collect` makes of the events of a task, and which blobs were not read, as the index says.

    All blobs are read if the sequence numbers of some overlap with those of others. The names of damaged blobs are
    added to `damaged`.
    """
    skipped = NOTHING_SKIPPED if index is None else index.skipped(task)
    if skipped.notes:
        try:
            return collect(judged_events(source, task, damaged, skipped)), skipped
        except NumbersOverlapError:
            skipped = Skipped({}, {pinned.blob.name: WhyRead.NUMBERS for pinned in task.blobs})
    return collect(judged_events(source, task, damaged)), skipped


def judged_events(
    source: InputToSearch, task: Task, damaged: set[str], skipped: Skipped = NOTHING_SKIPPED
) -> Iterator[JudgedEvents]:
    """Yield the events of a task, chunk by chunk, and add the names of damaged blobs to `damaged`.

    Blobs that are `skipped` are not read: events are judged as if they had been. Raise NumbersOverlapError if their
    notes do not suffice for that.
    """
    judge, numbers, pushers = ChunkJudge(source.compiled, source.policies), PartitionedNumbers(), Pushers()
    quarantine_damaged = source.section.on_damaged_blob == "quarantine"
    container = open_container(source.section.container)
    for part in _parts(task, skipped):
        if isinstance(part, Note):
            _push(judge, pushers, part)
            continue
        for chunk in chunks(part, container, source.compiled, source.reader, quarantine_damaged):
            damaged.update(blob.pinned.blob.name for blob in chunk.damaged)
            if chunk.numbered and skipped.have_one_of(chunk.number):
                raise NumbersOverlapError
            is_duplicate, _ = observe_numbers(chunk, numbers)
            if not chunk.is_judged or not len(chunk):
                continue
            duplicates, _ = chunk.taken(np.flatnonzero(is_duplicate)).in_events()
            chunk, parsed = parse_bodies(chunk.without(is_duplicate), source.compiled)
            judged = judge.judge(chunk, parsed)
            pushed = pushers.observe(chunk, judged.judged, np.flatnonzero(judged.judged.out_of_order))
            yield JudgedEvents(task, chunk, duplicates, parsed, judged, pushed)
            del chunk, duplicates, parsed  # they keep their blob in memory


def _parts(task: Task, skipped: Skipped) -> Iterator[Task | Note]:
    """Yield the blobs of a task in order: tasks of those that are read, and notes on others that would be judged."""
    begin = 0
    for is_skipped, group in itertools.groupby(task.blobs, lambda pinned: pinned.blob.name in skipped.notes):
        blobs = tuple(group)
        if is_skipped:
            judged = blobs[max(0, task.first_judged_index - begin) :]
            yield from (skipped.notes[pinned.blob.name] for pinned in judged)
        else:
            yield replace(task, blobs=blobs)
        begin += len(blobs)


def _push(judge: ChunkJudge, pushers: Pushers, note: Note) -> None:
    """Push the watermark as the events of a blob did that is not read, unless each key has a watermark of its own."""
    if judge.policies is not None and not judge.compiled.over and note.largest_time is not None:
        judge.largest_times.observe(note.largest_time)
        pushers.observe_one(note.largest_time, *note.pushed_by, note.blob)


def _selected(
    source: InputToSearch, selection: Selection, range_: Slice, events: JudgedEvents
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the selected events of a chunk that arrived in a range, and its selected duplicates.

    Each comes with the number of events that may also have the values, in bodies that cannot be read.
    """
    for chunk, judged in ((events.duplicates, None), (events.chunk, events)):
        arrived = range_.contains(chunk.arrival)
        if arrived.any():
            selected, unreadable = selection.rows(chunk, events.task.partition)
            rows = selected[arrived[selected]]
            yield batch(source, events.task, chunk, rows, judged), int(np.count_nonzero(arrived[unreadable]))


def batch(
    source: InputToSearch, task: Task, chunk: Chunk, rows: NDArray[np.intp], judged: JudgedEvents | None
) -> pa.RecordBatch:
    """Return some events of a chunk, with SCHEMA; `judged` is None for duplicates."""
    count = len(rows)
    taken = pa.array(rows)
    columns = {
        "input": pa.repeat(task.input, count),
        "partition": pa.repeat(task.partition, count),
        "blob": pa.array([pinned.blob.name for pinned in chunk.blobs]).take(pa.array(chunk.blob_index[rows])),
        "arrival": pa.array(chunk.arrival[rows]),
        "verdict": pa.repeat(DUPLICATE, count),
        "body": copies(chunk.body, rows),
    }
    columns["sequence_number"], columns["place"] = chunk.numbers_and_places(rows)
    for column, name in ((MetadataColumn(Metadata.OFFSET), "offset"), (ENQUEUED, "enqueued")):
        if column in source.compiled.metadata:
            columns[name] = chunk.metadata(column).take(taken)
    if judged is not None:
        columns |= _judgements(source.policies, judged, rows)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _judgements(policies: Policies | None, events: JudgedEvents, rows: NDArray[np.intp]) -> dict[str, pa.Array]:
    (verdicts, reasons, timed), taken = events.judged, pa.array(rows)
    columns = {
        "verdict": pa.array(VERDICTS).take(pa.array(verdicts.verdict[rows])),
        "system_timestamp": pa.array(verdicts.system_timestamp[rows], mask=~verdicts.processed[rows]),
        "reason": reasons.take(taken).cast(pa.string()),
    }
    if policies is not None and timed is not None:
        largest = verdicts.largest_time[rows]
        columns["time"] = pa.array(timed.time[rows], mask=~timed.has_time[rows])
        columns["largest_time"] = pa.array(largest, mask=largest == BEFORE_EVERYTHING)
        index = np.cumsum(verdicts.out_of_order)[rows] - 1
        pushed = events.pushed.taken(pa.array(index, mask=~verdicts.out_of_order[rows]))
        columns |= {f"pushed_by_{name}": values for name, values in vars(pushed).items()}
        out_of_order = verdicts.out_of_order[rows]
        judgements = zip(
            (timed.time[rows] - events.chunk.arrival[rows]).tolist(),
            verdicts.early[rows].tolist(),
            verdicts.late[rows].tolist(),
            pa.array(verdicts.behind[rows], mask=~out_of_order).to_pylist(),
            strict=True,
        )
        why = [reason(policies, ahead, Judgement(*judged)) for ahead, *judged in judgements]
        columns["reason"] = pc.coalesce(columns["reason"], pa.array(why, pa.string()))
    return columns
