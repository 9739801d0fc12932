"""A run on Spark of a query with JavaScript functions, and the errors of a query."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recapture.errors import PermanentError, RunError
from tests.worlds import TEN, World, at, backfill, body, published

QUERY = """
    SELECT udf.label(deviceId) AS device, COUNT(*) AS events, MAX(udf.fahrenheit(temperature)) AS warmest
    INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY udf.label(deviceId), TumblingWindow(hour, 1)
"""
FUNCTIONS = {
    "label": {"script": "label.js", "output_type": "nvarchar(max)", "argument_types": ["nvarchar(max)"]},
    "fahrenheit": {"script": "fahrenheit.js", "output_type": "float", "argument_types": ["float"]},
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put("0", at(12), [body("a-1", at(10), 10.0), body("a-2", at(11), 20.0)])
    world.put("1", at(22), [body("b-1", at(20), 30.0)])
    world.put("0", at(80))
    world.put("1", at(80))
    tmp_path.joinpath("label.js").write_text("function main(id) {\n  return id.split('-')[0].toUpperCase();\n}\n")
    tmp_path.joinpath("fahrenheit.js").write_text("function main(c) { return c * 9 / 5 + 32; }")
    return world


def test_the_values_of_functions_are_published(spark: SparkSession, world: World) -> None:
    backfill(spark, world.define(QUERY, functions=FUNCTIONS), TEN, at(60))
    rows = sorted((row["device"], row["events"], row["warmest"]) for row in published(world.table))
    assert rows == [("A", 2, 68.0), ("B", 1, 86.0)]


def test_an_error_of_a_script_stops_the_run_with_its_place_and_publishes_nothing(
    spark: SparkSession, world: World
) -> None:
    world.put("0", at(32), [body(None, at(30))], first=2)
    with pytest.raises(PermanentError) as error:
        backfill(spark, world.define(QUERY, functions=FUNCTIONS), TEN, at(60))
    assert str(error.value) == (
        "the query failed for slice 2024-03-01T10:00:00Z, output aggregates: "
        "udf.label: TypeError: Cannot read properties of null (reading 'split') (line 2 of its script); "
        "its arguments are (null)"
    )
    assert published(world.table) == []


def test_a_value_that_stops_the_query_is_reported_without_spark_s_words(spark: SparkSession, world: World) -> None:
    query = "SELECT 10 / (COUNT(*) - COUNT(*)) AS n INTO aggregates FROM telemetry GROUP BY TumblingWindow(hour, 1)"
    with pytest.raises(RunError) as error:
        backfill(spark, world.define(query), TEN, at(60))
    where = "slice 2024-03-01T10:00:00Z, output aggregates"
    assert str(error.value).startswith(f"the query failed for {where}: [DIVIDE_BY_ZERO] ")
    assert not isinstance(error.value, PermanentError)
    assert published(world.table) == []
