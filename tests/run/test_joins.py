"""JOIN in a run: from blobs of several partitions to the published rows, hour by hour and at once."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.worlds import HOUR, TEN, World, at, backfill, body, lenient, published

QUERY = (
    "CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime, temperature float);\n"
    "SELECT System.Timestamp() AS time, a.deviceId, a.temperature AS before, b.temperature AS after INTO aggregates\n"
    "FROM telemetry a TIMESTAMP BY eventTime LEFT JOIN telemetry b TIMESTAMP BY eventTime\n"
    "ON a.deviceId = b.deviceId AND DATEDIFF(minute, a, b) BETWEEN 1 AND 15 AND b.temperature > a.temperature"
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hours in which a device sends through two partitions, around eleven o'clock."""
    world = World(tmp_path)
    for partition, minutes, temperature in (("0", 50, 20.0), ("1", 58, 21.0), ("0", 64, 22.5), ("1", 66, 20.5)):
        world.put(partition, at(minutes + 1), [body("a", at(minutes), temperature)], first=int(minutes))
    for partition in ("0", "1"):
        world.put(partition, at(140), [], first=200)
    return world


def rows(world: World) -> list[tuple[datetime, float, float | None]]:
    return sorted((row["time"], row["before"], row["after"]) for row in published(world.table))


def test_a_joined_row_is_published_once_in_the_slice_of_its_time(spark: SparkSession, world: World) -> None:
    """The hour after eleven reads the events before eleven with which its own may match."""
    quality: dict[str, Any] = {"quality": lenient(world)}
    for start in (TEN + HOUR, TEN):
        backfill(spark, world.define(QUERY, **quality), start, start + HOUR)
    hour_by_hour = rows(world)
    assert hour_by_hour == [
        (at(58), 20.0, 21.0),
        (at(64), 20.0, 22.5),
        (at(64), 21.0, 22.5),
        (at(79), 22.5, None),
        (at(81), 20.5, None),
    ]
    backfill(spark, world.define(QUERY, "again", **quality), TEN, TEN + 2 * HOUR)
    again = [(row["time"], row["before"], row["after"]) for row in published(world.home / "again")]
    assert sorted(again) == hour_by_hour
