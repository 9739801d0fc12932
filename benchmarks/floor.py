"""The floor: decode and parse every blob by itself, on all cores, and nothing else."""

import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from spark_jobs.capture import bodies
from spark_jobs.capture.decode import decode
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
    blobs, query = job
    count = 0
    for blob in blobs:
        body = bodies.whole(decode(blob.name, blob.read_bytes())["Body"])
        count += len(bodies.parse(body, query.columns, query.timestamp_by).malformed)
    return count
