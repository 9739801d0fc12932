"""The staged rows of a run: read, or written to local files for the audit."""

import io
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.definition.sections import Output
from recapture.quality.rows import Rows, SliceFile
from recapture.run_files.computed import Computed, StagedSlice
from recapture.storage import open_container
from recapture.table.files import require_slice_file
from recapture.table.schema import SLICE_COLUMN


def staged_rows(run_id: str, computed: Computed, output: Output, limit: int | None = None) -> pa.Table:
    """Return the rows that a run computed for an output, all or the first `limit`, with their slice_start."""
    tables: list[pa.Table] = []
    for number, staged in enumerate(computed.staged_of(output.alias)):
        rest = staged.rows if limit is None else min(staged.rows, limit - sum(table.num_rows for table in tables))
        if rest or not number:
            with pq.ParquetFile(io.BytesIO(staged_content(output, staged, run_id))) as file:
                if rest == staged.rows:
                    rows = file.read()
                else:
                    rows = pa.Table.from_batches([next(file.iter_batches(rest))]).slice(0, rest)
            start = pa.scalar(datetime.fromisoformat(staged.slice_start), pa.timestamp("us", tz="UTC"))
            tables.append(rows.append_column(SLICE_COLUMN, pa.repeat(start, rows.num_rows)))
    return pa.concat_tables(tables)


def write_locally(output: Output, staged: Iterable[StagedSlice], run_id: str, folder: Path) -> Rows:
    """Write the staged rows of an output to a local folder, and return them."""
    contents = ((file.slice_start, staged_content(output, file, run_id)) for file in staged)
    files = local_files(folder, output.alias, contents)
    return Rows(pq.read_schema(files[0].path), SLICE_COLUMN, files)


def local_files(folder: Path, name: str, contents: Iterable[tuple[str, bytes]]) -> tuple[SliceFile, ...]:
    """Write the Parquet files of slices, given with slice_start, into a local folder, and return them."""
    files = []
    for number, (start, content) in enumerate(contents):
        path = folder / f"{name}-{number}.parquet"
        path.write_bytes(content)
        files.append(SliceFile(path, datetime.fromisoformat(start)))
    return tuple(files)


def staged_content(output: Output, staged: StagedSlice, run_id: str) -> bytes:
    """Return the content of a staged file. Raise PermanentError if it is gone or damaged."""
    problem = f"{staged.path}, which run {run_id} staged, is gone or damaged: start the run again from its plan"
    return require_slice_file(open_container(output.table), staged.path, problem)
