"""The DAG on a real scheduler, on Azurite: Airflow's own backfill, hour by hour."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from embedded.airflow import Airflow
from embedded.main import PIPELINE, START, sample_storage
from spark_jobs import publish, stages
from spark_jobs.pipeline import load

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


def test_a_native_backfill_publishes_one_slice_a_run(storage_environment: dict[str, str], tmp_path: Path) -> None:
    second = START + timedelta(hours=1)
    with Airflow(storage_environment, schedule=False, home=tmp_path) as airflow:
        airflow.unpause(PIPELINE)
        runs = airflow.backfill(PIPELINE, START.isoformat(), second.isoformat())
        assert len(runs) == 2
        for run in runs:
            airflow.wait(PIPELINE, run)
        reports = [airflow.result(PIPELINE, run, "report") for run in runs]

    assert [each["slice_start"] for report in reports for each in report["slices"]] == [
        "2026-03-01T06:00:00Z",
        "2026-03-01T07:00:00Z",
    ]
    assert {report["quality"]["verdict"] for report in reports} == {"passed"}

    pipeline = load(DEFINITION)
    held = publish.current(pipeline.outputs[0].table)
    assert list(held) == ["2026-03-01T06:00:00Z", "2026-03-01T07:00:00Z"]
    assert all(holding.rows > 0 for holding, _ in held.values())
    planned = stages.look(pipeline, START, START + timedelta(hours=2))
    assert [each.digest for each in planned.slices] == [holding.digest for holding, _ in held.values()], (
        "a slice that Airflow computed alone is the slice that a range would compute"
    )
