"""Updates on a real scheduler, and a consumer of their events: a late blob reaches the daily table by itself."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from embedded.airflow import Airflow
from tests.paths import ROOT
from tests.worlds import HOUR, World, body

SECONDS = 300
UPDATE, DAILY = "telemetry.update", "telemetry.daily"


@pytest.fixture
def databases() -> Iterator[Path]:
    """A folder for the database that its server can enter, which does not run as root."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def updated_world(home: Path) -> tuple[World, datetime]:
    """Write an archive with the two last hours that are complete, and the DAG folder; return the first hour."""
    first = (datetime.now(UTC) - timedelta(minutes=10)).replace(minute=0, second=0, microsecond=0) - 2 * HOUR
    world = World(home)
    for number in range(2):
        arrival = first + number * HOUR + timedelta(minutes=20)
        world.put("0", arrival, [body("steady", arrival)], number)
    world.define(eventsLateArrivalMaxDelayInSeconds=0)
    capture = world.sections()["input"] | {"container": world.capture.as_uri()}
    table = {"alias": "aggregates", "table": world.table.as_uri()}
    schedule = {"since": f"{first:%Y-%m-%dT%H:%M:%SZ}", "every_minutes": 60, "quiet_minutes": 0}
    world.amend(engine="processes", schedule=schedule, input=capture, output=table)
    shutil.copytree(ROOT / "dags", home / "dags", ignore=shutil.ignore_patterns("__pycache__", "telemetry.yaml"))
    shutil.copy(world.file, home / "dags" / "pipelines" / "telemetry.yaml")
    return world, first


def daily(world: World) -> dict[tuple[str, str], int]:
    """Return the number of events by day and device; nothing before there is a table."""
    folder = world.table.with_name("table_daily")
    if not DeltaTable.is_deltatable(str(folder)):
        return {}
    rows = (
        QueryBuilder().register("daily", DeltaTable(str(folder))).execute('SELECT day, "deviceId", events FROM daily')
    )
    return {(row["day"], row["deviceId"]): row["events"] for row in pa.table(rows.read_all()).to_pylist()}


def wait_until(is_so: Callable[[], bool], airflow: Airflow) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        airflow.keep_running()
        assert time.monotonic() < deadline, airflow.import_errors()
        time.sleep(1)


def events(airflow: Airflow) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the partition and the extra of each event of the pipeline, in order of time.

    Airflow 3.3 answers with an error as long as a DAG run that an event has created is queued: it has no start date.
    """
    found: list[Any] = []

    def has_answered() -> bool:
        try:
            answer = airflow._call("GET", f"/api/v2/assets/events?source_dag_id={UPDATE}&order_by=timestamp")
        except httpx.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return False
        found.extend(answer["asset_events"])
        return True

    wait_until(has_answered, airflow)
    return [(event["partition_key"], event["extra"]) for event in found]


def test_a_late_blob_reaches_the_daily_table(tmp_path: Path, databases: Path) -> None:
    world, first = updated_world(tmp_path / "world")
    slices = [f"{first + hours * HOUR:%Y-%m-%dT%H:%M:%SZ}" for hours in range(2)]
    environment = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(world.home / "dags"),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]),
        "RECAPTURE_TABLE": world.table.as_uri(),
    }
    with Airflow(environment, schedule=True, homes=tmp_path, databases=databases) as airflow:
        airflow.unpause(DAILY)
        airflow.unpause(UPDATE)
        wait_until(lambda: sum(daily(world).values()) == 2, airflow)
        new = dict(events(airflow))
        assert set(new) == set(slices)
        assert (new[slices[0]]["new"], new[slices[0]]["revised"]) == (slices, [])
        assert new[slices[0]]["audit"].startswith("passed")

        late = first + timedelta(minutes=30)
        world.put("0", late, [body("late", late)], 7)
        airflow.trigger(UPDATE, {})
        wait_until(lambda: daily(world).get((f"{first:%Y-%m-%d}", "late")) == 1, airflow)
        partition, revised = events(airflow)[-1]
    assert (partition, revised["new"], revised["revised"]) == (slices[0], [], [slices[0]])
    assert sum(daily(world).values()) == 3
