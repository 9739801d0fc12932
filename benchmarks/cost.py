"""`python -m benchmarks.cost`: how close estimates are to what runs take.

In each world, runs of one hour and of three hours are backfilled. Then the command plans the other hours, and backfills
them. A line shows what the plan said, what the run took, and the error, for each quantity.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.command import recapture
from benchmarks.run import pipeline_file
from benchmarks.world import World

QUANTITIES = ("cpu_seconds", "seconds", "read_bytes", "written_bytes", "reads", "writes", "lists")
LENGTHS = (1, 1, 3, 3)
"""Lengths of the runs from which the plan tells what another one takes, in hours."""


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each world and quantity. Exit with 1 if an error is larger than `--at-most`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=2_000_000, help="events of an hour")
    parser.add_argument("--hours", type=int, default=8, help="length of the planned run")
    parser.add_argument("--at-most", type=float, default=0.2, help="largest error of the CPU seconds")
    parser.add_argument("--archive", type=Path, help="folder in which the worlds are kept for other calls")
    options = parser.parse_args(arguments)
    hours = sum(LENGTHS) + options.hours
    events = options.events * hours
    worlds = {
        "plain": World(events, hours=hours),
        "deflate": World(events, hours=hours, codec="deflate"),
        "32 partitions": World(events, hours=hours, partitions=32),
    }
    print(f"{'world':14}  {'quantity':14} {'planned':>16} {'took':>16}  error")
    worst = 0.0
    for name, world in worlds.items():
        with tempfile.TemporaryDirectory() as scratch:
            archive = (options.archive or Path(scratch)) / f"{name.replace(' ', '-')}-{events}-{hours}"
            world.make(archive)
            planned, took = measure(world, archive, Path(scratch))
        for quantity in QUANTITIES:
            error = planned[quantity] / took[quantity] - 1 if took[quantity] else 0.0
            print(
                f"{name:14}  {quantity:14} {planned[quantity]:16,.1f} {took[quantity]:16,.1f}  {error:+.1%}", flush=True
            )
        worst = max(worst, abs(planned["cpu_seconds"] / took["cpu_seconds"] - 1))
    if worst > options.at_most:
        sys.exit(f"the largest error of the CPU seconds is {worst:.1%}")


def measure(world: World, archive: Path, scratch: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the plan of the last hours of a world says, and what their run took."""
    file, begin = pipeline_file(scratch, archive), 0
    for length in LENGTHS:
        recapture("backfill", file, begin, begin + length)
        begin += length
    planned = recapture("plan", file, begin, world.hours)["estimate"]
    return planned, recapture("backfill", file, begin, world.hours)["cost"]


if __name__ == "__main__":
    main()
