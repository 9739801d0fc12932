"""What the workers of `run.local` do: run a task into a file of panes, and make the rows of a slice of such files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from recapture.errors import RecaptureError, RunError
from recapture.ordering import panes
from recapture.ordering.groups import rows_of_slice
from recapture.ordering.task import Task
from recapture.query.model import CompiledOutput
from recapture.run.files import StagedSlice
from recapture.run.tasks import TaskContext, run_task
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model import ticks
from recapture.time_model.slices import Slice


@dataclass(frozen=True)
class PanesFile:
    """The panes of a task, as batches of `panes.schema` in an Arrow file."""

    path: Path
    view: str
    """View of the input."""
    batches: tuple[tuple[int, int], ...]
    """Start of the slice, in ticks, and number of the aggregation of each batch."""


def write_panes(context: TaskContext, task: Task, path: Path) -> PanesFile:
    """Run a task and write its panes; its temporary files are next to them. Raise RunError if it fails."""
    tempfile.tempdir = str(path.parent)
    batches = []
    with _one_error(), pa.OSFile(str(path), "wb") as file:
        with pa.ipc.new_file(file, panes.schema(context.input.aggregations)) as writer:
            for batch in run_task(context, task):
                batches.append(_contents(batch))
                writer.write_batch(batch)
        return PanesFile(path, context.input.view, tuple(batches))


def write_rows(
    outputs: Sequence[tuple[CompiledOutput, str]], slice_: Slice, digest: str, files: Sequence[PanesFile]
) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any; the addresses are those of the tables.

    Raise RunError if a sum leaves the bigints, or if a file cannot be written.
    """
    with _one_error():
        return list(_staged(outputs, slice_, digest, files))


def _staged(
    outputs: Sequence[tuple[CompiledOutput, str]], slice_: Slice, digest: str, files: Sequence[PanesFile]
) -> Iterator[StagedSlice]:
    def panes_of(view: str, number: int) -> list[pa.RecordBatch]:
        of_input = (file for file in files if file.view == view)
        return [batch for file in of_input for batch in _read(file, slice_, number)]

    for output, url in outputs:
        rows = rows_of_slice(output, slice_, panes_of)
        if len(rows):
            path, size = write_slice_file(open_container(url), slice_.start, digest, rows)
            yield StagedSlice(output.alias, ticks.to_text(slice_.start), path, size, len(rows), 0)


def _contents(batch: pa.RecordBatch) -> tuple[int, int]:
    """Return the start of the slice and the number of the aggregation of a batch of panes."""
    (number,) = (number for number, column in enumerate(batch.columns) if not column.null_count)
    return batch.column(number).field("_slice_start")[0].as_py(), number


def _read(file: PanesFile, slice_: Slice, number: int) -> Iterator[pa.RecordBatch]:
    wanted = [place for place, contents in enumerate(file.batches) if contents == (slice_.start, number)]
    if wanted:
        with pa.memory_map(str(file.path)) as source:
            reader = pa.ipc.open_file(source)
            for place in wanted:
                yield pa.RecordBatch.from_struct_array(reader.get_batch(place).column(number))


@contextmanager
def _one_error() -> Iterator[None]:
    """Raise any error as a RunError: not every error can be sent to another process."""
    try:
        yield
    except RecaptureError as error:
        raise RunError(str(error)) from None
    except MemoryError:
        raise RunError("a worker has no memory left: backfill fewer hours at once") from None
    except Exception as error:
        raise RunError(f"a worker failed: {type(error).__name__}: {error}") from error
