"""`python -m benchmarks.scale`: how a backfill grows with blobs, slices and partitions, or with events.

Each backfill is a command of its own. Blobs with one event show what grows without events: `32x24` is a day of a hub
with 32 partitions. With --events, six hours of four partitions have so many events, and Spark computes the rows.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from benchmarks import usage
from benchmarks.kinds import BASE, KINDS, pipeline_file
from benchmarks.run import WORLDS
from benchmarks.world import START, World
from embedded.java import java_home

MIB = 1 << 20
COLUMNS = (
    *("events", "blobs", "hours", "partitions", "runs", "tasks", "seconds", "CPU s"),
    *("driver MiB", "worker MiB", "manifests MiB", "metrics MiB", "run files", "log KiB", "shuffled MiB"),
)
_TASKS = re.compile(r"order and aggregate in ([\d,]+) tasks?: begins")


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each backfill."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--archives", type=Path, default=WORLDS, help="folder of the archives, which are made once")
    parser.add_argument("--sizes", nargs="+", default=["32x24", "32x168", "32x744"], help="PARTITIONSxHOURS")
    parser.add_argument("--events", nargs="+", type=int, help="for example 1000000 5000000 20000000")
    parser.add_argument("--kind", default=BASE, choices=KINDS, help="kind of query (default: %(default)s)")
    parser.add_argument("--master", help="Spark master (default: none, or local[2] with --events)")
    chosen = parser.parse_args(arguments)
    worlds = [World(events) for events in chosen.events or ()]
    if not worlds:
        sizes = [tuple(map(int, size.split("x"))) for size in chosen.sizes]
        worlds = [World(12 * partitions * hours, hours=hours, partitions=partitions) for partitions, hours in sizes]
    print("  ".join(COLUMNS))
    for world in worlds:
        archive = chosen.archives / f"{world.events}-events-{world.partitions}x{world.hours}"
        world.make(archive)
        master = chosen.master or ("local[2]" if chosen.events else None)
        values = measure(world, archive, KINDS[chosen.kind], master)
        shown = {name: f"{value:,.{0 if float(value).is_integer() else 1}f}" for name, value in values.items()}
        print("  ".join(f"{value:>{len(name)}}" for name, value in shown.items()), flush=True)


def measure(world: World, archive: Path, query: str, master: str | None) -> dict[str, float]:
    """Backfill a world, and return what that took, by the names in COLUMNS."""
    with tempfile.TemporaryDirectory() as folder:
        file = pipeline_file(Path(folder) / "pipeline", archive, world, query)
        if master is not None:
            file.write_text(json.dumps(json.loads(file.read_text()) | {"engine": "spark"}))
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        bounds = ["--from", START.isoformat(), "--to", world.end.isoformat()]
        command = [sys.executable, "-m", "recapture.cli", "backfill", str(file), *bounds, "--json", "-v"]
        used = usage.run(
            command + (["--master", master] if master else []), scratch, JAVA_HOME=str(java_home()) if master else ""
        )
        table = file.parent / "table"
        run_files = [path for path in (table / "_recapture").rglob("*") if path.is_file()]
        logs = [path for path in file.parent.rglob("_delta_log/*.json")]

        def mib(name: str) -> float:
            return sum(path.stat().st_size for path in run_files if path.name == name) / MIB

        tasks = _TASKS.findall((scratch / "output.txt").read_text())
        values = (
            *(world.events, world.blob_count, world.hours, world.partitions, len(tasks)),
            sum(int(number.replace(",", "")) for number in tasks),
            *(used.seconds, used.cpu_seconds, used.driver_bytes / MIB, used.worker_bytes / MIB),
            *(mib("manifest.json"), mib("metrics.json"), len(run_files)),
            *(sum(path.stat().st_size for path in logs) / 1024, used.shuffled_bytes / MIB),
        )
    return dict(zip(COLUMNS, values, strict=True))


if __name__ == "__main__":
    main()
