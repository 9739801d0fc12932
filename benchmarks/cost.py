"""`python -m benchmarks.cost [WORLD ...]`: how close estimates are to what runs take.

The first hour of a world is backfilled, and then the next two. Then the command plans the other hours, and backfills
them. A line of the table shows a quantity as the plan estimated it, what the run took, and the difference.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchmarks import kinds, performance, run
from benchmarks.command import recapture
from benchmarks.world import World

QUANTITIES = ("cpu_seconds", "seconds", "read_bytes", "written_bytes", "reads", "writes", "lists", "money")
LENGTHS = (1, 2)
"""Lengths of the runs from which the plan tells what another one takes, in hours."""
PRICES = {"machine_hour": 0.4, "read_10000": 0.005, "write_10000": 0.06, "list_10000": 0.06, "read_gb": 0.01}
"""Prices such as those of a virtual machine and of a storage account."""


@dataclass(frozen=True)
class Case:
    """A world, and the pipeline whose runs are estimated there."""

    world: str
    """Name of the world in `benchmarks.performance`."""
    pipeline_file: Callable[[Path, Path, World], Path] = lambda folder, archive, _: run.pipeline_file(folder, archive)
    """Writes the pipeline file to a folder, for the archive with the world."""


def of_kind(kind: str) -> Callable[[Path, Path, World], Path]:
    """Return what writes the pipeline file of a kind of query; see `benchmarks.kinds`."""
    return lambda folder, archive, world: kinds.pipeline_file(folder / "kind", archive, world, kinds.KINDS[kind])


WORLDS_OF_HOURS = [name for name, world in performance.ALL.items() if world.hours > sum(LENGTHS)]
CASES = {name: Case(name) for name in WORLDS_OF_HOURS} | {
    "LAG": Case("5 million", of_kind("LAG")),
    "JOIN": Case("1 million", of_kind("JOIN")),
}


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each world and quantity. Exit with 1 if CPU seconds differ by more than `--at-most`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"default: all of {', '.join(map(repr, CASES))}")
    parser.add_argument("--at-most", type=float, default=0.2, help="largest difference of the CPU seconds")
    parser.add_argument("--archive", type=Path, default=run.WORLDS, help="folder of the worlds, which are made once")
    options = parser.parse_args(arguments)
    print("| world | quantity | estimate | actual | difference |\n|---|---|---|---|---|")
    worst = 0.0
    for name in options.worlds or CASES:
        estimated, actual = measure(CASES[name], options.archive)
        for quantity in QUANTITIES:
            print(line(name, quantity, estimated[quantity], actual[quantity]), flush=True)
        worst = max(worst, abs(estimated["cpu_seconds"] / actual["cpu_seconds"] - 1))
    if worst > options.at_most:
        sys.exit(f"the largest difference of the CPU seconds is {worst:.1%}")


def measure(case: Case, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the plan of the last hours of a world says, and what their run took."""
    world, archive = performance.ALL[case.world], folder / case.world.replace(" ", "-")
    world.make(archive)
    with tempfile.TemporaryDirectory() as scratch:
        file, begin = case.pipeline_file(Path(scratch), archive, world), 0
        file.write_text(json.dumps(YAML(typ="safe").load(file) | {"prices": PRICES}))
        for length in LENGTHS:
            recapture("backfill", file, begin, begin + length)
            begin += length
        estimated = recapture("plan", file, begin, world.hours)["estimate"]
        return estimated, recapture("backfill", file, begin, world.hours)["cost"]


def line(world: str, quantity: str, estimated: float, actual: float) -> str:
    """Return a line of the table."""
    difference = estimated / actual - 1 if actual else 0.0
    digits = {"cpu_seconds": 1, "seconds": 1, "money": 5}.get(quantity, 0)
    cells = world, quantity.replace("_", " "), f"{estimated:,.{digits}f}", f"{actual:,.{digits}f}", f"{difference:+.1%}"
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
