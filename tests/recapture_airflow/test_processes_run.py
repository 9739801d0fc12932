"""The task that computes a run without Spark, in a process of its own, as Airflow forks one."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recapture.run.plan import plan_run
from recapture.run_files.planned import PlannedRun
from tests.blobs import rewrite
from tests.dialogue import dialogue
from tests.worlds import TEN, at, steady

EXECUTE = """
import json, os, signal, sys, tempfile
from pathlib import Path
import psutil
import recapture.run.in_processes
from recapture_airflow.processes_run import ProcessesRun

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def execute(file, run, scratch, stops):
    os.environ["TMPDIR"] = scratch
    tempfile.tempdir = None
    task = ProcessesRun(task_id="order_and_aggregate", file=file, run=run)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Airflow does
    if stops:
        signal.signal(signal.SIGTERM, lambda *_: task.on_kill())

        def compute(workers, run, scratch):
            (scratch / "rows").write_text("some")
            waiting = workers.pool.submit(signal.pause)
            os.kill(os.getpid(), signal.SIGTERM)
            waiting.result()

        recapture.run.in_processes.compute = compute
    try:
        task.execute({"run_id": "manual__1"})
        error = None
    except Exception as raised:
        error = [type(raised).__name__, str(raised)]
    left = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    left = [command for command in left if "resource_tracker" not in " ".join(command)]
    folders = [path.name for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith("recapture-")]
    print(json.dumps({"error": error, "left": left, "folders": folders}), file=answers, flush=True)

for line in sys.stdin:
    child = os.fork()
    if not child:
        execute(*json.loads(line))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a task was not executed")
"""
"""Loads Airflow once, and forks a process for each task, as Airflow forks one."""

Execute = Callable[..., Any]


@pytest.fixture(scope="module")
def execute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Execute]:
    """Execute the task in another process; return its error and what it leaves: processes and temporary folders."""
    with dialogue(EXECUTE, tmp_path_factory.mktemp("airflow"), PYTHONPATH=os.pathsep.join(sys.path)) as ask:

        def executed(run: PlannedRun, scratch: Path, stops: bool = False) -> Any:
            scratch.mkdir()
            return ask([str(run.pipeline.file), run.id, str(scratch), stops])

        yield executed


@pytest.fixture
def run(tmp_path: Path) -> PlannedRun:
    return plan_run(steady(tmp_path / "world", hours=1).define(), TEN, at(60))


def test_the_task_stages_the_rows_and_leaves_nothing_behind(execute: Execute, run: PlannedRun, tmp_path: Path) -> None:
    assert execute(run, tmp_path / "scratch") == {"error": None, "left": [], "folders": []}
    (staged,) = (tmp_path / "world" / "table").glob("slice_start=*/*.parquet")
    assert pq.read_metadata(staged).num_rows > 0


def test_a_damaged_blob_is_not_tried_again(execute: Execute, run: PlannedRun, tmp_path: Path) -> None:
    blob = next(path for path in sorted((tmp_path / "world" / "capture").rglob("*.avro")) if path.stat().st_size > 1000)
    rewrite(blob, blob.read_bytes()[:-40] + bytes(40))
    answer = execute(run, tmp_path / "scratch")
    assert answer["error"][0] == "AirflowFailException"
    assert (answer["left"], answer["folders"]) == ([], [])


def test_a_task_that_is_told_to_stop_ends_its_processes_and_removes_its_files(
    execute: Execute, run: PlannedRun, tmp_path: Path
) -> None:
    answer = execute(run, tmp_path / "scratch", stops=True)
    assert answer == {"error": ["AirflowException", "the task was told to stop"], "left": [], "folders": []}
