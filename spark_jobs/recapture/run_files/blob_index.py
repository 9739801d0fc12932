"""The index of a run: for each task, a file with the notes of the blobs that arrived in its slices."""

import io
import itertools
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.ordering.blob_notes import NOTES_SCHEMA, notes_table
from recapture.ordering.counters import Counters
from recapture.process.versions import INDEX_FORMAT
from recapture.run_files.files import RunFiles
from recapture.storage import Container
from recapture.table.files import parquet
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

_FORMAT, _DIGEST = b"recapture.format", b"recapture.digest"


def write(files: RunFiles, digest: str, first: Slice, counters: Sequence[Counters]) -> None:
    """Write the notes of a task, whose first slice is `first`. A retry overwrites the same file."""
    notes = notes_table(list(itertools.chain.from_iterable(counted.notes for counted in counters)))
    notes = notes.replace_schema_metadata({_FORMAT: str(INDEX_FORMAT), _DIGEST: digest})
    of = counters[0]
    files.container.write(_name(files, of.input, first, of.partition), parquet(notes))


def names_by_partition(files: RunFiles, alias: str) -> dict[str, list[str]]:
    """Return the names of the files with a run's notes on an input, by partition."""
    names: dict[str, list[str]] = {}
    for blob in files.container.list(files.name(f"index/{alias}/")):
        names.setdefault(blob.name.rpartition("/")[2].removesuffix(".parquet"), []).append(blob.name)
    return names


def read(container: Container, name: str, digest: str) -> pa.Table | None:
    """Return the notes in a file, with NOTES_SCHEMA.

    None if they say nothing: they have another format or digest, or the file cannot be read.
    """
    content = container.read_current(name)
    if content is None:
        return None
    try:
        with pq.ParquetFile(io.BytesIO(content)) as file:
            stated = file.schema_arrow.metadata or {}
            if (stated.get(_FORMAT), stated.get(_DIGEST)) != (str(INDEX_FORMAT).encode(), digest.encode()):
                return None
            return file.read().replace_schema_metadata().cast(NOTES_SCHEMA)
    except (pa.ArrowInvalid, OSError, ValueError):
        return None


def _name(files: RunFiles, alias: str, first: Slice, partition: str) -> str:
    return files.name(f"index/{alias}/{ticks.to_compact_text(first.start)}/{partition}.parquet")
