"""The work of a worker for a part of a slice: sorted rows in files, which are merged when all parts are there."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from recapture.execute.division import Bucket, rows_of_bucket
from recapture.execute.processes.task_files import LESS_MEMORY, TaskFiles, WrittenBatch
from recapture.execute.slice_rows import SliceQuery, without_marks
from recapture.execute.sorted_runs import Run, merged, write_run
from recapture.execute.worker_errors import one_error
from recapture.model import published_schema
from recapture.run_files.computed import StagedSlice
from recapture.storage import open_container
from recapture.table.files import write_sorted_slice_file
from recapture.time_model import ticks
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
    """Write the rows of a bucket of a slice, in pieces of about `most` events, and return the runs of each output.

    Raise RunError if the query fails for a value.
    """
    runs: list[list[Run]] = [[] for _ in query.outputs]
    with one_error(LESS_MEMORY), closing(TaskFiles(batches, references)) as files:
        for piece, tables in enumerate(rows_of_bucket(query, slice_, files, bucket, most)):
            for output, marked in enumerate(tables):
                rows, unanchored = without_marks(marked)
                if len(rows):
                    name = f"run-{slice_.start}-{bucket.number}-{piece}-{output}.arrow"
                    runs[output].append(write_run(folder / name, rows, unanchored))
    return runs


def merge_runs(query: SliceQuery, slice_: Slice, digest: str, runs: Sequence[Sequence[Run]]) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any, from the runs of all of its parts.

    Raise RunError if a file cannot be written.
    """
    staged = []
    with one_error(LESS_MEMORY):
        for (output, url), of_output in zip(query.outputs, runs, strict=True):
            if of_output:
                schema, scratch = published_schema(output.columns), of_output[0].path.with_suffix(".parquet")
                table, rows = open_container(url), merged(of_output)
                path, size = write_sorted_slice_file(table, slice_.start, digest, schema, rows, scratch)
                counts = sum(run.rows for run in of_output), sum(run.unanchored for run in of_output)
                staged.append(StagedSlice(output.alias, ticks.to_text(slice_.start), path, size, *counts))
                for run in of_output:
                    run.path.unlink()
    return staged
