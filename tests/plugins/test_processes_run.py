"""The task that computes a run without Spark, in a process of its own, as Airflow starts one."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recapture.run.plan import plan_run
from recapture.run_files.planned import PlannedRun
from tests.blobs import rewrite
from tests.conftest import Python
from tests.worlds import TEN, at, steady

EXECUTE = """
import json, os, signal, sys, tempfile
from pathlib import Path
import psutil
from processes_run import ProcessesRun

file, run, stops = sys.argv[1:]
task = ProcessesRun(task_id="order_and_aggregate", file=file, run=run)
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Airflow does
if stops:
    import recapture.run.in_processes
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
print(json.dumps({"error": error, "left": left, "folders": folders}))
"""


def executed(python: Python, run: PlannedRun, scratch: Path, stops: str = "") -> Any:
    """Execute the task in another process; return its error and what it leaves: processes and temporary folders."""
    scratch.mkdir()
    script = scratch.parent / "execute.py"
    script.write_text(EXECUTE)
    environment = {"AIRFLOW_HOME": str(scratch.parent / "airflow"), "TMPDIR": str(scratch)}
    completed = python(script, run.pipeline.file, run.id, stops, **environment)
    assert completed.returncode == 0, completed.stderr.decode()
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.fixture
def run(tmp_path: Path) -> PlannedRun:
    return plan_run(steady(tmp_path / "world", hours=1).define(), TEN, at(60))


def test_the_task_stages_the_rows_and_leaves_nothing_behind(python: Python, run: PlannedRun, tmp_path: Path) -> None:
    assert executed(python, run, tmp_path / "scratch") == {"error": None, "left": [], "folders": []}
    (staged,) = (tmp_path / "world" / "table").glob("slice_start=*/*.parquet")
    assert pq.read_metadata(staged).num_rows > 0


def test_a_damaged_blob_is_not_tried_again(python: Python, run: PlannedRun, tmp_path: Path) -> None:
    blob = next(path for path in sorted((tmp_path / "world" / "capture").rglob("*.avro")) if path.stat().st_size > 1000)
    rewrite(blob, blob.read_bytes()[:-40] + bytes(40))
    answer = executed(python, run, tmp_path / "scratch")
    assert answer["error"][0] == "PermanentError"
    assert (answer["left"], answer["folders"]) == ([], [])


def test_a_task_that_is_told_to_stop_ends_its_processes_and_removes_its_files(
    python: Python, run: PlannedRun, tmp_path: Path
) -> None:
    answer = executed(python, run, tmp_path / "scratch", stops="yes")
    assert answer == {"error": ["AirflowException", "the task was told to stop"], "left": [], "folders": []}
