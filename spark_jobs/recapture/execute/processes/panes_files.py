"""What the workers of `compute` do: run a task into a file of panes, and make the rows of a slice of such files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from recapture.errors import PermanentError, RecaptureError, RunError
from recapture.execute.tasks import TaskContext, run_task
from recapture.ordering import panes
from recapture.ordering.groups import rows_of_slice
from recapture.ordering.task import Task
from recapture.query.model import CompiledOutput
from recapture.run_files.computed import StagedSlice
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model import ticks
from recapture.time_model.slices import Slice


@dataclass(frozen=True)
class PanesBatch:
    """A batch of `panes.schema` in an Arrow file: the panes of one slice and one aggregation."""

    path: Path
    place: int
    """Number of batches before it in the file."""
    view: str
    slice_start: int
    """Start of the slice, in ticks."""
    number: int


def write_panes(context: TaskContext, task: Task, path: Path) -> list[PanesBatch]:
    """Run a task and write its panes; its temporary files are next to them. Raise RunError if it fails."""
    tempfile.tempdir = str(path.parent)
    written = []
    with _one_error(), pa.OSFile(str(path), "wb") as file:
        with pa.ipc.new_file(file, panes.schema(context.input.aggregations)) as writer:
            for place, batch in enumerate(run_task(context, task)):
                (number,) = (number for number, column in enumerate(batch.columns) if not column.null_count)
                start = batch.column(number).field("_slice_start")[0].as_py()
                written.append(PanesBatch(path, place, context.input.view, start, number))
                writer.write_batch(batch)
        return written


def write_rows(
    outputs: Sequence[tuple[CompiledOutput, str]], slice_: Slice, digest: str, batches: Sequence[PanesBatch]
) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any, from the panes of the slice.

    The texts next to the outputs are the addresses of their tables. Raise RunError if a sum leaves the bigints, or if a
    file cannot be written.
    """
    with _one_error():
        return list(_staged(outputs, slice_, digest, batches))


def _staged(
    outputs: Sequence[tuple[CompiledOutput, str]], slice_: Slice, digest: str, batches: Sequence[PanesBatch]
) -> Iterator[StagedSlice]:
    def panes_of(view: str, number: int) -> list[pa.RecordBatch]:
        return [_read(batch) for batch in batches if (batch.view, batch.number) == (view, number)]

    for output, url in outputs:
        rows = rows_of_slice(output, slice_, panes_of)
        if len(rows):
            path, size = write_slice_file(open_container(url), slice_.start, digest, rows)
            yield StagedSlice(output.alias, ticks.to_text(slice_.start), path, size, len(rows), 0)


def _read(batch: PanesBatch) -> pa.RecordBatch:
    with pa.memory_map(str(batch.path)) as source:
        structs = pa.ipc.open_file(source).get_batch(batch.place).column(batch.number)
    return pa.RecordBatch.from_struct_array(structs)


@contextmanager
def _one_error() -> Iterator[None]:
    """Raise any error as a RunError or a PermanentError: not every error can be sent to another process."""
    try:
        yield
    except PermanentError as error:
        raise PermanentError(str(error)) from None
    except RecaptureError as error:
        raise RunError(str(error)) from None
    except MemoryError:
        raise RunError("a worker has no memory left: backfill fewer hours at once") from None
    except Exception as error:
        message = (str(error).splitlines() or ["no message"])[0]
        raise RunError(f"a worker failed: {type(error).__name__}: {message}") from error
