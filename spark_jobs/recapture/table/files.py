"""Write and read the Parquet files of published tables. The content of a file determines its name and its bytes."""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.errors import PermanentError
from recapture.storage import Container
from recapture.time_model import ticks

_NAME = re.compile(r"(.+)-([0-9a-f]{16})\.parquet")
"""Name of a file, with the beginning of the digest of its input, and the digest of its content."""
_COMPRESSION = "zstd"
_ROW_GROUP = 1 << 20
"""Number of rows of a row group: Arrow's own."""
_BUFFER = 1 << 16
"""Number of bytes that Arrow collects before it calls Python to write them."""


def write_slice_file(table: Container, start: int, digest: str, rows: pa.Table) -> tuple[str, int]:
    """Write the Parquet file of a slice, and return its path and its size in bytes. No commit names it yet.

    Its name is made of `digest`, which is that of the slice's input, and of the digest of its content. A file that
    exists already is written again only if its content is not what its name says. `start` is the start of the slice,
    in ticks.
    """
    return _write(table, start, digest, parquet(rows))


def write_sorted_slice_file(
    table: Container, start: int, digest: str, schema: pa.Schema, parts: Iterable[pa.Table], scratch: Path
) -> tuple[str, int]:
    """Write the Parquet file of a slice as `write_slice_file` does, from rows in parts, which are sorted.

    `scratch` is a path for a temporary file. Only the rows of one row group and the compressed file are in memory.
    """
    _write_parquet(scratch, schema, parts)
    content = scratch.read_bytes()
    scratch.unlink()
    return _write(table, start, digest, content)


def _row_groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    waiting = schema.empty_table()
    for part in parts:
        waiting = pa.concat_tables([waiting, part]) if len(waiting) else part
        while len(waiting) > _ROW_GROUP:
            yield waiting.slice(0, _ROW_GROUP)
            waiting = waiting.slice(_ROW_GROUP)
    yield waiting


def _write(table: Container, start: int, digest: str, content: bytes) -> tuple[str, int]:
    path = f"{folder_of(start)}{digest[:16]}-{content_digest(content)}.parquet"
    if not table.create(path, content) and table.read_current(path) != content:
        table.write(path, content)
    return path, len(content)


def read_slice_file(table: Container, path: str) -> bytes | None:
    """Return the content of a file; None if it is gone, or is not what its name says."""
    content = table.read_current(path)
    return content if content is not None and is_intact(path, content) else None


def read_slice_table(table: Container, path: str) -> pa.Table | None:
    """Return the rows of a file; None as `read_slice_file` does."""
    content = read_slice_file(table, path)
    return None if content is None else read_parquet(content)


def require_slice_file(table: Container, path: str, problem: str) -> bytes:
    """Return the content of a file. Raise PermanentError, which says `problem`, where `read_slice_file` is None."""
    content = read_slice_file(table, path)
    if content is None:
        raise PermanentError(problem)
    return content


def is_intact(path: str, content: bytes) -> bool:
    """Return whether a file has the content that its name says. The name of another program's file says nothing."""
    name = _name(path)
    return name is None or name[2] == content_digest(content)


def has_same_content(path: str, other: str) -> bool:
    """Return whether two files have the same content, by their names; False if another program wrote one of them."""
    name, other_name = _name(path), _name(other)
    return name is not None and other_name is not None and name[2] == other_name[2]


def folder_of(start: int) -> str:
    """Return the folder of a slice in a table, with a slash at its end; `start` is that of the slice, in ticks."""
    return f"slice_start={ticks.to_compact_text(start)}/"


def is_for_input(path: str, digest: str) -> bool:
    """Return whether `write_slice_file` wrote the file for the input with this digest."""
    return path.rsplit("/", 1)[-1].startswith(f"{digest[:16]}-")


def is_written_by_recapture(path: str) -> bool:
    """Return whether a file has a name as `write_slice_file` gives it."""
    return _name(path) is not None


def input_of(path: str) -> str | None:
    """Return the beginning of the digest of a file's input, as `is_for_input` compares it; None if it has no name."""
    name = _name(path)
    return None if name is None else name[1]


def _name(path: str) -> re.Match[str] | None:
    return _NAME.fullmatch(path.rsplit("/", 1)[-1])


def content_digest(content: bytes) -> str:
    """Return the digest of a file's content, as names of files have it."""
    return hashlib.sha256(content).hexdigest()[:16]


def read_parquet(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a Parquet file, with these columns or all. For few rows, `pq.read_table` takes longer."""
    with pq.ParquetFile(io.BytesIO(content)) as file:
        rows = file.read(columns)
    return rows if columns is None else rows.select(columns)


def parquet(rows: pa.Table) -> bytes:
    """Return the rows as a Parquet file: equal rows give equal bytes."""
    file = io.BytesIO()
    stream = pa.output_stream(file, buffer_size=_BUFFER)  # Arrow writes a few bytes at a time
    _write_parquet(stream, rows.schema, [rows])
    stream.flush()
    return file.getvalue()


def _write_parquet(file: pa.NativeFile | Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Write rows in parts. The bytes depend on the rows alone, as a row group is written at once."""
    with pq.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for rows in _row_groups(parts, schema):
            writer.write_table(rows.combine_chunks(), row_group_size=_ROW_GROUP)
