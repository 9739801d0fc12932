"""The rows of a slice as sorted runs: written piece by piece, and merged when all of its parts are there."""

from collections.abc import Sequence
from pathlib import Path

from recapture.evaluate.faults import naming
from recapture.execute.division import Bucket, rows_of_bucket
from recapture.execute.slice_rows import SliceQuery, SliceSource, without_marks
from recapture.execute.sorted_runs import Run, merged, write_run
from recapture.model import published_schema
from recapture.query.model import CompiledOutput
from recapture.run_files.computed import StagedSlice
from recapture.storage import open_container
from recapture.table.files import write_sorted_slice_file
from recapture.time_model import ticks
from recapture.time_model.slices import Slice


def write_runs(
    query: SliceQuery, slice_: Slice, source: SliceSource, bucket: Bucket, most: int, folder: Path
) -> list[list[Run]]:
    """Write the rows of a bucket of a slice, in pieces of about `most` events, and return the runs of each output.

    Raise RunError if the query fails for a value.
    """
    runs: list[list[Run]] = [[] for _ in query.outputs]
    with naming(f"slice {ticks.to_text(slice_.start)}"):
        for piece, tables in enumerate(rows_of_bucket(query, slice_, source, bucket, most)):
            for output, marked in enumerate(tables):
                rows, unanchored = without_marks(marked)
                if len(rows):
                    name = f"run-{slice_.start}-{bucket.number}-{piece}-{output}.arrow"
                    runs[output].append(write_run(folder / name, rows, unanchored))
    return runs


def merge_runs(output: CompiledOutput, url: str, slice_: Slice, digest: str, runs: Sequence[Run]) -> StagedSlice:
    """Write the rows of an output in a slice, and remove the runs of all of its parts. `url` is that of its table.

    Raise RunError if the file cannot be written.
    """
    schema, scratch = published_schema(output.columns), runs[0].path.with_suffix(".parquet")
    path, size = write_sorted_slice_file(open_container(url), slice_.start, digest, schema, merged(runs), scratch)
    for run in runs:
        run.path.unlink()
    rows, unanchored = sum(run.rows for run in runs), sum(run.unanchored for run in runs)
    return StagedSlice(output.alias, ticks.to_text(slice_.start), path, size, rows, unanchored)
