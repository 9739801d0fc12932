"""The DAG on a real scheduler, on Azurite: Airflow's own backfill, hour by hour, its credentials in a connection."""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from embedded.airflow import Airflow
from embedded.azurite import KEY
from embedded.main import PIPELINE, START, sample_storage
from spark_jobs import publish, stages
from spark_jobs.pipeline import load
from tests.leaks import Watch, forms

DEFINITION = Path(__file__).parents[2] / "dags" / "pipelines" / f"{PIPELINE}.yaml"

pytestmark = pytest.mark.e2e


@pytest.fixture
def storage_environment() -> Iterator[dict[str, str]]:
    """The environment of a sample world in Azurite, for this test only."""
    before = dict(os.environ)
    try:
        with sample_storage() as (_, env):
            yield env
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_a_native_backfill_publishes_a_slice(storage_environment: dict[str, str], tmp_path: Path) -> None:
    connection_string = storage_environment.pop("AZURE_STORAGE_CONNECTION_STRING")
    del os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    with (
        Watch(forms(KEY), tmp_path) as watch,
        Airflow(storage_environment, schedule=False, home=tmp_path) as airflow,
    ):
        airflow.connect(
            "recapture_storage", conn_type="wasb", extra=json.dumps({"connection_string": connection_string})
        )
        airflow.unpause(PIPELINE)
        (run,) = airflow.backfill(PIPELINE, START.isoformat(), START.isoformat())
        airflow.wait(PIPELINE, run)
        report = airflow.result(PIPELINE, run, "report")

    assert watch.found == set()
    assert {str(tmp_path / name) for name in ("airflow.db", "standalone.log")} < watch.seen
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in watch.seen)
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string

    assert [each["slice_start"] for each in report["slices"]] == ["2026-03-01T06:00:00Z"]
    assert report["quality"]["verdict"] == "passed"

    pipeline = load(DEFINITION)
    ((start, (holding, _)),) = publish.current(pipeline.outputs[0].table).items()
    assert start == "2026-03-01T06:00:00Z"
    assert holding.rows > 0
    planned, _ = stages.look(pipeline, START, START + timedelta(hours=2)).slices
    assert planned.digest == holding.digest, "a slice that Airflow computed alone is the slice of a range"
