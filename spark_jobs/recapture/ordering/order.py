"""One task of a run: the blobs of a partition, in arrival order, become ordered events of one or more slices.

Everything happens in one pass that carries one watermark for each scope; nothing is shuffled (docs/time-model.md,
section 3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.formats.bodies import Bodies
from recapture.formats.event_keys import EventKey
from recapture.formats.events import Reader
from recapture.model import TYPES, AsaType, InputColumn, MetadataColumn
from recapture.ordering.blob_notes import BlobNotes
from recapture.ordering.chunk_judge import ChunkJudge, columns_of, observe_numbers, parse_bodies
from recapture.ordering.chunks import Chunk, chunks
from recapture.ordering.counters import Counters
from recapture.ordering.key_counts import KeyCounts
from recapture.ordering.panes import SlicePanes
from recapture.ordering.pushers import Pushers
from recapture.ordering.sequence_partitions import PartitionedNumbers
from recapture.ordering.task import Task
from recapture.ordering.verdict_rows import collected
from recapture.query.model import CompiledInput
from recapture.storage import Archive
from recapture.time_model.policies import Judged, Policies
from recapture.time_model.slices import Slice
from recapture.time_model.string_codes import StringCodes

_PLACE = (
    pa.field("_partition", pa.string()),
    pa.field("_slice_start", pa.int64()),
    pa.field("_slice_end", pa.int64()),
)
SYSTEM_COLUMNS = (
    *_PLACE,
    pa.field("_system_timestamp", pa.int64()),
    pa.field("_arrival", pa.int64()),
)


def schema(compiled: CompiledInput) -> pa.Schema:
    """Return the columns of the view of an input."""
    columns: tuple[InputColumn | MetadataColumn, ...] = (*compiled.columns, *compiled.metadata)
    return pa.schema([*SYSTEM_COLUMNS, *((column.name, TYPES[column.type].view) for column in columns)])


@dataclass(frozen=True)
class Reading:
    """How the blobs of an input are read, and its events judged."""

    compiled: CompiledInput
    policies: Policies | None
    reader: Reader
    quarantine_damaged: bool = False
    """Whether damaged blobs are quarantined; otherwise they stop the run."""


def order(
    task: Task,
    container: Archive,
    reading: Reading,
    *,
    aggregate: bool = False,
    verdicts: bool = False,
    index: Sequence[EventKey] = (),
) -> tuple[Iterator[pa.RecordBatch], dict[Slice, Counters]]:
    """Return the ordered events of a task as batches of `schema(compiled)`, and its counters.

    The counters are complete once all batches have been consumed. An event occurs once for each slice to whose
    rows it may matter. Consuming the batches raises DamagedBlobError for a damaged blob, unless damaged blobs are
    quarantined, and RunError for a blob that changed since it was planned.

    With `verdicts`, the counters also collect the rows of the table of verdicts. With `index`, they collect the notes
    on the blobs, by these keys.

    With `aggregate`, return the panes of the events as batches of `panes.schema` instead. Those of a slice come once
    all blobs that may hold its events have been read. Consuming them also raises RunError if a sum leaves the bigints.
    """
    compiled = reading.compiled
    key = tuple(column.name for column in compiled.keys)
    counters = {planned.slice: Counters(task.input, task.partition, planned, KeyCounts(key)) for planned in task.slices}
    processor = _ChunkProcessor(task, compiled, ChunkJudge(compiled, reading.policies), counters, schema(compiled))
    processor.codes = {column: StringCodes() for column in compiled.keys if _is_string_of_body(column)}
    processor.pushers = Pushers() if verdicts else None
    processor.notes = BlobNotes(index) if index else None
    noted = (key for key in index if isinstance(key, MetadataColumn))
    task_chunks = chunks(task, container, compiled, reading.reader, reading.quarantine_damaged, noted)
    return (processor.panes if aggregate else processor.events)(task_chunks), counters


def _is_string_of_body(column: InputColumn | MetadataColumn) -> TypeGuard[InputColumn]:
    return isinstance(column, InputColumn) and column.type is AsaType.STRING


def payload_of(compiled: CompiledInput, chunk: Chunk, parsed: Bodies) -> list[pa.Array]:
    """Return the columns of `schema(compiled)` after SYSTEM_COLUMNS, for all events of a chunk."""
    body_columns = [parsed.columns[column] for column in compiled.columns]
    return body_columns + [chunk.metadata(column) for column in compiled.metadata]


@dataclass
class _ChunkProcessor:
    """Judges and counts the events of one task, given in chunks in arrival order, and divides them among slices."""

    task: Task
    compiled: CompiledInput
    judge: ChunkJudge
    counters: dict[Slice, Counters]
    columns: pa.Schema
    numbers: PartitionedNumbers = field(default_factory=PartitionedNumbers)
    codes: dict[InputColumn, StringCodes] = field(default_factory=dict)
    """Numbers of the strings of keys, by column."""
    pushers: Pushers | None = None
    """What pushed the watermarks, if the rows of the table of verdicts are collected; otherwise None."""
    notes: BlobNotes | None = None
    """Notes of the blobs; None without an index."""

    def events(self, task_chunks: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
        """Yield the ordered events of each slice."""
        for chunk in task_chunks:
            yield from (self._of_slice(slice_, needed) for slice_, needed in self._process(chunk))
            del chunk  # it keeps its blob in memory

    def panes(self, task_chunks: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
        """Yield the panes of each slice."""
        panes = SlicePanes.of_slices(self.counters, self.task.partition, self.compiled.aggregations)
        blobs_of_slice = {planned.slice: self.task.number_of_blobs_until(planned) for planned in self.task.slices}
        blobs = 0
        for chunk in task_chunks:
            for slice_, events in self._process(chunk):
                panes[slice_].add(events)
            blobs += len(chunk.blobs) if chunk.is_last else 0
            del chunk  # it keeps its blob in memory
            for slice_ in [slice_ for slice_ in panes if blobs_of_slice[slice_] <= blobs]:
                yield from panes.pop(slice_).batches()
        for slice_panes in panes.values():
            yield from slice_panes.batches()

    def _process(self, chunk: Chunk) -> Iterator[tuple[Slice, pa.RecordBatch]]:
        """Judge and count the events of a chunk, and yield those that each slice needs."""
        duplicates, groups = observe_numbers(chunk, self.numbers)
        for counters in self.counters.values():
            counters.count_blobs(chunk)
            counters.count_numbers(chunk, duplicates, groups)
        if not chunk.is_judged:
            return
        read = chunk
        chunk, parsed = self._with_codes(*parse_bodies(read.without(duplicates), self.compiled))
        judgements = self.judge.judge(chunk, parsed)
        judged, reasons, timed = judgements
        if self.pushers is not None:
            rows, verdicts = collected(chunk, judgements, self.judge.policies, self.pushers)
            for slice_, counters in self.counters.items():
                arrived = slice_.contains(chunk.arrival[rows])
                counters.not_on_time += [verdicts.filter(pa.array(arrived))] if arrived.any() else []
        if self.notes is not None:
            for pinned, note in self.notes.observe(read, duplicates, chunk, judged):
                self._note(pinned, note)
        del read  # it keeps its blob in memory
        keys = columns_of(self.compiled.keys, chunk, parsed)
        for counters in self.counters.values():
            counters.count_events(chunk, judged, reasons, keys)
            if timed is not None:
                counters.profile.observe(timed)
        yield from self._by_slice(judged, chunk.arrival, payload_of(self.compiled, chunk, parsed))

    def _with_codes(self, chunk: Chunk, parsed: Bodies) -> tuple[Chunk, Bodies]:
        """Return a chunk and its bodies; the strings of keys are numbered as those of earlier chunks are."""
        keys = {column: parsed.columns[column] for column in self.codes}
        coded = {column: self.codes[column].encode(keys[column]) for column in keys}
        return chunk, replace(parsed, columns=parsed.columns | coded)

    def _note(self, pinned: PinnedBlob, note: Mapping[str, object]) -> None:
        """Keep a note with the slice in which its blob arrived, if that is one of the task's."""
        for slice_, counters in self.counters.items():
            if slice_.start < pinned.arrival <= slice_.end:
                counters.notes.append(note)

    def _by_slice(
        self, judged: Judged, arrival: NDArray[np.int64], payload: list[pa.Array]
    ) -> Iterator[tuple[Slice, pa.RecordBatch]]:
        """Yield the processed events that each slice needs: their times and their payload."""
        processed = np.flatnonzero(judged.processed)
        times, arrival = judged.system_timestamp[processed], arrival[processed]
        if not len(times):
            return
        names = self.columns.names[len(_PLACE) :]
        earliest, latest = times.min(), times.max()
        for slice_ in self.counters:
            if latest <= slice_.start - self.compiled.look_back or earliest > slice_.end:
                continue
            needed = self.compiled.needs(times, slice_.start, slice_.end)
            if needed.any():
                rows = pa.array(processed[needed])
                columns = [
                    pa.array(times[needed]),
                    pa.array(arrival[needed]),
                    *(column.take(rows) for column in payload),
                ]
                yield slice_, pa.RecordBatch.from_arrays(columns, names)

    def _of_slice(self, slice_: Slice, events: pa.RecordBatch) -> pa.RecordBatch:
        """Return events with the place in which they are needed."""
        place = pa.scalar(self.task.partition), pa.scalar(slice_.start, pa.int64()), pa.scalar(slice_.end, pa.int64())
        columns = [*(pa.repeat(value, len(events)) for value in place), *events.columns]
        return pa.RecordBatch.from_arrays(columns, self.columns.names).cast(self.columns)
