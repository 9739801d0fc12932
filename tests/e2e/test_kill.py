"""The command is killed without a chance to clean up, or started twice: in the end, the table is right.

`make chaos` kills it at every point of a run.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedded import session
from recapture.execute.processes.workers import Workers
from tests.paths import ROOT
from tests.worlds import QUICK_START, TEN, World, at, backfill, files, published, steady, version

SECONDS = 300
KILLED = """
import os, signal, sys
from pathlib import Path

table, pattern = Path(os.environ["KILLED_TABLE"]), os.environ["KILLED_WHEN"]

def kill(event, arguments):
    if event == "open" and str(arguments[0]).startswith(str(table)) and next(table.glob(pattern), None):
        os.killpg(os.getsid(0), signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)

sys.addaudithook(kill)
"""
"""A sitecustomize module for every Python process of the command.

Once the pattern has a match, the first process that opens a file or a folder of the table kills all of them: the
command with its JVM, then its own group, which is that of the workers. The engine opens the folder after it puts a file
in place, so nothing happens between the match and the kill.
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Write two hours of two partitions."""
    return steady(tmp_path_factory.mktemp("killed"), hours=2, partitions=2)


@pytest.fixture(scope="module")
def undisturbed(processes: Workers, world: World) -> Path:
    """Return the table of a run that nothing interrupted."""
    backfill(processes, world.define(table="undisturbed"), TEN, at(120))
    return world.home / "undisturbed"


def start(world: World, output: Path, **env: str) -> subprocess.Popen[bytes]:
    """Start `recapture backfill` of both hours in a session of its own, with its output in a file."""
    path = os.pathsep.join([*filter(None, [env.pop("PYTHONPATH", "")]), str(ROOT)])
    with output.open("wb") as file:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "recapture.cli", "backfill", str(world.file)),
                *("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T12:00:00Z", "--json"),
            ],
            cwd=world.home,
            env=os.environ | {"PYTHONPATH": path, "JAVA_TOOL_OPTIONS": QUICK_START} | env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def run_until_killed(world: World, table: Path, pattern: str, home: Path) -> None:
    """Run the command, which kills itself when the pattern has a match in the table's folder."""
    (home / "sitecustomize.py").write_text(KILLED, encoding="utf-8")
    output = home / "said"
    running = start(world, output, PYTHONPATH=str(home), KILLED_TABLE=str(table), KILLED_WHEN=pattern)
    try:
        code = running.wait(SECONDS)
    finally:
        session.end(running.pid, patience=0)
    assert code == -signal.SIGKILL, output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("written", "not_written"),
    [
        ("slice_start=*/*.parquet", "_recapture/*/staged.json"),
        ("_recapture/*/audit.json", "_delta_log/*1.json"),
    ],
    ids=["during staging", "between audit and publish"],
)
def test_after_a_kill_readers_see_nothing_and_a_rerun_publishes_what_an_undisturbed_run_does(
    processes: Workers, world: World, undisturbed: Path, tmp_path: Path, written: str, not_written: str
) -> None:
    name = f"killed-{re.sub('[^a-z]', '', written)}"
    killed = world.home / name
    pipeline = world.define(table=name)
    run_until_killed(world, killed, written, tmp_path)
    assert next(killed.glob(written), None) is not None
    assert next(killed.glob(not_written), None) is None
    assert published(killed) == []
    backfill(processes, pipeline, TEN, at(120))
    assert published(killed) == published(undisturbed) != []
    assert files(killed) == files(undisturbed)


def test_the_same_backfill_twice_at_once_publishes_once(world: World, undisturbed: Path, tmp_path: Path) -> None:
    world.define(table="twice")
    running = [start(world, tmp_path / f"said-{n}") for n in range(2)]
    try:
        codes = [process.wait(SECONDS) for process in running]
    finally:
        for process in running:
            session.end(process.pid, patience=0)
    outputs = [(tmp_path / f"said-{n}").read_text() for n in range(2)]
    assert codes == [0, 0], outputs
    assert version(world.home / "twice") == 1
    assert published(world.home / "twice") == published(undisturbed) != []
    assert files(world.home / "twice") == files(undisturbed)
