"""Whole runs, from Capture blobs to published rows: against the oracle, hour by hour, and on real files."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from recapture.run.status import status
from tests import oracle
from tests.blobs import write_blob
from tests.draws import slow
from tests.paths import CAPTURE_FILES
from tests.run.made_worlds import Made, by_identity, expected_counts, expected_rows, made, put
from tests.worlds import TEN, World, at, backfill, files, lenient, published, quarantine, run_file, steady


@slow(5)
@given(made=made().filter(lambda made: bool(made.events)))
def test_the_published_rows_and_the_counts_of_any_world_are_those_of_the_oracle(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, made: Made
) -> None:
    home = tmp_path_factory.mktemp("made")
    world = put(home, made)
    pipeline = world.define(made.query, quality=lenient(world), **made.job)
    report = backfill(spark, pipeline, TEN, at(60 * made.hours))
    assert by_identity(published(world.table)) == by_identity(expected_rows(made))
    metrics = run_file(world.table, report["run"], "metrics.json")
    assert all(row["complete"] for row in metrics)
    counted = {(row["slice_start"], row["partition"]): row for row in metrics}
    expected = expected_counts(made)
    assert {key: {name: row[name] for name in expected[key]} for key, row in counted.items()} == expected
    assert report["metrics"]["InputEvents"] == sum(report["metrics"][verdict] for verdict in oracle.VERDICTS)
    unusable = report["metrics"]["malformed"] + report["metrics"]["invalid_timestamp"]
    assert len(quarantine(world.table, report["run"])) == unusable
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three hours that are read together or one by one."""
    return steady(tmp_path_factory.mktemp("hours"), hours=3)


HOPPING = (
    "SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS mean, SUM(temperature) "
    "AS total INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, HoppingWindow(minute, 90, 20)"
)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, hours: World) -> Path:
    """The table of the three hours as one range."""
    backfill(spark, hours.define(HOPPING, table="whole"), TEN, at(180))
    return hours.home / "whole"


@pytest.mark.parametrize(
    "ranges",
    [((2, 3), (0, 1), (1, 2)), ((0, 1), (0, 1), (1, 3), (0, 3), (2, 3))],
    ids=["one by one, out of order", "twice, and overlapping"],
)
def test_hours_run_in_any_way_publish_the_rows_and_the_bytes_of_one_range(
    spark: SparkSession, hours: World, whole: Path, ranges: tuple[tuple[int, int], ...]
) -> None:
    name = f"parts{len(ranges)}"
    parts = hours.define(HOPPING, table=name)
    for first, last in ranges:
        backfill(spark, parts, at(60 * first), at(60 * last))
    rows = published(whole)
    assert {row["slice_start"] for row in rows} == {at(0), at(60), at(120)}
    assert published(hours.home / name) == rows
    assert files(hours.home / name) == files(whole)


def test_another_query_for_the_same_slices_replaces_their_rows(spark: SparkSession, hours: World) -> None:
    query = "SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events INTO aggregates FROM telemetry GROUP BY "
    backfill(spark, hours.define(query + "TumblingWindow(minute, 30)", table="two queries"), TEN, at(60))
    assert len(published(hours.home / "two queries")) == 2
    backfill(spark, hours.define(query + "TumblingWindow(minute, 10)", table="two queries"), TEN, at(60))
    assert len(published(hours.home / "two queries")) == 6


def test_a_condition_that_no_event_meets_publishes_slices_without_rows(spark: SparkSession, hours: World) -> None:
    query = (
        "SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events INTO aggregates FROM telemetry TIMESTAMP BY "
        "eventTime WHERE 1 = 0 GROUP BY TumblingWindow(minute, 30)"
    )
    report = backfill(spark, hours.define(query, table="nothing", quality=lenient(hours)), TEN, at(60))
    assert published(hours.home / "nothing") == []
    assert report["metrics"]["InputEvents"] == 2 * 12 * 6
    assert report["metrics"]["OutputEvents"] == 0


def test_an_hour_in_which_nothing_arrived_is_published_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put("0", at(-300))
    report = backfill(spark, world.define(), TEN, at(60))
    assert (report["changed"], report["metrics"]["InputEvents"]) == (True, 0)
    assert published(world.table) == []
    assert [slice_["slice_start"] for slice_ in status(world.define())["slices"]] == ["2024-03-01T10:00:00Z"]


def test_real_files_under_their_real_names_give_the_expected_rows(spark: SparkSession, tmp_path: Path) -> None:
    if not CAPTURE_FILES.is_dir():
        pytest.skip("shared/capture-files is not next to this repository")
    world, instant = World(tmp_path), datetime.fromisoformat
    for name, source, arrival in (
        ("contoso/telemetry/0/2016/11/16/16/42/05", "2016-no-extension-05", "2016-11-16T16:47:05Z"),
        ("contoso/telemetry/9/2022/12/09/16/50/12.avro", "p9--2022-12-09--16-50-12.avro", "2022-12-09T16:55:14Z"),
        ("contoso/telemetry/9/2022/12/09/16/55/12.avro", "empty.avro", "2022-12-09T17:00:14Z"),
    ):
        write_blob(world.capture / name, (CAPTURE_FILES / source).read_bytes(), instant(arrival))
    pipeline_2016 = world.define(
        "SELECT System.Timestamp() AS windowEnd, field1, COUNT(*) AS events INTO aggregates FROM telemetry "
        "GROUP BY field1, TumblingWindow(minute, 5)",
        table="2016",
    )
    backfill(spark, pipeline_2016, instant("2016-11-16T16:00:00Z"), instant("2016-11-16T17:00:00Z"))
    slice_start = instant("2016-11-16T16:00:00Z")
    assert published(world.home / "2016") == [
        {"windowEnd": instant("2016-11-16T16:50:00Z"), "field1": "value1", "events": 1, "slice_start": slice_start}
    ]
    pipeline_2022 = world.define(
        "SELECT System.Timestamp() AS windowEnd, value.meterName AS meter, SUM(value.quantity) AS quantity "
        "INTO aggregates FROM telemetry TIMESTAMP BY value.timestamp "
        "GROUP BY value.meterName, TumblingWindow(minute, 1)",
        table="2022",
    )
    report = backfill(spark, pipeline_2022, instant("2022-12-09T16:00:00Z"), instant("2022-12-09T17:00:00Z"))
    window = {"windowEnd": instant("2022-12-09T16:52:00Z"), "slice_start": instant("2022-12-09T16:00:00Z")}
    assert published(world.home / "2022") == [window | {"meter": "automation", "quantity": 1.0}]
    assert report["metrics"]["InputEvents"] == report["metrics"]["on_time"] == 1
