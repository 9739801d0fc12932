"""Updates and backfills of overlapping ranges that begin at the same time, each in a process of its own."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from recapture.definition.pipeline import load
from recapture.run.slice_changes import entries_of
from recapture.run.status import status
from recapture.table.publications import Entry
from recapture.time_model import ticks
from tests.worlds import TEN, World, at, body, published, run_file, steady

HOURS = 6
PUBLISHED = (1, 3)
"""Hours that are published before the commands begin. The second becomes stale, so that updates have three ranges."""
NOW = at(60 * HOURS + 25).isoformat()
CALL = (
    "import sys; from recapture import cli; from recapture.commands import backfill, update; "
    "print(flush=True); sys.stdin.readline(); sys.exit(cli.main(sys.argv[1:]))"
)
"""A command that says when it is loaded, and then waits for a line."""
SECONDS = 900
Command = tuple[str, ...]
Run = Callable[[World, Command], object]
Rows = Counter[str]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    name: str
    code: int
    output: str
    errors: str

    @property
    def runs(self) -> list[str]:
        """Return the ids of the runs that it published."""
        result = json.loads(self.output)
        return list(result["runs"]) if self.name == "update" else [result["run"]]


@dataclass(frozen=True)
class Published:
    """What readers see, apart from which run published it and when."""

    rows: list[dict[str, Any]]
    publications: dict[str, Entry]
    problems: list[Any]


def updates(number: int) -> list[Command]:
    return [("update", "--now", NOW)] * number


def backfill(first: int, end: int) -> Command:
    """Return the command that computes the hours from `first` to `end`."""
    return ("backfill", "--from", at(60 * first).isoformat(), "--to", at(60 * end).isoformat())


def make_world(home: Path, run: Run) -> World:
    """Return a table with a change feed and two published hours of six. A blob of one of the two was replaced since."""
    world = steady(home, hours=HOURS, partitions=1)
    world.define(outputs=[{"alias": "aggregates", "table": "table", "change_feed": True}])
    world.amend(schedule={"since": TEN.isoformat(), "quiet_minutes": 0})
    for hour in PUBLISHED:
        run(world, backfill(hour, hour + 1))
    written = at(60 * PUBLISHED[-1] + 20)
    bodies = [body("device-0-0", written - timedelta(seconds=30 * n), 30) for n in reversed(range(6))]
    number = 12 * (PUBLISHED[-1] + 1) + 4
    world.put("0", written + timedelta(seconds=1), bodies, 6 * number, opened=written - timedelta(minutes=5))
    return world


def copied(world: World, home: Path) -> World:
    """Copy the tables of a world."""
    for folder in world.home.glob("table*"):
        shutil.copytree(folder, home / folder.name)
    return World(home)


def restore(world: World, copy: World) -> None:
    """Replace the tables of a world by their copies. The archive stays: copies of blobs would be other blobs."""
    for folder in world.home.glob("table*"):
        shutil.rmtree(folder)
    copied(copy, world.home)


def arguments(world: World, command: Command) -> list[str]:
    name, *options = command
    return [name, str(world.file), *options, "--master", "local[1]", "--json"]


def run_together(world: World, commands: Sequence[Command]) -> list[Ended]:
    """Start the commands, let them begin together once all are loaded, and return how they ended."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CALL, *arguments(world, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        printed = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [
        Ended(command[0], process.returncode, *streams)
        for command, process, streams in zip(commands, started, printed, strict=True)
    ]


def shown(world: World) -> Published:
    pipeline = load(world.file)
    starts = [ticks.whole_seconds(at(60 * hour)) for hour in range(HOURS)]
    entries = entries_of(pipeline, starts)
    return Published(
        published(world.table),
        {start: _without_runs(entry) for start, entry in entries.items()},
        status(pipeline)["problems"],
    )


def _without_runs(entry: Entry) -> Entry:
    def without(publication: Any) -> Any:
        return publication and replace(publication, run="", manifest="")

    return replace(entry, current=without(entry.current), earlier=tuple(map(without, entry.earlier)))


def slices_of_updates(world: World, ended: Sequence[Ended]) -> list[str]:
    """Return the slices that updates published, each as often as one did."""
    runs = [run for command in ended if command.name == "update" for run in command.runs]
    manifests = (run_file(world.table, run, "manifest.json") for run in runs)
    return sorted(ticks.to_text(slice_["slice"]["start"]) for manifest in manifests for slice_ in manifest["slices"])


def replayed(world: World) -> Rows:
    """Return the rows that the change feed gives, replayed from the empty table.

    Raise AssertionError if it deletes a row that is not there.
    """
    rows, newest = Rows(), DeltaTable(str(world.table)).version()
    for version in range(newest + 1):
        feed = DeltaTable(str(world.table)).load_cdf(starting_version=version, ending_version=version)
        changes = pa.table(feed.read_all()).to_pylist()
        removed = Rows(_row(row) for row in changes if row["_change_type"] in ("delete", "update_preimage"))
        assert removed <= rows, f"version {version} deletes rows that are not in the table"
        rows = (
            rows - removed + Rows(_row(row) for row in changes if row["_change_type"] in ("insert", "update_postimage"))
        )
    return rows


def rows_of(world: World) -> Rows:
    return Rows(map(_row, published(world.table)))


def _row(row: dict[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if not name.startswith("_")))
