"""`python -m benchmarks.listing`: time, memory and requests of planning up to a month of a hub of 32 partitions.

A service on this machine answers List Blobs in pages of 5,000, and the SDK asks it as it asks Azure. The archive begins
a month before each range, and each plan runs in a process of its own.
"""

import argparse
import multiprocessing
import os
import time
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.blob_service import KEY, serve
from benchmarks.usage import peak_mib
from recapture.archive.definitions import InputDefinition, RunDefinition
from recapture.archive.manifest import pin_blobs
from recapture.formats.event_hubs import CaptureNames
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import slices_between

START = datetime(2026, 3, 1, tzinfo=UTC)
BEFORE = timedelta(days=31)
INTERVAL = timedelta(minutes=5)
PARTITIONS = 32
NAMES = CaptureNames("contoso", "telemetry")


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.listing", description=__doc__)
    parser.add_argument("--blobs", type=int, nargs="*", default=[35_000, 70_000, 140_000, 280_000])
    parser.add_argument("--latency-ms", type=float, default=20, help="latency of each request (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    print("   pinned    listed  requests  seconds  peak MiB  manifest MiB")
    for blobs in chosen.blobs:
        hours = round(blobs * INTERVAL / PARTITIONS / timedelta(hours=1))
        pinned, listed, requests, seconds, peak, size = measure(hours, chosen.latency_ms / 1000)
        print(f"{pinned:9,} {listed:9,} {requests:9,} {seconds:8.1f} {peak:9,.0f} {size:13,.0f}", flush=True)


def archive(hours: int) -> list[tuple[str, datetime]]:
    """Return (name, LastModified) of every blob from a month before the range to an hour after it, in order of name."""
    count = (BEFORE + timedelta(hours=hours + 1)) // INTERVAL
    opened = [START - BEFORE + number * INTERVAL for number in range(count)]
    written = INTERVAL + timedelta(seconds=3)
    return sorted(
        (NAMES.name(str(partition), time), time + written) for partition in range(PARTITIONS) for time in opened
    )


def measure(hours: int, latency: float) -> tuple[int, int, int, float, float, float]:
    """Plan this many hours; return blobs pinned, blobs listed, requests, seconds, peak MiB and MiB of the manifest."""
    fresh = multiprocessing.get_context("spawn")
    receiver, sender = fresh.Pipe(duplex=False)
    counted = fresh.Array("q", 2)
    service = fresh.Process(target=_serve, args=(hours, latency, sender, counted), daemon=True)
    service.start()
    try:
        planner = fresh.Process(target=_plan, args=(hours, receiver.recv(), sender))
        planner.start()
        pinned, seconds, peak, size = receiver.recv()
        planner.join()
    finally:
        service.terminate()
        service.join()
    return pinned, counted[1], counted[0], seconds, peak, size


def _serve(hours: int, latency: float, ready: Connection, counted: Any) -> None:
    serve(archive(hours), latency, ready, counted)


def _plan(hours: int, port: int, sender: Connection) -> None:
    endpoint = f"http://127.0.0.1:{port}/devstoreaccount1"
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = f"AccountName=devstoreaccount1;{KEY};BlobEndpoint={endpoint}"
    policies = Policies(0, late_tolerance=ticks.from_seconds(600), early_window=ticks.from_seconds(300), adjust=True)
    look_back = ticks.from_seconds(300)
    telemetry = InputDefinition(
        alias="telemetry", names=NAMES, policies=policies, look_back=look_back, interval_seconds=300, reading={}
    )
    definition = RunDefinition(name="telemetry", engine="benchmark", canonical_query="SELECT 1", inputs=[telemetry])
    first = ticks.from_datetime(START)
    slices = list(slices_between(first, first + ticks.from_seconds(3600 * hours), ticks.from_seconds(3600)))
    begin = time.perf_counter()
    containers = {"telemetry": open_container(f"{endpoint}/capture")}
    planned = pin_blobs(definition, containers, slices, datetime.now(UTC))
    size = len(planned.to_json())
    seconds = time.perf_counter() - begin
    sender.send((planned.blob_count, seconds, peak_mib(), size / 1024 / 1024))


if __name__ == "__main__":
    main()
