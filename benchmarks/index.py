"""`python -m benchmarks.index`: what an index costs a run, and what it spares a search for a key.

The world is a day of 32 partitions. Each command is a process of its own.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.command import recapture
from benchmarks.world import World

QUERY = """SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS mean
INTO Output FROM Telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, 5)"""


def main(arguments: list[str] | None = None) -> None:
    """Print what runs take with and without an index, and then what a search reads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=2_000_000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--devices", type=int, default=20_000)
    parser.add_argument("--by-device", action="store_true", help="each device sends to one partition")
    parser.add_argument("--rounds", type=int, default=2, help="runs with an index, and runs without one")
    options = parser.parse_args(arguments)
    world = World(
        options.events,
        hours=options.hours,
        partitions=options.partitions,
        devices=options.devices,
        by_device=options.by_device,
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        world.make(folder / "archive")
        for _ in range(options.rounds):
            for index in ([], ["deviceId"]):
                cost = recapture("backfill", _pipeline(folder, index), 0, world.hours)["cost"]
                print(
                    f"index {index}: {cost['cpu_seconds']:.1f} s of CPU, {cost['written_bytes']:,} bytes written",
                    flush=True,
                )
        notes = sum(file.stat().st_size for file in folder.glob("with/*/_recapture/*/index/**/*.parquet"))
        print(f"notes on {world.blob_count:,} blobs: {notes:,} bytes")
        for index in ([], ["deviceId"]):
            begin = time.monotonic()
            found = recapture("find", _pipeline(folder, index), 0, world.hours, "--where", "deviceId=device-4711")
            (read,) = found["inputs"]
            print(f"index {index}: {found['count']} events, {time.monotonic() - begin:.1f} s, read {read}", flush=True)


def _pipeline(folder: Path, index: list[str]) -> Path:
    """Write the pipeline file of a run with or without an index, and return its path."""
    home = folder / ("with" if index else "without")
    home.mkdir(exist_ok=True)
    source = {
        "alias": "Telemetry",
        "container": (folder / "archive").as_uri(),
        "namespace": "contoso",
        "event_hub": "telemetry",
    }
    sections = {
        "name": "telemetry",
        "input": source | ({"index": index} if index else {}),
        "job": {"eventsLateArrivalMaxDelayInSeconds": 600, "query": QUERY},
        "output": {"alias": "Output", "table": "table"},
    }
    file = home / "telemetry.yaml"
    file.write_text(json.dumps(sections))
    return file


if __name__ == "__main__":
    main()
