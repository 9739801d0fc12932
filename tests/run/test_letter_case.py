"""Names in any letter case (docs/time-model.md, section 6), from the bodies to the published table."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recapture.execute.processes.workers import Workers
from tests.worlds import HOUR, TEN, World, at, backfill, published


@pytest.fixture
def world(tmp_path: Any) -> World:
    """An hour in which half of the devices spell their fields in one way, and half in another."""
    world = World(tmp_path)
    one = [{"DeviceId": "a", "EventTime": at(n).isoformat(), "site": {"floor": 7}, "Load": n} for n in range(1, 5)]
    another = [{"deviceID": "A", "eventTime": at(n).isoformat(), "Site": {"Floor": 8}, "load": n} for n in range(1, 4)]
    bodies = [json.dumps(body).encode() for pair in zip(one, [*another, {}], strict=True) for body in pair]
    world.put("0", at(10), bodies)
    world.put("0", at(80), [], first=8)
    return world


def rows(engine: SparkSession | Workers, world: World, query: str) -> list[dict[str, Any]]:
    backfill(engine, world.define(query), TEN, TEN + HOUR)
    return [{name: row[name] for name in row if name != "slice_start"} for row in published(world.table)]


def test_a_name_finds_the_field_whatever_the_letter_case(processes: Workers, world: World) -> None:
    query = (
        "SELECT DEVICEID, COUNT(*) AS n, SUM(load) AS Total, MAX(Site.FLOOR) AS floor "
        "INTO aggregates FROM telemetry TIMESTAMP BY eventtime OVER deviceid "
        "WHERE lOAD > 0 GROUP BY deviceId, TumblingWindow(hour, 1)"
    )
    assert sorted(rows(processes, world, query), key=lambda row: str(row["DEVICEID"])) == [
        {"DEVICEID": "A", "n": 3, "Total": 6.0, "floor": 8.0},
        {"DEVICEID": "a", "n": 4, "Total": 10.0, "floor": 7.0},
    ]


def test_a_property_of_a_record_is_found_whatever_the_letter_case(spark: SparkSession, world: World) -> None:
    query = (
        "CREATE TABLE telemetry (site record, eventTime datetime);\n"
        "WITH step AS (SELECT site AS place FROM telemetry TIMESTAMP BY eventTime) "
        "SELECT CAST(place.floor AS bigint) AS a, CAST(GetRecordPropertyValue(Place, 'FLOOR') AS bigint) AS b "
        "INTO aggregates FROM step"
    )
    assert sorted((row["a"], row["b"]) for row in rows(spark, world, query)) == [(7, 7)] * 4 + [(8, 8)] * 3


def test_an_input_column_wins_over_a_declared_field_of_its_name(processes: Workers, world: World) -> None:
    """Microsoft's page on GetMetadataPropertyValue: the system's property overwrites the payload's field.

    So an event may lack the field, but not deviceId, which one of the events lacks.
    """
    query = (
        "CREATE TABLE telemetry (eventEnqueuedUtcTime datetime, deviceId nvarchar(max));\n"
        "SELECT COUNT(*) AS n INTO aggregates FROM telemetry TIMESTAMP BY eventEnqueuedUtcTime "
        "GROUP BY TumblingWindow(hour, 1)"
    )
    assert rows(processes, world, query) == [{"n": 7}]
