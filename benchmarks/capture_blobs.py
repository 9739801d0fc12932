"""Read Capture blobs as Arrow for the hand-written programs, and stop at a damaged one.

DataFusion decodes them. It stops without an error where a block is cut off, and does not compare sync markers. It never
returns if a block holds more records than it declares; the programs do not check for that.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import fastavro
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

AVRO = SessionContext(SessionConfig().with_target_partitions(1))
SYNC_SIZE = 16
HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "metadata", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": SYNC_SIZE}},
        ],
    }
)


def partitions(archive: Path) -> list[list[Path]]:
    """Return the blobs of each partition in the order of their arrival."""
    blobs: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(archive.rglob("*.avro"), key=lambda path: (path.stat().st_mtime_ns, path)):
        blobs[path.parts[-7]].append(path)
    return list(blobs.values())


def batches(path: Path, *columns: str) -> Iterator[pa.RecordBatch]:
    """Yield columns of the records of a blob. Raise ValueError, with its name, if it is damaged."""
    try:
        require_whole(path)
        blob = AVRO.read_avro(path).select(*(f'"{column}"' for column in columns))
        yield from pa.RecordBatchReader.from_stream(blob)
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error or type(error).__name__}") from error


def require_whole(path: Path) -> None:
    """Raise an error unless each block ends in the sync marker of the header, and the file ends with the last block."""
    size = path.stat().st_size
    with path.open("rb") as file:
        sync = fastavro.schemaless_reader(file, HEADER, None)["sync"]  # type: ignore[call-overload,index]
        while (start := file.tell()) < size:
            _count, length = (fastavro.schemaless_reader(file, "long", None) for _ in range(2))
            file.seek(length, os.SEEK_CUR)  # type: ignore[arg-type]
            if file.read(SYNC_SIZE) != sync:
                raise ValueError(f"the block at byte {start} does not end in the sync marker")


def summary(counts: Mapping[str, int]) -> str:
    """Return the number of events, and how many of them have each verdict, on one line."""
    duplicates, damaged, early, late, in_time = (
        counts.get(verdict, 0) for verdict in ("duplicate", "damaged", "early", "late", "in time")
    )
    unused = f"{duplicates} duplicates, {damaged} damaged, {early} early"
    return f"{sum(counts.values())} events read: {unused}, {late + in_time} used, {late} of them late"
