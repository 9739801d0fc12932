"""Small worlds in local folders: Capture blobs, a pipeline file, and what a reader of its table sees."""

import io
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from recapture.definition.pipeline import Pipeline, load
from recapture.execute.processes import compute as processes
from recapture.execute.processes.workers import Workers
from recapture.quality.suites import Check
from recapture.run.plan import plan_run
from recapture.run_files.planned import PlannedRun
from recapture.tools.sample import SampleEvent, capture_file
from tests.blobs import write_blob
from tests.paths import ROOT
from tests.stages import audit, publish, summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
TELEMETRY: dict[str, Any] = {
    "alias": "telemetry",
    "container": "capture",
    "namespace": "contoso",
    "event_hub": "telemetry",
    "empty_blobs": False,
}
"""Input of these worlds, which have blobs for some intervals only."""
SHARED_CLASSES = ROOT / ".cache" / "classes.jsa"
"""Archive that `tests.shared_classes` writes."""
START_WITHOUT_ARCHIVE = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Xmn300m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Xlog:cds*=off"
)
QUICK_START = f"{START_WITHOUT_ARCHIVE} '-XX:SharedArchiveFile={SHARED_CLASSES}'"
"""JAVA_TOOL_OPTIONS of a JVM that starts quickly and never gets fast: it neither verifies Spark's classes nor loads
them one by one."""
COUNTS = """\
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature
INTO aggregates FROM telemetry TIMESTAMP BY eventTime OVER deviceId
GROUP BY deviceId, TumblingWindow(minute, 5)"""


def at(minutes: float) -> datetime:
    """Return the instant so many minutes after ten."""
    return TEN + timedelta(minutes=minutes)


def body(device: str | None, time: datetime | None, temperature: float | None = 20.0) -> bytes:
    """Return a body as the devices of these tests send it. A time of None is left out."""
    fields: dict[str, Any] = {"deviceId": device, "temperature": temperature}
    if time is not None:
        fields["eventTime"] = time.isoformat().replace("+00:00", "Z")
    return json.dumps(fields).encode()


def blob_name(partition: str, opened: datetime, hub: str = "telemetry") -> str:
    """Return the name that Capture gives to the blob of a capture window that opened then."""
    return f"contoso/{hub}/{partition}/{opened:%Y/%m/%d/%H/%M/%S}.avro"


def not_warmer_than(largest: float | dict[str, str], **keys: Any) -> dict[str, Any]:
    """Return the expectation that mean temperatures are at most `largest`."""
    kwargs = {"column": "avgTemperature", "max_value": largest}
    expectation = {"type": "expect_column_values_to_be_between", "description": "no room is too warm", "kwargs": kwargs}
    return expectation | keys


@dataclass(frozen=True)
class World:
    """A folder of Capture blobs, a pipeline file, and a table's folder next to them."""

    home: Path

    @property
    def capture(self) -> Path:
        return self.home / "capture"

    @property
    def table(self) -> Path:
        return self.home / "table"

    @property
    def file(self) -> Path:
        return self.home / "telemetry.yaml"

    def put(
        self,
        partition: str,
        arrival: datetime,
        bodies: Iterable[bytes | None] = (),
        first: int = 0,
        opened: datetime | None = None,
        hub: str = "telemetry",
    ) -> Path:
        """Write one blob whose bodies have the sequence numbers from `first` on; without bodies, an empty one."""
        return self.put_numbered(partition, arrival, enumerate(bodies, first), opened, hub)

    def put_numbered(
        self,
        partition: str,
        arrival: datetime,
        numbered: Iterable[tuple[int, bytes | None]],
        opened: datetime | None = None,
        hub: str = "telemetry",
    ) -> Path:
        """Write one blob of (sequence number, body), in this order, last modified at `arrival`."""
        opened = opened or arrival - timedelta(minutes=5)
        events = [SampleEvent(number, str(number * 100), opened, content) for number, content in numbered]
        return write_blob(self.capture / blob_name(partition, opened, hub), capture_file(events), arrival)

    def define(
        self,
        query: str = COUNTS,
        table: str = "table",
        quality: str | None = None,
        outputs: list[dict[str, Any]] | None = None,
        on_damaged_blob: str = "stop",
        functions: dict[str, dict[str, Any]] | None = None,
        inputs: list[dict[str, Any]] | None = None,
        parameters: dict[str, float | str] | None = None,
        **job: Any,
    ) -> Pipeline:
        """Write the pipeline file, with these settings of the job, and load it.

        `outputs` replaces `table`. In `inputs`, TELEMETRY stands for the input of this world's Capture blobs.
        """
        settings = {"eventsLateArrivalMaxDelayInSeconds": 600, **job}
        sections = {
            "name": "telemetry",
            "input": inputs or TELEMETRY | {"on_damaged_blob": on_damaged_blob},
            "job": {**settings, "query": query},
            "output": outputs or {"alias": "aggregates", "table": table},
        }
        if functions is not None:
            sections["functions"] = functions
        if quality is not None:
            sections["quality"] = {"suite": quality, "parameters": parameters or {}}
        self.home.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(sections))
        return load(self.file)

    def sections(self) -> dict[str, Any]:
        """Return the sections of the pipeline file."""
        sections: dict[str, Any] = json.loads(self.file.read_text())
        return sections

    def amend(self, **sections: Any) -> None:
        """Add sections to the pipeline file, or replace them."""
        self.file.write_text(json.dumps(self.sections() | sections))

    def write_suite(self, *expectations: dict[str, Any], name: str = "rooms", **keys: Any) -> str:
        """Write a suite next to the pipeline file, and return the name of its file."""
        file = self.home / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"name": name, "expectations": expectations, **keys}))
        return file.name


def one_event(home: Path, *, hours: int = 1) -> World:
    """Return hours with one event each, and what follows; its temperature is 20."""
    world = World(home)
    for hour in range(hours):
        world.put("0", at(60 * hour + 12), [body("a", at(60 * hour + 10))], hour)
    world.put("0", at(60 * hours + 30))
    return world


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in a folder, by path."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lenient(world: World) -> str:
    """Write a suite that lets slices pass whatever happened to their events, and return its name."""
    expectation = {"type": "expect_column_to_exist", "severity": "info", "kwargs": {"column": "slice_start"}}
    return world.write_suite(expectation, name="lenient", severities=dict.fromkeys(get_args(Check), "info"))


def steady(home: Path, hours: int = 2, partitions: int = 2) -> World:
    """Return a world in which every partition gets a blob every five minutes; its devices are a little late.

    It lasts from an hour before ten to half an hour after the last of `hours`. The sum of its temperatures depends on
    the order in which they are added.
    """
    world = World(home)
    for partition in range(partitions):
        for number in range(12 * (hours + 1) + 6):
            arrival = at(-60 + 5 * number + partition / 60)
            bodies = [
                body(f"device-{partition}-{n % 3}", arrival - timedelta(seconds=30 * n), 20 + 0.1 * n + 1e-9 * number)
                for n in reversed(range(6))
            ]
            world.put(str(partition), arrival, bodies, 6 * number)
    return world


def backfill(engine: "SparkSession | Workers", pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Run every stage, the computation with Spark or in worker processes, and return the report."""
    run = staged(engine, pipeline, start, end)
    audit(run)
    publish(run)
    return summary(run)


def staged(engine: "SparkSession | Workers", pipeline: Pipeline, start: datetime, end: datetime) -> PlannedRun:
    """Plan, order and aggregate: the stages before the audit."""
    run = plan_run(pipeline, start, end)
    if isinstance(engine, Workers):
        with tempfile.TemporaryDirectory() as scratch:
            processes.compute(engine, run, Path(scratch))
    else:
        from recapture.execute.spark.compute import compute

        compute(engine, run)
    return run


def published(table: Path, order: str = "slice_start, 1, 2") -> list[dict[str, Any]]:
    """Return the rows that a reader of the table sees; none if there is no table yet."""
    if version(table) is None:
        return []
    reader = QueryBuilder().register("published", DeltaTable(str(table)))
    batches = reader.execute(f"SELECT * FROM published ORDER BY {order}").read_all()
    rows: list[dict[str, Any]] = pa.table(batches).to_pylist()
    return rows


def files(table: Path) -> dict[str, bytes]:
    """Return the content of the table's files by the folder of their slice. Each slice has exactly one."""
    paths = [Path(unquote(uri)) for uri in DeltaTable(str(table)).file_uris()]
    contents = {path.parent.name: path.read_bytes() for path in paths}
    assert len(contents) == len(paths), "a slice has one file"
    return contents


def version(table: Path) -> int | None:
    """Return the table's version from its log; None if there is no table."""
    log = sorted((table / "_delta_log").glob("*.json"))
    return int(log[-1].stem) if log else None


def run_file(table: Path, run_id: str, name: str) -> Any:
    """Return the content of a run file."""
    document = json.loads((table / "_recapture" / run_id / name).read_bytes())
    return document if name == "manifest.json" else document["content"]


def quarantine(table: Path, run_id: str) -> list[dict[str, Any]]:
    """Return the quarantined events of a run, over all slices and partitions."""
    paths = sorted((table / "_recapture" / run_id / "quarantine").glob("*/*/*.parquet"))
    return [row for path in paths for row in pq.read_table(io.BytesIO(path.read_bytes())).to_pylist()]
