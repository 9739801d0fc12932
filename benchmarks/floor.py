"""The floor: inflate, decode and parse every blob on all cores, and nothing else."""

import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa

from spark_jobs.capture import bodies
from spark_jobs.capture.decode import decode
from spark_jobs.ordering import CHUNK_EVENTS
from spark_jobs.query.model import CompiledQuery


def events_per_second(folder: Path, query: CompiledQuery, events: int) -> float:
    """Blobs in a plain folder, handed out to a process a core; processes are warm before the clock starts."""
    blobs = sorted(folder.rglob("*.avro"))
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(_read, [([blob], query) for blob in blobs[:cores]]))
        begin = time.perf_counter()
        counts = list(pool.map(_read, [(blobs[core::cores], query) for core in range(cores)]))
        took = time.perf_counter() - begin
    assert sum(counts) == events, (sum(counts), events)
    return events / took


def _read(job: tuple[Iterable[Path], CompiledQuery]) -> int:
    """Decode blobs one by one and parse their bodies in chunks as large as the backfill's."""
    blobs, query = job
    count = waiting = 0
    tables: list[pa.Table] = []
    for blob in blobs:
        tables.append(decode(blob.name, blob.read_bytes()))
        waiting += tables[-1].num_rows
        if waiting >= CHUNK_EVENTS:
            count += _parse(tables, query)
            tables, waiting = [], 0
    return count + _parse(tables, query)


def _parse(tables: list[pa.Table], query: CompiledQuery) -> int:
    if not tables:
        return 0
    body = bodies.whole(pa.concat_tables(tables)["Body"])
    return len(bodies.parse(body, query.columns, query.timestamp_by).malformed)
