"""What Spark's Python workers do with the rows that Spark distributes, which are opaque to it: Arrow streams in parts.

A worker imports this module when it starts, so it imports neither the compiler of queries nor Spark.
"""

import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pydantic import TypeAdapter

from recapture import __version__
from recapture.errors import PermanentError
from recapture.execute.division import Bucket
from recapture.execute.slice_rows import SliceQuery
from recapture.execute.slice_runs import merge_runs, write_runs
from recapture.execute.sorted_runs import Run, batches_of
from recapture.execute.spark.part_files import local_folder, write_batches, write_part
from recapture.execute.spark.parts import Division
from recapture.execute.task_batches import task_batches
from recapture.execute.tasks import TaskContext
from recapture.execute.worker_errors import one_error
from recapture.ordering.task import Task
from recapture.run_files.computed import StagedSlice

TASKS = pa.schema([("number", pa.int32()), ("input", pa.int32()), ("task", pa.string())])
"""Tasks: their numbers, the numbers of their inputs, and JSON."""
TASK = TypeAdapter(Task)
"""Writes and reads the JSON of a task."""
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
LESS_MEMORY = "give the Python workers of Spark more memory, or backfill fewer hours at once"
"""What to do if a worker has no memory left."""
_WHOLE_PART = Bucket({}, 0, 1)
_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
_UNANCHORED = b"unanchored"
"""Key of the metadata of the batches of a run: `Run.unanchored`."""


@dataclass(frozen=True)
class Work:
    """What the workers need to compute the rows of a run from what its tasks computed."""

    query: SliceQuery
    division: Division
    digests: tuple[str, ...]
    """Digests of the slices."""
    references: Mapping[str, str]
    """Names of the files of reference data that Spark gives to all executors, by the name of the view."""
    most: int
    """Number of events that are evaluated at once; a part with more is divided into pieces of time."""


class Row(NamedTuple):
    """A row of ROWS."""

    part: int
    source: int
    place: int
    batch: pa.RecordBatch


def run_call(version: str, call: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what a pickled call of a function of this module yields for batches.

    Raise PermanentError unless the driver has the version of this worker, which might compute other rows.
    """
    if version != __version__:
        raise PermanentError(
            f"an executor has Recapture {__version__}, and the driver {version}: install the same version there, or "
            "make the bundle again"
        )
    yield from pickle.loads(call)(batches)


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
                        yield from _rows(part, division.sources.index(source), places, rows)


def compute_rows(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sorted runs of each slice and output as ROWS of a part of their own, given ROWS in order.

    The upper half of the place of a row has the number of its run among those of the source, which is the bucket.
    """
    outputs, buckets = len(work.query.outputs), work.division.buckets
    with one_error(LESS_MEMORY):
        for part, runs in _runs_of_parts(work, batches):
            first = part // buckets * outputs
            for output, runs_of_output in enumerate(runs):
                for number, run in enumerate(runs_of_output):
                    places, metadata = itertools.count(number << 32), {_UNANCHORED: str(run.unanchored)}
                    for batch in batches_of(run):
                        marked = batch.replace_schema_metadata(metadata)
                        yield from _rows(first + output, part % buckets, places, marked)


def stage_rows(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write each slice of each output to one sorted file and yield STAGED, given the ROWS of `compute_rows` in order.

    The rows of a slice and an output come one after another.
    """
    with one_error(LESS_MEMORY):
        for part, rows in _parts(batches):
            slice_number, output = divmod(part, len(work.query.outputs))
            with local_folder() as folder:
                runs = [
                    _received(group, folder / f"{number}.arrow")
                    for number, (_, group) in enumerate(
                        itertools.groupby(rows, key=lambda row: (row.source, row.place >> 32))
                    )
                ]
                yield _staged(work, slice_number, output, runs)


def compute_and_stage(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do what `compute_rows` and `stage_rows` do; every slice has one bucket."""
    with one_error(LESS_MEMORY):
        for part, runs in _runs_of_parts(work, batches):
            for output, runs_of_output in enumerate(runs):
                if runs_of_output:
                    yield _staged(work, part, output, runs_of_output)


def _runs_of_parts(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[list[Run]]]]:
    """Yield the sorted runs of each output in each part, given ROWS in order. They exist until the next part."""
    for part, rows in _parts(batches):
        with local_folder() as folder:
            batches_of_part = ((row.source, row.batch) for row in rows)
            source = write_part(batches_of_part, work.division.sources, work.references, folder)
            yield part, write_runs(work.query, work.division.slice_of(part), source, _WHOLE_PART, work.most, folder)


def _staged(work: Work, slice_number: int, output: int, runs: Sequence[Run]) -> pa.RecordBatch:
    slice_, digest = work.division.slices[slice_number], work.digests[slice_number]
    staged: StagedSlice = merge_runs(*work.query.outputs[output], slice_, digest, runs)
    return pa.RecordBatch.from_pylist([asdict(staged)], schema=STAGED)


def _received(rows: Iterable[Row], path: Path) -> Run:
    """Write the rows of a run to a file."""
    batches = (row.batch for row in rows)
    first = next(batches)
    unanchored = int(first.schema.metadata[_UNANCHORED])
    return Run(path, write_batches(itertools.chain([first], batches), path), unanchored)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Row]]]:
    """Yield each part of sorted ROWS, with its rows."""
    rows = (
        Row(batch["part"][row].as_py(), batch["source"][row].as_py(), batch["place"][row].as_py(), _batch(payload))
        for batch in batches
        for row, payload in enumerate(batch["payload"])
    )
    yield from itertools.groupby(rows, key=lambda row: row.part)


def _rows(part: int, source: int, places: Iterator[int], batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch as ROWS, one at a time, each with the next place."""
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


def _batch(payload: pa.BinaryScalar) -> pa.RecordBatch:
    return pa.ipc.open_stream(payload.as_buffer(), options=_ALIGNED).read_next_batch()
