"""A pipeline of the last two hours that are complete, a consumer of its events, and what they publish."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from embedded.airflow import Airflow
from tests.paths import ROOT
from tests.worlds import HOUR, World, body

SECONDS = 300
UPDATED = "updated"
"""Name of the pipeline."""
UPDATE, DAILY = f"{UPDATED}.update", f"{UPDATED}.daily"
EXAMPLE = ROOT / "dags" / "examples" / "daily_rollup.py"


@dataclass(frozen=True)
class UpdatedWorld:
    """An archive in which each of two hours has an event of the device `steady`."""

    world: World
    first: datetime
    """Start of the first hour."""

    @property
    def slices(self) -> list[str]:
        return [f"{self.first + hours * HOUR:%Y-%m-%dT%H:%M:%SZ}" for hours in range(2)]

    def daily(self) -> dict[tuple[str, str], int]:
        """Return the number of events by day and device; nothing before there is a table."""
        folder = self.world.table.with_name("table_daily")
        if not DeltaTable.is_deltatable(str(folder)):
            return {}
        table = QueryBuilder().register("daily", DeltaTable(str(folder)))
        rows = table.execute('SELECT day, "deviceId", events FROM daily').read_all()
        return {(row["day"], row["deviceId"]): row["events"] for row in pa.table(rows).to_pylist()}

    def put_late_blob(self, device: str = "late", minutes: int = 30) -> None:
        """Write another blob of the first hour, with an event of a device."""
        late = self.first + timedelta(minutes=minutes)
        self.world.put("0", late, [body(device, late)], 7 + minutes)


def updated_world(home: Path, dags: Path) -> UpdatedWorld:
    """Write the archive, the pipeline's file, and a copy of the example of a consumer for it."""
    first = (datetime.now(UTC) - timedelta(minutes=10)).replace(minute=0, second=0, microsecond=0) - 2 * HOUR
    world = World(home)
    for number in range(2):
        arrival = first + number * HOUR + timedelta(minutes=20)
        world.put("0", arrival, [body("steady", arrival)], number)
    world.define(eventsLateArrivalMaxDelayInSeconds=0)
    capture = world.sections()["input"] | {"container": world.capture.as_uri()}
    table = {"alias": "aggregates", "table": world.table.as_uri()}
    since, until = (f"{time:%Y-%m-%dT%H:%M:%SZ}" for time in (first, first + 2 * HOUR))
    schedule = {"since": since, "until": until, "every_minutes": 60, "quiet_minutes": 0}
    world.amend(name=UPDATED, engine="processes", schedule=schedule, input=capture, output=table)
    (dags / "pipelines" / f"{UPDATED}.yaml").write_text(world.file.read_text())
    (dags / f"{UPDATED}_daily.py").write_text(consumer(world))
    return UpdatedWorld(world, first)


def consumer(world: World) -> str:
    """Return the example of a consumer with the names of this pipeline, as a user copies it."""
    text = EXAMPLE.read_text("utf-8")
    names = {
        'os.environ.get("RECAPTURE_TABLE")': repr(world.table.as_uri()),
        '"telemetry.daily"': repr(DAILY),
        'name="telemetry"': f"name={UPDATED!r}",
    }
    for name, own in names.items():
        assert text.count(name) == 1, name
        text = text.replace(name, own)
    return text


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
