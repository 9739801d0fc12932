"""The files of a run are the same bytes, whether its tasks aggregate events or Spark does, with Spark or without it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recapture.definition import pipeline
from recapture.definition.pipeline import Pipeline
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.run.plan import plan_run
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit, publish
from tests.worlds import TEN, World, at, backfill, files, steady

Files = list[dict[str, Any]]
"""The published files of each output."""

QUERY = """
WITH warm AS (
    SELECT deviceId AS device, temperature * 2 AS twice FROM telemetry TIMESTAMP BY eventTime OVER deviceId
    WHERE temperature > 20.1 AND deviceId <> 'device-0-2'
)
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS mean, MAX(temperature) AS most
INTO tumbling
FROM telemetry TIMESTAMP BY eventTime OVER deviceId GROUP BY deviceId, TumblingWindow(minute, 5)

SELECT System.Timestamp() AS windowEnd, SUM(temperature) AS total, MIN(PartitionId) AS least
INTO hopping
FROM telemetry TIMESTAMP BY eventTime OVER deviceId
GROUP BY HoppingWindow(minute, 50, 7) HAVING COUNT(*) > 1

SELECT System.Timestamp() AS windowEnd, deviceId, STDEV(temperature) AS s, STDEVP(temperature) AS p,
    VAR(CASE WHEN temperature > 20.3 THEN temperature ELSE NULL END) AS v, VARP(temperature * temperature) AS w
INTO spreads
FROM telemetry TIMESTAMP BY eventTime OVER deviceId GROUP BY deviceId, HoppingWindow(second, 210, 70)

SELECT System.Timestamp() AS windowEnd, device, System.Window().Id AS w, AVG(twice) AS twice
INTO several FROM warm
GROUP BY device, Windows(Window('a', TumblingWindow(minute, 3)), Window('b', TumblingWindow(hour, 1)))
"""
OUTPUTS = ("tumbling", "hopping", "spreads", "several")
READ_IN_SPARK = """
WITH means AS (
    SELECT deviceId, AVG(temperature) AS mean, COUNT(*) AS events
    FROM telemetry TIMESTAMP BY eventTime OVER deviceId GROUP BY deviceId, HoppingWindow(minute, 10, 5)
)
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) * 2 AS twice, System.Window().Id AS w
INTO computed
FROM telemetry TIMESTAMP BY eventTime OVER deviceId
GROUP BY deviceId, Windows(Window('a', TumblingWindow(minute, 5)), Window('b', TumblingWindow(hour, 1)))

SELECT System.Timestamp() AS windowEnd, MAX(mean) AS most, SUM(events) AS events
INTO peaks FROM means GROUP BY TumblingWindow(minute, 15)

SELECT deviceId, mean INTO direct FROM means WHERE events > 1
"""
"""Two outputs for which Spark reads groups of panes, and one for which it does not."""


def staged_by_spark(spark: SparkSession, world: World, folder: str, query: str, outputs: Sequence[str]) -> Files:
    """Backfill two hours with Spark, and return the published files of each output."""
    backfill(spark, define(world, folder, query, outputs), TEN, at(120))
    return [files(world.home / folder / alias) for alias in outputs]


def without_tasks(*arguments: Any, **keywords: Any) -> CompiledQuery:
    """Compile a query whose events the tasks do not aggregate."""
    query = compile_query(*arguments, **keywords | {"in_tasks": False})
    assert [read.aggregations for read in query.inputs] == [()]
    return query


def define(world: World, folder: str, query: str, outputs: Sequence[str]) -> Pipeline:
    return world.define(query, outputs=[{"alias": alias, "table": f"{folder}/{alias}"} for alias in outputs])


def test_all_ways_publish_the_same_bytes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = steady(tmp_path, hours=2)
    in_tasks = staged_by_spark(spark, world, "tasks", QUERY, OUTPUTS)
    query = pipeline.load(world.file).query
    (read,) = query.inputs
    assert len(read.aggregations) == 5
    assert all(output.selects for output in query.outputs)
    assert {} not in in_tasks
    with workers(2) as processes:
        run = plan_run(define(world, "processes", QUERY, OUTPUTS), TEN, at(120))
        compute(processes, run, tmp_path)
        audit(run)
        publish(run)
    assert [files(tmp_path / "processes" / alias) for alias in OUTPUTS] == in_tasks
    monkeypatch.setattr(pipeline, "compile_query", without_tasks)
    assert staged_by_spark(spark, world, "spark", QUERY, OUTPUTS) == in_tasks


def test_groups_that_spark_reads_publish_the_same_bytes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, outputs = steady(tmp_path, hours=2), ("computed", "peaks", "direct")
    in_tasks = staged_by_spark(spark, world, "tasks", READ_IN_SPARK, outputs)
    query = pipeline.load(world.file).query
    assert [bool(output.selects) for output in query.outputs] == [False, False, True]
    assert max(view.groups.look_back for view in query.groups) > 0
    assert {} not in in_tasks
    monkeypatch.setattr(pipeline, "compile_query", without_tasks)
    assert staged_by_spark(spark, world, "spark", READ_IN_SPARK, outputs) == in_tasks


IN_TASKS = "input telemetry: tasks aggregate its events"
WITHOUT_SPARK = "recapture backfill computes the rows without Spark, unless --master names a cluster"


@pytest.mark.parametrize(
    ("select", "said", "aggregated"),
    [
        ("COUNT(*) AS n", [IN_TASKS, WITHOUT_SPARK], True),
        ("STDEV(temperature) AS n", [IN_TASKS, WITHOUT_SPARK], True),
        ("COUNT(*) * 2 AS n", [IN_TASKS, WITHOUT_SPARK], True),
        (
            "PERCENTILE_CONT(0.5) OVER (ORDER BY temperature) AS n",
            [
                "input telemetry: tasks order its events, but do not aggregate them: "
                "PERCENTILE_CONT is not computed in tasks",
                WITHOUT_SPARK,
            ],
            False,
        ),
    ],
    ids=["a count", "a spread", "a computed column", "events"],
)
def test_the_plan_says_who_computes_the_rows(
    tmp_path: Path,
    command: Command,
    select: str,
    said: list[str],
    aggregated: bool,
) -> None:
    world = steady(tmp_path, hours=1, partitions=1)
    world.define(f"SELECT {select} INTO aggregates FROM telemetry GROUP BY TumblingWindow(minute, 5)")
    arguments = ("plan", world.file, *FIRST_HOUR)
    lines = command.text(*arguments).splitlines()
    assert lines[lines.index(said[0]) :][: len(said)] == said
    plan = command.json(*arguments)
    (input_,) = plan["inputs"]
    assert input_["aggregated_in_tasks"] is aggregated
    assert input_["not_aggregated_because"] == (None if aggregated else "PERCENTILE_CONT is not computed in tasks")
