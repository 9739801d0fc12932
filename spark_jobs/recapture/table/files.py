"""The Parquet files of published tables: their names and their bytes follow from their content."""

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.storage import Container
from recapture.time_model import ticks


def stage(table: Container, start: int, digest: str, rows: pa.Table) -> tuple[str, int]:
    """Write a slice's Parquet file under a name that its input and its content decide; its path and size.

    `digest` is that of the slice's input; a file that is there already is left alone.
    """
    content = parquet(rows)
    name = f"{digest[:16]}-{hashlib.sha256(content).hexdigest()[:16]}.parquet"
    path = f"slice_start={compact(start)}/{name}"
    table.create(path, content)
    return path, len(content)


def is_of(path: str, digest: str) -> bool:
    """Return whether `stage` wrote a file for the input with this digest."""
    return path.rsplit("/", 1)[-1].startswith(f"{digest[:16]}-")


def parquet(rows: pa.Table) -> bytes:
    """The same bytes for the same rows."""
    file = io.BytesIO()
    pq.write_table(rows.combine_chunks(), file, compression="zstd")
    return file.getvalue()


def compact(instant: int) -> str:
    """An instant without separators, for the names of files: 20260301T100000Z."""
    return f"{ticks.to_datetime(instant):%Y%m%dT%H%M%SZ}"
