"""The floor: decode and parse every blob by itself, on all cores, and nothing else."""

import multiprocessing
import os
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Barrier

from recapture.formats import bodies
from recapture.formats.avro import decode
from recapture.formats.duckdb_sql import one_array
from recapture.formats.event_hubs import EVENT_DATA
from recapture.model import time_fields
from recapture.query.model import CompiledQuery

WARM_UP_SECONDS = 120


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
        counts = pool.starmap(_read, [(blobs[core::cores], query) for core in range(cores)], chunksize=1)
        took = time.perf_counter() - begin
    assert sum(counts) == events, f"the floor read {sum(counts)} events, not {events}"
    return events / took


def _warm_up(blob: Path, query: CompiledQuery, warm: Barrier) -> None:
    _read([blob], query)
    warm.wait(WARM_UP_SECONDS)


def _read(blobs: Iterable[Path], query: CompiledQuery) -> int:
    count = 0
    for blob in blobs:
        body = one_array(decode(blob.name, blob.read_bytes(), EVENT_DATA)["Body"])
        count += len(bodies.parse(body, query.inputs[0].columns, time_fields(query.inputs[0].timestamp_by)).malformed)
    return count
