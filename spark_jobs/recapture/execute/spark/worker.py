"""What Spark's Python workers do with the rows that Spark distributes, which are opaque to it: Arrow streams in parts.

A worker imports this module when it starts, so it imports neither the compiler of queries nor Spark.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from recapture.execute.division import Bucket, rows_of_bucket
from recapture.execute.references import read_reference
from recapture.execute.slice_rows import SliceQuery, stage_output
from recapture.execute.spark.parts import Division, Source
from recapture.execute.task_batches import event_schema, task_batches
from recapture.execute.tasks import TASK, TaskContext
from recapture.execute.worker_errors import one_error
from recapture.query.model import CompiledInput

TASKS = pa.schema([("number", pa.int32()), ("input", pa.int32()), ("task", pa.string())])
"""Tasks: their numbers, the numbers of their inputs, and JSON."""
ROWS = pa.schema([("part", pa.int32()), ("source", pa.int32()), ("place", pa.int64()), ("payload", pa.binary())])
"""Rows of a part: where they come from, their place among the rows of the part and source, and an Arrow stream."""
STAGED = pa.schema(
    [
        *(("output", pa.string()), ("slice_start", pa.string()), ("path", pa.string())),
        *(("size", pa.int64()), ("rows", pa.int64()), ("unanchored", pa.int64())),
    ]
)
"""Fields of StagedSlice."""
PAYLOAD_BYTES = 4 * 1024 * 1024
"""Approximate upper bound on the size of a payload. Spark holds a few of them at once."""
PIECE_EVENTS = 4_000_000
"""Number of events that are evaluated at once; a part with more is divided into pieces of time."""
LESS_MEMORY = "give the Python workers of Spark more memory, or backfill fewer hours at once"
"""What to do if a worker has no memory left."""
_WHOLE_PART = Bucket({}, 0, 1)
_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)


@dataclass(frozen=True)
class Work:
    """What the workers need to compute the rows of a run from what its tasks computed."""

    query: SliceQuery
    division: Division
    digests: tuple[str, ...]
    """Digests of the slices."""
    references: Mapping[str, str]
    """Names of the files of reference data that Spark gives to all executors, by the name of the view."""


def run_tasks(
    contexts: Sequence[TaskContext], division: Division, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the tasks in batches of TASKS, and yield what they compute as ROWS."""
    with one_error(LESS_MEMORY):
        for batch in batches:
            for task in batch.to_pylist():
                context, places = contexts[task["input"]], itertools.count(task["number"] << 32)
                for computed in task_batches(context, TASK.validate_json(task["task"])):
                    source = context.input.view, computed.number
                    for part, rows in division.divided(source, computed.slice_start, computed.rows):
                        yield from _rows(part, division.sources.index(source), places, [rows])


def compute_rows(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each slice and output as ROWS of a part of their own, given ROWS in order."""
    outputs, buckets = len(work.query.outputs), work.division.buckets
    with one_error(LESS_MEMORY):
        for part, payloads in _parts(batches):
            first, places = part // buckets * outputs, itertools.count()
            source = PartRows(_by_source(work.division.sources, payloads), work.references)
            slice_ = work.division.slice_of(part)
            for tables in rows_of_bucket(work.query, slice_, source, _WHOLE_PART, PIECE_EVENTS):
                for output, rows in enumerate(tables):
                    yield from _rows(first + output, part % buckets, places, rows.to_batches())


def stage_rows(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write each slice of each output to one sorted file and yield STAGED, given the ROWS of `compute_rows` in order.

    The rows of a slice and an output come one after another.
    """
    with one_error(LESS_MEMORY):
        for part, payloads in _parts(batches):
            number, output = divmod(part, len(work.query.outputs))
            rows = pa.Table.from_batches([_batch(payload) for _, payload in payloads])
            place = work.division.slices[number].start, work.digests[number]
            for staged in stage_output(*work.query.outputs[output], *place, rows):
                yield pa.RecordBatch.from_pylist([asdict(staged)], schema=STAGED)


def compute_and_stage(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do what `compute_rows` and `stage_rows` do; every slice has one bucket."""
    return stage_rows(work, compute_rows(work, batches))


@dataclass(frozen=True)
class PartRows:
    """The rows of one part, from which the rows of the outputs are computed."""

    batches: Mapping[Source, list[pa.RecordBatch]]
    references: Mapping[str, str]

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        """Return the panes of an aggregation of an input."""
        return self.batches.get((view, number), [])

    def events(self, compiled: CompiledInput) -> pa.Table:
        """Return the ordered events of an input, one partition after another."""
        return pa.Table.from_batches(self.batches.get((compiled.view, None), []), event_schema(compiled))

    def reference(self, view: str) -> pa.Table:
        """Return the rows of reference data."""
        from pyspark import SparkFiles

        return read_reference(Path(SparkFiles.get(self.references[view])))


def _by_source(
    sources: Sequence[Source], payloads: Iterable[tuple[int, pa.Buffer]]
) -> dict[Source, list[pa.RecordBatch]]:
    batches: dict[Source, list[pa.RecordBatch]] = {}
    for source, payload in payloads:
        batches.setdefault(sources[source], []).append(_batch(payload))
    return batches


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[tuple[int, pa.Buffer]]]]:
    """Yield each part of sorted ROWS, with its sources and payloads."""
    rows = (
        (batch["part"][row].as_py(), batch["source"][row].as_py(), batch["payload"][row].as_buffer())
        for batch in batches
        for row in range(batch.num_rows)
    )
    for part, group in itertools.groupby(rows, key=lambda row: row[0]):
        yield part, ((source, payload) for _, source, payload in group)


def _rows(part: int, source: int, places: Iterator[int], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as ROWS, one at a time, each with the next place."""
    for batch in batches:
        most = max(1, PAYLOAD_BYTES * batch.num_rows // max(batch.nbytes, 1))
        for begin in range(0, batch.num_rows, most):
            payload = _stream(batch.slice(begin, most))
            offsets = pa.array([0, payload.size], pa.int32()).buffers()[1]
            binary = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, payload])
            places_ = [pa.array([part], pa.int32()), pa.array([source], pa.int32()), pa.array([next(places)])]
            yield pa.RecordBatch.from_arrays([*places_, binary], schema=ROWS)


def _stream(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _batch(payload: pa.Buffer) -> pa.RecordBatch:
    return pa.ipc.open_stream(payload, options=_ALIGNED).read_next_batch()
