"""The work of a worker for a part of a slice: sorted rows in files, which are merged when all parts are there."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from recapture.execute import slice_runs
from recapture.execute.division import Bucket
from recapture.execute.processes.task_files import LESS_MEMORY, TaskFiles, WrittenBatch
from recapture.execute.slice_rows import SliceQuery
from recapture.execute.sorted_runs import Run
from recapture.execute.worker_errors import one_error
from recapture.run_files.computed import StagedSlice
from recapture.time_model.slices import Slice


def write_bucket(
    query: SliceQuery,
    slice_: Slice,
    bucket: Bucket,
    most: int,
    batches: Iterable[WrittenBatch],
    references: Mapping[str, Path],
    folder: Path,
) -> list[list[Run]]:
    """Write the rows of a bucket of a slice, and return the runs of each output. Errors are those of `write_runs`."""
    with one_error(LESS_MEMORY), closing(TaskFiles(batches, references)) as files:
        return slice_runs.write_runs(query, slice_, files, bucket, most, folder)


def merge_runs(query: SliceQuery, slice_: Slice, digest: str, runs: Sequence[Sequence[Run]]) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any, from the runs of all of its parts.

    Raise RunError if a file cannot be written.
    """
    with one_error(LESS_MEMORY):
        return [
            slice_runs.merge_runs(output, url, slice_, digest, runs_of_output)
            for (output, url), runs_of_output in zip(query.outputs, runs, strict=True)
            if runs_of_output
        ]
