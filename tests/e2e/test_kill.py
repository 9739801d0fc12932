"""The command, killed without a chance to tidy up, or started twice: the table is right in the end."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs import cli, publish
from tests.worlds import QUICK_START, TEN, World, at, backfill, files, published, steady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(cli.__file__).parents[1]
SECONDS = 120


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two hours of four partitions."""
    return steady(tmp_path_factory.mktemp("killed"), hours=2, partitions=4)


@pytest.fixture(scope="module")
def undisturbed(spark: "SparkSession", world: World) -> Path:
    """The table of a run that nothing happened to."""
    backfill(spark, world.define(table="undisturbed"), TEN, at(120))
    return world.home / "undisturbed"


def start(world: World, said: Path) -> subprocess.Popen[bytes]:
    """`recapture backfill` of both hours, in a process group of its own."""
    with said.open("wb") as file:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "spark_jobs.cli", "backfill", str(world.file)),
                *("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T12:00:00Z", "--json"),
            ],
            cwd=world.home,
            env=os.environ | {"PYTHONPATH": str(ROOT), "JAVA_TOOL_OPTIONS": QUICK_START},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def kill_when(moment: Callable[[], object], world: World, said: Path) -> None:
    """Start the command, and kill its whole process group when the moment has come."""
    running = start(world, said)
    try:
        until = time.monotonic() + SECONDS
        while not moment():
            assert running.poll() is None, f"the command ended too soon: {said.read_text()}"
            assert time.monotonic() < until, "the moment never came"
            time.sleep(0.0005)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def anything(folder: Path, pattern: str) -> Callable[[], object]:
    return lambda: next(folder.glob(pattern), None)


@pytest.mark.parametrize(
    ("seen", "not_yet"),
    [
        ("_recapture/*/counters/*/*.json", "_recapture/*/staged.json"),
        ("slice_start=*/*.parquet", "_recapture/*/staged.json"),
        ("_recapture/*/audit.json", "_delta_log/*1.json"),
    ],
    ids=["during the Spark job", "during staging", "between audit and publish"],
)
def test_after_a_kill_readers_see_nothing_and_a_rerun_publishes_what_an_undisturbed_run_does(
    spark: "SparkSession", world: World, undisturbed: Path, tmp_path: Path, seen: str, not_yet: str
) -> None:
    name = f"killed-{re.sub('[^a-z]', '', seen)}"
    killed = world.home / name
    pipeline = world.define(table=name)
    kill_when(anything(killed, seen), world, tmp_path / "said")
    assert next(killed.glob(not_yet), None) is None, "the kill came too late for what this test is about"
    assert published(killed) == []
    backfill(spark, pipeline, TEN, at(120))
    assert published(killed) == published(undisturbed) != []
    assert files(killed) == files(undisturbed)


def test_the_same_backfill_twice_at_once_publishes_once(world: World, undisturbed: Path, tmp_path: Path) -> None:
    world.define(table="twice")
    running = [start(world, tmp_path / f"said-{n}") for n in range(2)]
    try:
        codes = [process.wait(SECONDS) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    said = [(tmp_path / f"said-{n}").read_text() for n in range(2)]
    assert codes == [0, 0], said
    assert len(publish.history((world.home / "twice").as_uri())) == 1
    assert published(world.home / "twice") == published(undisturbed) != []
    assert files(world.home / "twice") == files(undisturbed)
