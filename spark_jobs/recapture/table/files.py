"""Write the Parquet files of published tables. The content of a file determines its name and its bytes."""

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.storage import Container
from recapture.time_model import ticks


def write_slice_file(table: Container, start: int, digest: str, rows: pa.Table) -> tuple[str, int]:
    """Write the Parquet file of a slice, and return its path and its size in bytes. No commit names it yet.

    Its name is made of `digest`, which is that of the slice's input, and of the digest of its content. A file that
    exists already is not written again. `start` is the start of the slice, in ticks.
    """
    content = parquet(rows)
    name = f"{digest[:16]}-{hashlib.sha256(content).hexdigest()[:16]}.parquet"
    path = f"slice_start={ticks.to_compact_text(start)}/{name}"
    table.create(path, content)
    return path, len(content)


def is_for_input(path: str, digest: str) -> bool:
    """Return whether `write_slice_file` wrote the file for the input with this digest."""
    return path.rsplit("/", 1)[-1].startswith(f"{digest[:16]}-")


def parquet(rows: pa.Table) -> bytes:
    """Return the rows as a Parquet file: equal rows give equal bytes."""
    file = io.BytesIO()
    pq.write_table(rows.combine_chunks(), file, compression="zstd")
    return file.getvalue()
