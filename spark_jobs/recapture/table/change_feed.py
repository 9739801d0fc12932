"""Write the change files of a Delta table: which rows a commit inserts, updates and deletes.

Delta takes the feed of a commit from its change files, if it has any. Otherwise all rows of the files that it adds are
inserts, and all rows of those that it removes are deletes. So a commit needs change files if it replaces a file of some
slice, and then they have the rows of all its slices.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.errors import RunError
from recapture.storage import Container, in_parallel
from recapture.table.files import content_digest, folder_of, is_written_by_recapture, read_slice_file
from recapture.table.row_changes import ROWS_AT_ONCE, Rows, changed_schema, comparisons, row_changes
from recapture.time_model import ticks

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROPERTY = "delta.enableChangeDataFeed"
"""Property of tables that have a change data feed."""
FOLDER = "_change_data"
"""Folder of the change files in a table."""
MAX_BYTES_AT_ONCE = 64 << 20
"""Size of the files of several slices, in bytes, that are in memory at the same time."""


@dataclass(frozen=True)
class SliceFiles:
    """Files of a slice before and after a commit, as paths relative to the table."""

    before: Sequence[str]
    after: str | None
    """None if the slice holds nothing afterwards."""
    size: int
    """Size of all these files in bytes."""


class UnreadableFileError(Exception):
    """A file is gone, damaged or not readable, so the rows of its slice cannot be compared."""


def needs_change_files(slices: Iterable[SliceFiles]) -> bool:
    """Return whether a commit that changes the slices so needs change files."""
    return any(files.before and files.after is not None for files in slices)


def write_change_files(
    table: Container, version: int, slices: Mapping[str, SliceFiles], rows: pa.Schema
) -> dict[str, tuple[str, int]]:
    """Write the change files of the commit of a version; return their paths and sizes in bytes, by slice_start.

    A slice whose rows are the same before and after has none. No commit names the files yet. `slices` are keyed by
    slice_start. `rows` has the columns of the table without slice_start; a column that a file lacks is NULL. The same
    changes in the same version give the same files. Raise UnreadableFileError if a file of a slice cannot be read, and
    RunError if the storage refuses or this machine cannot compare the rows.
    """
    written: dict[str, tuple[str, int]] = {}
    with comparisons(f"row-changes-{hashlib.sha256(table.url.encode()).hexdigest()[:12]}") as connection:
        for starts in _groups(slices):
            paths = {path for start in starts for path in (*slices[start].before, slices[start].after) if path}
            contents = dict(zip(paths, in_parallel(lambda path: read_slice_file(table, path), paths), strict=True))
            changes = {}
            for start in starts:
                before, after = slices[start].before, slices[start].after
                content = _change_file(
                    connection,
                    _rows({path: contents[path] for path in before}, rows),
                    _rows({} if after is None else {after: contents[after]}, rows),
                )
                if content is not None:
                    path = f"{_folder_of(start)}{version:020}-{content_digest(content)}.parquet"
                    changes[path], written[start] = content, (path, len(content))
            in_parallel(lambda change: table.write(*change), changes.items())
    return written


def _groups(slices: Mapping[str, SliceFiles]) -> Iterator[list[str]]:
    """Yield the slices in groups whose files are small enough to be in memory together."""
    group: list[str] = []
    size = 0
    for start, files in slices.items():
        if group and size + files.size > MAX_BYTES_AT_ONCE:
            yield group
            group, size = [], 0
        group.append(start)
        size += files.size
    yield group


def _folder_of(start: str) -> str:
    return f"{FOLDER}/{folder_of(ticks.from_datetime(datetime.fromisoformat(start)))}"


def _rows(contents: Mapping[str, bytes | None], columns: pa.Schema) -> Rows:
    """Return the rows of files with the columns of the table. Raise UnreadableFileError if one cannot be read."""
    count = 0
    for path, content in contents.items():
        if content is None:
            raise UnreadableFileError(path)
        try:
            count += pq.read_metadata(io.BytesIO(content)).num_rows
            if not is_written_by_recapture(path):  # no digest was compared
                for _ in _read(content, columns):
                    pass
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFileError(path) from error

    def read() -> Iterator[pa.RecordBatch]:
        for content in filter(None, contents.values()):
            yield from _read(content, columns)

    return Rows(columns, count, read)


def _read(content: bytes, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(io.BytesIO(content)) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            present = dict(zip(batch.schema.names, batch.columns, strict=True))
            nothing = pa.nulls(batch.num_rows)
            arrays = [present.get(column.name, nothing).cast(column.type) for column in columns]
            yield pa.record_batch(arrays, schema=columns)


def _change_file(connection: "DuckDBPyConnection", before: Rows, after: Rows) -> bytes | None:
    """Return the content of a slice's change file; None if no row changed."""
    import duckdb

    file = io.BytesIO()
    changed = 0
    with pq.ParquetWriter(file, changed_schema(before.columns), compression="zstd") as writer:
        try:
            for batch in row_changes(connection, before, after):
                writer.write_batch(batch)
                changed += batch.num_rows
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise RunError(
                f"cannot compare the rows for the change data feed: {reason}; free memory, or space for temporary files"
            ) from error
    return file.getvalue() if changed else None
