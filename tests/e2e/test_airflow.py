"""The DAG on a real scheduler with Azurite: Airflow's own backfill, hour by hour, with credentials in a connection."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from embedded.airflow import Airflow
from embedded.azurite import KEY
from embedded.main import PIPELINE, START, sample_storage
from recapture.definition.pipeline import load
from recapture.run.plan import preview
from recapture.run.status import status
from recapture.table.delta import OpenTable, Table
from recapture.table.publications import SCHEMA
from tests.formats.test_published import archive, defined
from tests.leaks import Watch, spellings
from tests.paths import ROOT
from tests.worlds import HOUR, QUICK_START, TEN

DEFINITION = ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml"


@pytest.fixture
def storage_environment() -> Iterator[dict[str, str]]:
    """Yield the environment of a sample world in Azurite, and restore the environment afterwards."""
    before = dict(os.environ)
    try:
        with sample_storage() as (_, env):
            yield env
    finally:
        os.environ.clear()
        os.environ.update(before)


def csv_pipeline(home: Path) -> Path:
    """Write an archive of CSV blobs, and a pipeline file for it in the DAG folder; return the file."""
    archive(home, "CSV")
    defined(home, "CSV")
    written = json.loads((home / "telemetry.yaml").read_text())
    written["name"] = "csv"
    written["input"]["container"], written["output"]["table"] = (
        (home / name).as_uri() for name in ("archive", "table")
    )
    path = home / "dags" / "pipelines" / "csv.yaml"
    path.write_text(json.dumps(written))
    return path


def test_a_native_backfill_publishes_a_slice_of_each_pipeline(
    storage_environment: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    connection_string = storage_environment.pop("AZURE_STORAGE_CONNECTION_STRING")
    del os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    home = tmp_path_factory.mktemp("checkout")
    for folder in ("dags", "expectations"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "spark_jobs").mkdir()
    shutil.copy(ROOT / "spark_jobs" / "backfill.py", home / "spark_jobs")
    csv = csv_pipeline(home)
    storage_environment |= {"AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"), "JAVA_TOOL_OPTIONS": QUICK_START}
    with (
        Watch(spellings(KEY), tmp_path) as watch,
        Airflow(storage_environment, schedule=False, homes=tmp_path) as airflow,
    ):
        airflow.connect(
            "recapture_storage", conn_type="wasb", extra=json.dumps({"connection_string": connection_string})
        )
        airflow.unpause(PIPELINE)
        (run,) = airflow.backfill(PIPELINE, START.isoformat(), START.isoformat())
        airflow.wait(PIPELINE, run)
        report = airflow.result(PIPELINE, run, "report")
        airflow.unpause("csv")
        csv_run = airflow.trigger("csv", {"from": TEN.isoformat(), "to": (TEN + HOUR).isoformat()})
        airflow.wait("csv", csv_run)
        csv_report = airflow.result("csv", csv_run, "report")
        log = airflow.log(PIPELINE, run, {"task_id": "wait_for_capture", "try_number": 1}, lines=1000)

    assert "partition 3: written up to" in log, "the api-server reads the logs from the disk"
    assert watch.leaks == set()
    assert {str(tmp_path / "1" / name) for name in ("airflow.db", "scheduler.log")} < watch.checked
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in watch.checked)
    assert "127.0.0.1" in watch.listening
    assert watch.listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    private = [tmp_path / "1" / name for name in ("airflow.db", "airflow.cfg", "logs")]
    assert [path.stat().st_mode & 0o077 for path in private] == [0, 0, 0]
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string

    assert [slice_["slice_start"] for slice_ in report["slices"]] == ["2026-03-01T06:00:00Z"]
    assert report["quality"]["verdict"] == "passed"
    assert report["report"].endswith(f"/_recapture/{report['run']}/report.html")

    assert (csv_report["metrics"]["InputEvents"], csv_report["outputs"][0]["version"]) == (49, 1)
    assert csv_report["run"] == preview(load(csv), TEN, TEN + HOUR).run, "each of its tasks has a hash seed of its own"

    pipeline = load(DEFINITION)
    (published,) = status(pipeline)["slices"]
    assert (published["slice_start"], published["finished"]) == ("2026-03-01T06:00:00Z", True)
    assert published["rows"] > 0
    planned, _ = preview(pipeline, START, START + timedelta(hours=2)).slices
    held = OpenTable(Table(pipeline.outputs[0].publications_table, SCHEMA)).slices()
    digest = held["2026-03-01T06:00:00Z"]["digest"]
    assert planned.digest == digest, "a slice that Airflow computed alone is the slice of a range"
