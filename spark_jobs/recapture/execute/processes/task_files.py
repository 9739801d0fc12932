"""What the workers of `compute` write for one another, as Arrow files: panes, events and reference data."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from recapture.archive.references import PlannedReference
from recapture.errors import PermanentError, RecaptureError, RunError
from recapture.execute import references
from recapture.execute.tasks import TaskContext, run_task
from recapture.formats.events import Reader
from recapture.ordering import order, panes
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput, CompiledReference
from recapture.storage import open_container

LESS_MEMORY = (
    "compute fewer slices at the same time, such as with --master local[1], or write engine: spark in the pipeline file"
)
"""What to do if a worker has no memory left."""
_BOUNDS = ("_slice_start", "_slice_end")


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


def write_task(context: TaskContext, task: Task, path: Path) -> list[WrittenBatch]:
    """Run a task and write its panes or its events; its temporary files are next to them.

    Raise RunError if it fails.
    """
    tempfile.tempdir = str(path.parent)
    aggregations = context.input.aggregations
    with one_error(), pa.OSFile(str(path), "wb") as file:
        schema = panes.schema(aggregations) if aggregations else event_schema(context.input)
        with pa.ipc.new_file(file, schema) as writer:
            written = []
            for place, batch in enumerate(run_task(context, task)):
                if aggregations:
                    (number,) = (number for number, column in enumerate(batch.columns) if not column.null_count)
                    start = batch.column(number).field("_slice_start")[0].as_py()
                else:
                    number, start = None, batch["_slice_start"][0].as_py()
                    batch = batch.drop_columns(list(_BOUNDS))
                written.append(WrittenBatch(path, place, context.input.view, start, number))
                writer.write_batch(batch)
        return written


def write_reference(
    planned: PlannedReference, compiled: CompiledReference, reader: Reader, container_url: str, path: Path
) -> None:
    """Write the rows of reference data. Errors are those of `references.rows`."""
    with one_error():
        rows = references.rows(planned, compiled, reader, open_container(container_url))
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)


def event_schema(compiled: CompiledInput) -> pa.Schema:
    """Return the columns of the events in a file: those of `order.schema` without the bounds of the slice."""
    return pa.schema([column for column in order.schema(compiled) if column.name not in _BOUNDS])


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
        return self._file(self.references[view]).read_all()

    def _of(self, view: str, number: int | None) -> Iterator[WrittenBatch]:
        return (batch for batch in self.batches if (batch.view, batch.number) == (view, number))

    def _batch(self, batch: WrittenBatch) -> pa.RecordBatch:
        return self._file(batch.path).get_batch(batch.place)

    def _file(self, path: Path) -> pa.RecordBatchFileReader:
        if path not in self._open:
            self._open[path] = pa.ipc.open_file(self._stack.enter_context(pa.memory_map(str(path))))
        return self._open[path]


@contextmanager
def one_error() -> Iterator[None]:
    """Raise any error as a RunError or a PermanentError: not every error can be sent to another process."""
    try:
        yield
    except PermanentError as error:
        raise PermanentError(str(error)) from None
    except RecaptureError as error:
        raise RunError(str(error)) from None
    except MemoryError:
        raise RunError(f"a worker has no memory left: {LESS_MEMORY}") from None
    except Exception as error:
        message = (str(error).splitlines() or ["no message"])[0]
        raise RunError(f"a worker failed: {type(error).__name__}: {message}") from error
