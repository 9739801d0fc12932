"""Several inputs in a run: each has an archive, a format, partitions and counts of its own."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recapture.definition.pipeline import Pipeline
from recapture.quality.metrics import combine
from recapture.run.plan import changed_since, preview
from recapture.run.progress import completeness
from recapture.run_files.computed import METRICS, STAGED
from recapture.time_model.metrics import VERDICTS
from tests.blobs import touch, write_blob
from tests.commands import FIRST_HOUR, Command
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, backfill, files, published, staged, steady

ALARMS = {"alias": "alarms", "format": "Json", "container": "files", "path": "alarms/{date}/{time}/{partition}"}
UNION = """\
SELECT System.Timestamp() AS at, deviceId, CAST(temperature AS float) AS x
INTO aggregates FROM telemetry TIMESTAMP BY eventTime
UNION SELECT System.Timestamp() AS at, deviceId, CAST(level AS float) AS x FROM alarms TIMESTAMP BY raised"""
JOIN = """\
SELECT t.deviceId, t.temperature, a.level INTO aggregates FROM alarms a TIMESTAMP BY raised
JOIN telemetry t TIMESTAMP BY eventTime ON t.deviceId = a.deviceId AND DATEDIFF(minute, t, a) BETWEEN 0 AND 5"""
COUNTS = """\
SELECT System.Timestamp() AS at, COUNT(*) AS n INTO readings FROM telemetry TIMESTAMP BY eventTime
GROUP BY TumblingWindow(minute, 5)

SELECT System.Timestamp() AS at, COUNT(*) AS n INTO alarms FROM alarms TIMESTAMP BY raised
GROUP BY TumblingWindow(minute, 10)"""


def put_alarms(world: World, partition: str, arrival: datetime, *lines: bytes) -> Path:
    """Write a blob of JSON lines, last modified at `arrival`, in the folder of the hour before."""
    opened = arrival - timedelta(minutes=1)
    path = world.home / f"files/alarms/{opened:%Y/%m/%d/%H}/{partition}/{arrival:%M%S}.json"
    return write_blob(path, b"\n".join(lines), arrival)


def alarm(device: str, time: datetime, level: float = 1.5) -> bytes:
    return json.dumps({"deviceId": device, "raised": f"{time:%FT%TZ}", "level": level}).encode()


def defined(world: World, query: str = UNION, reverse: bool = False, **settings: Any) -> Pipeline:
    inputs = [TELEMETRY, ALARMS]
    return world.define(query, inputs=inputs[::-1] if reverse else inputs, **settings)


def two_inputs(home: Path) -> World:
    """Return two hours of two partitions of telemetry, and a few alarms, some of them late or not JSON."""
    world = steady(home)
    for minutes in range(-60, 150, 10):
        put_alarms(world, "0", at(minutes), alarm(f"device-0-{minutes % 3}", at(minutes - 2)))
    put_alarms(world, "3", at(30.5), alarm("a", at(29)), b"not JSON", alarm("b", at(-30)))
    put_alarms(world, "3", at(150))
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return two_inputs(tmp_path)


@pytest.fixture(scope="module")
def united(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same events, which no test changes."""
    return two_inputs(tmp_path_factory.mktemp("united"))


@pytest.fixture(scope="module")
def report(spark: SparkSession, united: World) -> dict[str, Any]:
    """Publish the events of both inputs, and return the report."""
    return backfill(spark, defined(united), TEN, at(120))


@pytest.mark.usefixtures("report")
def test_the_rows_of_all_inputs_are_published(united: World) -> None:
    rows = published(united.table)
    assert sum(row["x"] == 1.5 for row in rows) == 12 + 2, "the late alarm is adjusted"
    assert sum(row["x"] != 1.5 for row in rows) == 2 * 24 * 6


def test_every_event_is_counted_once_under_its_input(united: World, report: dict[str, Any]) -> None:
    telemetry, alarms = sorted(report["inputs"], key=lambda input_: str(input_["alias"]), reverse=True)
    assert (telemetry["alias"], list(telemetry["partitions"])) == ("telemetry", ["0", "1"])
    assert (alarms["alias"], list(alarms["partitions"])) == ("alarms", ["0", "3"])
    assert (telemetry["metrics"]["InputEvents"], alarms["metrics"]["InputEvents"]) == (2 * 24 * 6, 12 + 3)
    assert (alarms["metrics"]["malformed"], telemetry["metrics"]["malformed"]) == (1, 0)
    for input_ in report["inputs"]:
        for counts in (input_["metrics"], *input_["partitions"].values()):
            assert counts["InputEvents"] == counts["DuplicateEvents"] + sum(counts[name] for name in VERDICTS)
    assert combine([telemetry["metrics"], alarms["metrics"]]).items() <= report["metrics"].items()
    assert "partitions" not in report, "which partition 0 would it be?"
    rows = published(united.home / "table_metrics")
    arrived = {
        (alias, partition): sum(
            row["value"]
            for row in rows
            if (row["input"], row["partition"], row["metric"]) == (alias, partition, "InputEvents")
        )
        for alias, partition in (("telemetry", "0"), ("telemetry", "1"), ("alarms", "0"), ("alarms", "3"))
    }
    assert list(arrived.values()) == [144, 144, 12, 3]
    quarantined = published(united.home / "table_quarantine")
    assert [(row["input"], row["partition"]) for row in quarantined] == [("alarms", "3")]


def test_one_archive_may_be_two_inputs_that_are_ordered_in_two_ways(spark: SparkSession, tmp_path: Path) -> None:
    """A query reads late events at their own times under one alias, and at their arrival under another."""
    world = steady(tmp_path)
    query = """
        SELECT System.Timestamp() AS at INTO timed FROM telemetry TIMESTAMP BY eventTime
        SELECT System.Timestamp() AS at INTO arrived FROM archived"""
    outputs = [{"alias": name, "table": f"tables/{name}"} for name in ("timed", "arrived")]
    pipeline = world.define(query, inputs=[TELEMETRY, TELEMETRY | {"alias": "archived"}], outputs=outputs)
    report = backfill(spark, pipeline, TEN, at(60))
    assert [input_["metrics"]["InputEvents"] for input_ in report["inputs"]] == [144, 144]
    timed, arrived = (published(world.home / "tables" / name) for name in ("timed", "arrived"))
    assert len({row["at"] for row in timed}) == 144, "every event has a time of its own"
    assert len({row["at"] for row in arrived}) == 24, "the events of a blob arrive at once"


def test_the_order_of_the_inputs_in_the_file_changes_nothing(
    spark: SparkSession, united: World, report: dict[str, Any]
) -> None:
    """Nor does it matter whether the hours are computed at once or one by one."""
    before = [files(united.home / name) for name in ("table", "table_metrics")]
    assert backfill(spark, defined(united, reverse=True), TEN, at(120))["run"] == report["run"]
    apart = defined(united, reverse=True, table="apart")
    for hour in (1, 0):
        backfill(spark, apart, TEN + hour * HOUR, TEN + (hour + 1) * HOUR)
    assert [files(united.home / name) for name in ("apart", "apart_metrics")] == before


@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_events_are_counted_even_if_the_other_side_of_a_join_has_none(
    spark: SparkSession, world: World, adaptive: str
) -> None:
    """Spark must not skip an input because it knows that the JOIN is empty."""
    for path in (world.home / "files").rglob("*.json"):
        path.unlink()
    put_alarms(world, "0", at(-600))
    put_alarms(world, "0", at(200))
    before = spark.conf.get("spark.sql.adaptive.enabled") or "false"
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        run = staged(spark, defined(world, JOIN), TEN, at(120))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)
    assert sum(row.count("InputEvents") for row in run.files.read(METRICS)) == 2 * 24 * 6
    assert sum(file.rows for file in run.files.read(STAGED)) == 0


def test_the_plan_shows_each_input(world: World, command: Command) -> None:
    defined(world)
    arguments = ["plan", str(world.file), *FIRST_HOUR]
    plan = command.json(*arguments)
    assert [(input_["alias"], input_["partitions"]) for input_ in plan["inputs"]] == [
        ("alarms", ["0", "3"]),
        ("telemetry", ["0", "1"]),
    ]
    (slice_,) = plan["slices"]
    assert plan["blobs"] == slice_["blobs"] == sum(input_["blobs"] for input_ in slice_["inputs"])
    assert not plan.keys() & {"partitions", "capture", "silent_partitions", "far_blobs"}
    assert "incomplete" not in slice_
    assert "partition 3 of input alarms: written up to " in command.text(*arguments)


def test_a_slice_waits_for_the_partitions_of_every_input(world: World) -> None:
    put_alarms(world, "0", at(150))
    pipeline = defined(world)
    state = completeness(pipeline, TEN, at(120), at(131))
    assert state.waiting == ()
    assert sorted(str(partition).split(":")[0] for partition in state.partitions) == [
        "partition 0 of input alarms",
        "partition 0 of input telemetry",
        "partition 1 of input telemetry",
        "partition 3 of input alarms",
    ]
    for path in (world.home / "files").rglob("3/*.json"):
        touch(path, at(40))
    (reason,) = completeness(pipeline, TEN, at(120), at(131)).waiting
    assert reason.startswith("partition 3 of input alarms: ")


def test_a_changed_blob_of_any_input_is_named_with_its_input(world: World, command: Command) -> None:
    manifest = preview(defined(world), TEN, at(60))
    changed = next((world.home / "files").rglob("alarms/2024/03/01/10/3/*.json"))
    changed.unlink()
    (change,) = changed_since(defined(world, reverse=True), manifest)
    assert str(change) == f"{changed.relative_to(world.home / 'files')} of input alarms was deleted"
    path = world.home / "manifest.json"
    path.write_bytes(manifest.to_json())
    _, err = command.run("backfill", world.file, "--manifest", path, code=1)
    assert f"1 of the {manifest.blob_count} blobs of run {manifest.run} have changed" in err
