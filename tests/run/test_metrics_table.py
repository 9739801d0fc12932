"""The metrics next to a table: one row for each slice, partition and metric, the same as in the report."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from recapture.definition.pipeline import Pipeline
from recapture.execute.processes.workers import Workers
from recapture.quality.metrics import OUTPUT_METRICS, PARTITION_METRICS, combine
from recapture.run.rollback import rollback
from recapture.time_model.metrics import COUNTS, WATERMARK_DELAY
from tests.worlds import HOUR, TEN, World, at, backfill, body, files, published, steady, version

DAY = timedelta(days=1)
Values = dict[tuple[str, str | None, str], float | None]
"""Values of metrics, by slice, partition and name."""


def in_the_table(table: Path) -> Values:
    rows = published(table.with_name(f"{table.name}_metrics"))
    values = {(f"{row['slice_start']:%FT%TZ}", row["partition"], row["metric"]): row["value"] for row in rows}
    assert len(values) == len(rows), "a metric of a slice and partition has one row"
    assert {(row["partition"] is None, row["input"]) for row in rows} == {(False, "telemetry"), (True, None)}
    return values


def in_slices(slices: dict[str, dict[str, Any]]) -> Values:
    """Return what `--json` says about slices, in the layout of the table."""
    return {
        (start, partition, name): value
        for start, slice_ in slices.items()
        for partitions in [*(input_["partitions"] for input_ in slice_["inputs"]), {None: slice_}]
        for partition, metrics in partitions.items()
        for name, value in metrics.items()
        if partition is not None or name in OUTPUT_METRICS
    }


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three hours of two partitions, and of a third one that was silent until the last hour ended."""
    world = steady(tmp_path_factory.mktemp("metrics"), hours=3)
    world.put("2", at(185))
    return world


def defined(hours: World, table: str = "table") -> Pipeline:
    return hours.define(table=table, eventsOutOfOrderMaxDelayInSeconds=7)


@pytest.fixture(scope="module")
def report(spark: SparkSession, hours: World) -> dict[str, Any]:
    """Publish the three hours, computed by Spark, and return what `--json` says."""
    report: dict[str, Any] = json.loads(json.dumps(backfill(spark, defined(hours), TEN, at(180))))
    return report


def test_the_table_says_what_json_says(hours: World, report: dict[str, Any]) -> None:
    values = in_the_table(hours.table)
    assert {metric for _, partition, metric in values if partition} == set(PARTITION_METRICS)
    assert {metric for _, partition, metric in values if partition is None} == {"OutputEvents", "UnanchoredSessions"}
    assert {partition for _, partition, _ in values} == {"0", "1", "2", None}
    assert in_slices({slice_["slice_start"]: slice_ for slice_ in report["slices"]}) == values
    assert values["2024-03-01T10:00:00Z", "2", "InputEvents"] == 0
    assert values["2024-03-01T10:00:00Z", "2", WATERMARK_DELAY] is None


def test_slices_partitions_and_run_add_up(report: dict[str, Any]) -> None:
    for slice_ in report["slices"]:
        (input_,) = slice_["inputs"]
        assert combine(input_["partitions"].values()).items() <= input_.items()
        assert combine([input_]).items() <= slice_.items()
    run = {name: report["metrics"][name] for name in PARTITION_METRICS}
    assert combine(report["slices"]) == combine(report["partitions"].values()) == run
    assert run["InputEvents"] == 3 * 2 * 12 * 6
    assert all(isinstance(report["metrics"][name], int) for name in COUNTS), "counts are whole numbers"


@pytest.mark.usefixtures("report")
def test_hours_run_apart_and_again_leave_the_bytes_of_one_range(processes: Workers, hours: World) -> None:
    """The hours are run without Spark."""
    apart = defined(hours, "apart")
    for hour in (1, 0, 2):
        backfill(processes, apart, TEN + hour * HOUR, TEN + (hour + 1) * HOUR)
    metrics = hours.home / "apart_metrics"
    assert files(metrics) == files(hours.home / "table_metrics")
    before = version(metrics)
    backfill(processes, apart, TEN, at(180))
    assert version(metrics) == before


def test_a_late_blob_replaces_the_metrics_of_its_slice_and_rollback_gives_them_back(
    processes: Workers, tmp_path: Path
) -> None:
    world = World(tmp_path)
    for minutes in (12, 72, 150):
        world.put("0", at(minutes), [body("a", at(minutes - 2))], int(minutes))
    pipeline = world.define()
    backfill(processes, pipeline, TEN, at(120))
    before = in_the_table(world.table)
    world.put("0", at(20), [body("a", at(18))], 13)
    report = backfill(processes, pipeline, TEN, at(120))
    after = in_the_table(world.table)
    assert {start for (start, *_), value in after.items() ^ before.items()} == {"2024-03-01T10:00:00Z"}
    assert after["2024-03-01T10:00:00Z", "0", "InputEvents"] == 2
    assert [report["version"], report["outputs"][0]["metrics_version"]] == [2, 2]
    rollback(pipeline, TEN, at(60))
    assert in_the_table(world.table) == before


def test_one_query_gives_the_history_of_a_metric(processes: Workers, tmp_path: Path) -> None:
    """The share of late events, day by day."""
    world = World(tmp_path)
    for day, late in ((0, 1), (1, 3)):
        for number in range(4):
            time = TEN + day * DAY + timedelta(minutes=10 + number)
            sent = body("a", time - timedelta(minutes=30) if number < late else time)
            world.put("0", time + timedelta(seconds=1), [sent], 10 * day + number)
    world.put("0", TEN + 2 * DAY)
    pipeline = world.define()
    for day in (0, 1):
        backfill(processes, pipeline, TEN + day * DAY, TEN + day * DAY + HOUR)
    reader = QueryBuilder().register("metrics", DeltaTable(f"{world.table}_metrics"))
    rows = reader.execute(
        "SELECT date_trunc('day', slice_start) AS day, SUM(CASE WHEN metric = 'LateInputEvents' THEN value END) "
        "/ SUM(CASE WHEN metric = 'InputEvents' THEN value END) AS late FROM metrics GROUP BY 1 ORDER BY 1"
    ).read_all()
    assert pa.table(rows)["late"].to_pylist() == [0.25, 0.75]


@pytest.mark.parametrize(("tolerance", "delay"), [(0, 90.0), (20, 110.0)])
def test_the_watermark_delay_is_from_the_watermark_to_the_newest_arrival(
    processes: Workers, tmp_path: Path, tolerance: int, delay: float
) -> None:
    """The first event has the newest time. The last arrival is malformed, and is an arrival all the same."""
    world = World(tmp_path)
    world.put("0", at(30), [body("a", at(29.5)), body("a", at(29))])
    world.put("0", at(31), [b"no JSON"], 2)
    world.put("0", at(90))
    pipeline = world.define(table=f"table{tolerance}", eventsOutOfOrderMaxDelayInSeconds=tolerance)
    report = backfill(processes, pipeline, TEN, at(60))
    assert report["metrics"][WATERMARK_DELAY] == delay
    assert report["partitions"]["0"][WATERMARK_DELAY] == delay


def test_an_older_table_without_metrics_gets_them_from_a_run_that_changes_no_row(
    processes: Workers, world: World
) -> None:
    pipeline = world.define()
    backfill(processes, pipeline, TEN, at(60))
    world.table.with_name("table_metrics").rename(world.home / "gone")
    again = backfill(processes, pipeline, TEN, at(60))
    assert (again["changed"], again["version"]) == (False, 1)
    assert in_the_table(world.table)["2024-03-01T10:00:00Z", "0", "InputEvents"] == 1


@pytest.mark.usefixtures("report")
def test_the_slice_is_the_delta_partition(hours: World) -> None:
    table = DeltaTable(f"{hours.table}_metrics")
    assert table.metadata().partition_columns == ["slice_start"]
    assert len(files(hours.home / "table_metrics")) == 3
