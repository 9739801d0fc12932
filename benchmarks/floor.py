"""The floor: decode and parse the blobs on all cores with DataFusion and DuckDB, and nothing else.

Both are called directly, so that slower code of Recapture changes the ratio. The step `inflate` uses Recapture's code.

`python -m benchmarks.floor ARCHIVE PIPELINE [--until STEP]` does so without a warm-up, and prints the number of events.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Barrier
from typing import Literal, get_args

import pyarrow as pa

from recapture.definition.pipeline import load
from recapture.formats.avro import read_framing
from recapture.formats.event_hubs import EVENT_DATA
from recapture.formats.inflate import DEFAULT, inflated
from recapture.formats.json_bodies.columns import DUCKDB_TYPES
from recapture.model import time_fields
from recapture.ordering.chunks import CHUNK_BYTES, CHUNK_EVENTS
from recapture.query.model import CompiledQuery

WARM_UP_SECONDS = 120
Step = Literal["inflate", "decode", "parse"]
STEPS: tuple[Step, ...] = get_args(Step)
"""Where to stop. DataFusion inflates what it decodes by itself."""


def events_per_second(folder: Path, query: CompiledQuery, events: int) -> float:
    """Return the rate for the blobs below a folder. Each core runs one process, which is warm before the clock starts.

    Raise AssertionError if the blobs do not hold that many events.
    """
    blobs = sorted(folder.rglob("*.avro"))
    cores = os.cpu_count() or 1
    fresh = multiprocessing.get_context("spawn")
    warm = fresh.Barrier(cores + 1)
    with fresh.Pool(cores, _warm_up, (blobs[0], query, warm)) as pool:
        warm.wait(WARM_UP_SECONDS)
        begin = time.perf_counter()
        counts = pool.starmap(read_blobs, [(share, query) for share in _shares(blobs)], chunksize=1)
        took = time.perf_counter() - begin
    assert sum(counts) == events, f"the floor read {sum(counts)} events, not {events}"
    return events / took


def _shares(blobs: Sequence[Path]) -> list[Sequence[Path]]:
    """Return the blobs of each core."""
    cores = os.cpu_count() or 1
    return [blobs[core::cores] for core in range(cores)]


def _warm_up(blob: Path, query: CompiledQuery, warm: Barrier) -> None:
    read_blobs([blob], query)
    warm.wait(WARM_UP_SECONDS)


def read_blobs(blobs: Iterable[Path], query: CompiledQuery, last: Step = "parse") -> int:
    """Take blobs through the steps up to the last one; return the number of events."""
    if last == "inflate":
        return sum(map(_inflate, blobs))
    import duckdb

    count, parsing = 0, _parsing(query)
    with duckdb.connect(config={"threads": 1}) as connection:
        for bodies in _bodies(blobs):
            count += len(bodies)
            if last == "parse":
                connection.register("bodies", pa.table({"body": bodies.cast(pa.string())}))
                connection.sql(parsing).to_arrow_table()
    return count


def _parsing(query: CompiledQuery) -> str:
    """Return the SQL that reads the fields of a query from `bodies`."""
    columns = [*query.inputs[0].columns, *time_fields(query.inputs[0].timestamp_by)]
    fields = json.dumps({column.name: DUCKDB_TYPES[column.type] for column in columns})
    return f"SELECT unnest(json_transform(body, '{fields}')) FROM bodies"


def _inflate(blob: Path) -> int:
    content = blob.read_bytes()
    framing = read_framing(blob.name, content, EVENT_DATA)
    blocks = [memoryview(content)[block] for block in framing.blocks]
    for _ in inflated(blob.name, blocks, DEFAULT) if framing.codec == "deflate" else ():
        pass
    return framing.records


def _bodies(blobs: Iterable[Path]) -> Iterator[pa.Array]:
    """Yield the bodies of the blobs, at least as many at once as a task would parse."""
    from datafusion import SessionConfig, SessionContext

    avro = SessionContext(SessionConfig().with_target_partitions(1))
    decoded: list[pa.RecordBatch] = []
    for blob in blobs:
        decoded += pa.RecordBatchReader.from_stream(avro.read_avro(blob).select('"SequenceNumber"', '"Body"'))
        if sum(map(len, decoded)) >= CHUNK_EVENTS or sum(batch.nbytes for batch in decoded) >= CHUNK_BYTES:
            yield _joined(decoded)
            decoded = []
    if decoded:
        yield _joined(decoded)


def _joined(decoded: list[pa.RecordBatch]) -> pa.Array:
    return pa.concat_arrays([batch["Body"] for batch in decoded])


def main() -> None:
    """Print the number of events."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor")
    parser.add_argument("archive", type=Path)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("--until", choices=STEPS, default=STEPS[-1])
    chosen = parser.parse_args()
    blobs, query = sorted(chosen.archive.rglob("*.avro")), load(chosen.pipeline).query
    with multiprocessing.get_context("spawn").Pool() as pool:
        print(sum(pool.starmap(read_blobs, [(share, query, chosen.until) for share in _shares(blobs)], chunksize=1)))


if __name__ == "__main__":
    main()
