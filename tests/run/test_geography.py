"""A run of a query with geospatial functions."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recapture.errors import RunError
from tests.worlds import TEN, World, at, backfill, body, published

QUERY = """
    SELECT deviceId, COUNT(*) AS events,
        MAX(ST_DISTANCE(CreatePoint(temperature, 0.0), CreatePoint(0.0, 0.0))) AS farthest
    INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(hour, 1)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(10), 0.0), body("a", at(11), 90.0)])
    world.put("0", at(80))
    return world


def test_distances_are_published(spark: SparkSession, world: World) -> None:
    backfill(spark, world.define(QUERY), TEN, at(60))
    [row] = published(world.table)
    assert (row["deviceId"], row["events"]) == ("a", 2)
    assert row["farthest"] == pytest.approx(10_001_965.729, abs=0.001)


def test_a_place_that_is_not_on_the_globe_stops_the_run_and_publishes_nothing(
    spark: SparkSession, world: World
) -> None:
    world.put("0", at(32), [body("a", at(30), 91.0)], first=2)
    with pytest.raises(RunError) as error:
        backfill(spark, world.define(QUERY), TEN, at(60))
    assert str(error.value) == (
        "the query failed for slice 2024-03-01T10:00:00Z, output aggregates: "
        "ST_DISTANCE: argument 1 has a longitude outside -180 to 180, or a latitude outside -90 to 90: "
        "CreatePoint(91.0, 0.0)"
    )
    assert published(world.table) == []
