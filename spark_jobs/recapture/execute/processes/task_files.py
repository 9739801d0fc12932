"""The work of a worker of `compute`: a task writes its panes or events to an Arrow file, and slices read the files."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from recapture.evaluate.faults import naming
from recapture.execute import references
from recapture.execute.references import JoinedReference, read_reference
from recapture.execute.slice_rows import SliceQuery, rows_of_outputs, stage_output
from recapture.execute.task_batches import batch_schema, event_schema, task_batches
from recapture.execute.tasks import TaskContext
from recapture.execute.worker_errors import one_error
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput
from recapture.run_files.computed import StagedSlice
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

LESS_MEMORY = (
    "compute fewer slices at the same time, which the command does with --master local[1], or give this machine or "
    "container more memory"
)
"""What to do if a worker has no memory left."""


@dataclass(frozen=True)
class WrittenBatch:
    """A batch in an Arrow file: the panes of one slice and one aggregation, or events of one slice."""

    path: Path
    place: int
    """Number of batches before it in the file."""
    view: str
    slice_start: int
    """Start of the slice, in ticks."""
    number: int | None
    """Number of the aggregation; None for events."""
    rows: int = 0
    """Number of its panes or events."""


def write_task(context: TaskContext, task: Task, path: Path) -> list[WrittenBatch]:
    """Run a task and write its panes or its events; its temporary files are next to them.

    Raise RunError if it fails.
    """
    tempfile.tempdir = str(path.parent)
    written = []
    with (
        one_error(LESS_MEMORY),
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, batch_schema(context.input)) as writer,
    ):
        for place, batch in enumerate(task_batches(context, task)):
            written.append(
                WrittenBatch(path, place, context.input.view, batch.slice_start, batch.number, len(batch.columns))
            )
            writer.write_batch(batch.columns)
    return written


def write_reference(reference: JoinedReference, path: Path) -> None:
    """Write the rows of reference data. Errors are those of `references.rows`."""
    with one_error(LESS_MEMORY):
        references.write_reference(reference, path)


@dataclass
class TaskFiles:
    """The files from which the rows of a slice are computed. They are mapped into memory until `close` is called."""

    batches: Iterable[WrittenBatch]
    """Batches of the slice; those of a partition come in arrival order."""
    references: Mapping[str, Path]
    """Files of reference data, by the name of the view."""
    _open: dict[Path, pa.RecordBatchFileReader] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def close(self) -> None:
        self._open.clear()
        self._stack.close()

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        """Return the panes of an aggregation of an input."""
        structs = (self._batch(batch).column(number) for batch in self._of(view, number))
        return [pa.RecordBatch.from_struct_array(column) for column in structs]

    def events(self, compiled: CompiledInput) -> pa.Table:
        """Return the ordered events of an input, one partition after another."""
        batches = [self._batch(batch) for batch in self._of(compiled.view, None)]
        return pa.Table.from_batches(batches, event_schema(compiled))

    def reference(self, view: str) -> pa.Table:
        """Return the rows of reference data."""
        return read_reference(self.references[view])

    def _of(self, view: str, number: int | None) -> Iterator[WrittenBatch]:
        return (batch for batch in self.batches if (batch.view, batch.number) == (view, number))

    def _batch(self, batch: WrittenBatch) -> pa.RecordBatch:
        return self._file(batch.path).get_batch(batch.place)

    def _file(self, path: Path) -> pa.RecordBatchFileReader:
        if path not in self._open:
            self._open[path] = pa.ipc.open_file(self._stack.enter_context(pa.memory_map(str(path))))
        return self._open[path]


def write_rows(
    query: SliceQuery, slice_: Slice, digest: str, batches: Iterable[WrittenBatch], references: Mapping[str, Path]
) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any, from what the tasks wrote of the slice.

    Raise RunError if the query fails for a value, or if a file cannot be written.
    """
    staged: list[StagedSlice] = []
    slice_start = ticks.to_text(slice_.start)
    with (
        one_error(LESS_MEMORY),
        naming(f"slice {slice_start}"),
        closing(TaskFiles(batches, references)) as files,
    ):
        for (output, url), rows in zip(query.outputs, rows_of_outputs(query, slice_, files), strict=True):
            staged += stage_output(output, url, slice_.start, digest, rows)
    return staged
