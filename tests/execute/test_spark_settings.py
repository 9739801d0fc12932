"""Whatever a cluster's defaults say, the rows are the same, and the query cannot reach the environment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recapture.errors import RunError
from recapture.execute.spark.merging import MERGED_BYTES, divide
from recapture.execute.spark.session import CLUSTERS_OWN
from recapture.run.plan import plan_run
from tests.paths import ROOT
from tests.settings import SHUFFLE_PARTITIONS, spark_setting
from tests.stages import audit, publish
from tests.worlds import QUICK_START, TEN, at, backfill, files, published, steady

QUERY = """
WITH readings AS (
    SELECT CAST(deviceId AS nvarchar(max)) AS deviceId, temperature,
        CONCAT(deviceId, '\\', CAST(temperature AS nvarchar(max))) AS [a "b" \\ c],
        DATEPART(hour, System.Timestamp()) AS h, CASE WHEN deviceId LIKE 'device-_-1' THEN 'one' END AS one
    FROM telemetry TIMESTAMP BY eventTime
)
SELECT System.Timestamp() AS windowEnd, deviceId, 1 AS two, h, COUNT(*) AS events, SUM(temperature) / 3 AS third,
    STDEV(temperature) AS s, COUNT(one) AS one, AVG(temperature) AS [AVG],
    PERCENTILE_CONT(0.3) OVER (ORDER BY temperature) AS p, COLLECT() AS rows_
INTO sums FROM readings GROUP BY deviceId, h, HoppingWindow(minute, 20, 10)

SELECT System.Timestamp() AS windowEnd, [a "b" \\ c] AS label, LEN([a "b" \\ c]) AS width,
    DATEADD(day, 1, System.Timestamp()) AS tomorrow, 7 / 2 AS whole, 7 % -4 AS rest
INTO labels FROM readings WHERE temperature > 20.2 OR one IS NOT NULL
"""
HOSTILE = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.optimizer.excludedRules": "",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1",
}


def flipped(spark: SparkSession) -> Iterator[tuple[str, str]]:
    """Yield every boolean setting of Spark SQL with the opposite of its default."""
    assert spark._jvm is not None
    entries = getattr(getattr(spark._jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$").getConfigEntries()
    opposite = {"true": "false", "false": "true"}
    for entry in entries.toArray():
        name, value = entry.key(), entry.defaultValueString()
        ours = name.startswith("spark.sql.") and not name.startswith(CLUSTERS_OWN)
        if ours and value in opposite and spark.conf.isModifiable(name):
            yield name, opposite[value]


def test_a_cluster_with_opposite_defaults_publishes_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    hostile = {**dict(flipped(spark)), **HOSTILE}
    assert len(hostile) > 200
    assert {"spark.sql.ansi.enabled", "spark.sql.variable.substitute", "spark.sql.caseSensitive"} < hostile.keys()
    cluster = {"spark.master": "local[2]", "spark.ui.enabled": "false", SHUFFLE_PARTITIONS: "3", **hostile}
    (tmp_path / "conf").mkdir()
    defaults = "".join(f"{name} {value}\n" for name, value in cluster.items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    world = steady(tmp_path, hours=1, partitions=1)

    def outputs(folder: str) -> list[dict[str, str]]:
        return [{"alias": alias, "table": f"{folder}/{alias}"} for alias in ("sums", "labels")]

    backfill(spark, world.define(QUERY, outputs=outputs("calm")), TEN, at(60))
    run = plan_run(world.define(QUERY, outputs=outputs("hostile")), TEN, at(60))
    completed = subprocess.run(
        [sys.executable, str(ROOT / "spark_jobs" / "backfill.py"), str(world.file), run.id],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "JAVA_TOOL_OPTIONS": QUICK_START, "SPARK_CONF_DIR": str(tmp_path / "conf")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    audit(run)
    publish(run)
    for alias in ("sums", "labels"):
        assert files(tmp_path / "hostile" / alias) == files(tmp_path / "calm" / alias) != {}


@pytest.mark.parametrize(
    "expression",
    [
        "10 / (COUNT(*) - COUNT(*))",
        "9223372036854775807 + COUNT(*)",
        "MAX(CAST(temperature AS bigint)) * 9000000000000000000",
        "CAST(MAX(CAST(temperature AS float)) * 1e300 AS bigint)",
    ],
)
def test_an_expression_without_a_value_stops_the_run_even_if_the_cluster_has_ansi_mode_off(
    spark: SparkSession, tmp_path: Path, expression: str
) -> None:
    world = steady(tmp_path, hours=1, partitions=1)
    query = f"SELECT {expression} AS n INTO aggregates FROM telemetry GROUP BY TumblingWindow(hour, 1)"
    with (
        spark_setting(spark, "spark.sql.ansi.enabled", "false"),
        pytest.raises(RunError, match="the Spark job failed"),
    ):
        backfill(spark, world.define(query), TEN, at(60))


def test_what_looks_like_a_variable_of_spark_is_text_and_shows_nothing_of_the_environment(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICK", "x`, current_user() AS `y")
    world = steady(tmp_path, hours=1, partitions=1)
    query = """
        WITH s AS (
            SELECT CAST(deviceId AS nvarchar(max)) AS [${env:TICK}], temperature AS [${env:PATH}],
                '${env:PATH}' AS t, CAST([${system:user.dir}] AS float) AS d
            FROM telemetry TIMESTAMP BY eventTime WHERE deviceId <> '${spark.app.name}'
        )
        SELECT MAX([${env:PATH}]) AS m, COUNT([${env:TICK}]) AS n, TopOne() OVER (ORDER BY [${env:PATH}]) AS r
        INTO aggregates FROM s GROUP BY TumblingWindow(hour, 1)
    """
    backfill(spark, world.define(query), TEN, at(60))
    (row,) = published(world.table, "1")
    assert row["n"] == 12 * 6
    assert json.loads(row["r"])["t"] == "${env:PATH}"
    assert "${env:TICK}" in json.loads(row["r"])


@pytest.mark.parametrize(
    ("size", "slices", "most", "partitions", "buckets"),
    [
        (0, 1, 8, 1, 1),
        (MERGED_BYTES, 24, 8, 1, 1),
        (MERGED_BYTES + 1, 1, 8, 2, 2),
        (20 * MERGED_BYTES, 3, 8, 8, 3),
        (20 * MERGED_BYTES, 24, 200, 20, 1),
    ],
)
def test_a_partition_merges_the_panes_of_many_blobs(
    size: int, slices: int, most: int, partitions: int, buckets: int
) -> None:
    division = divide(size, slices, most)
    assert (division.partitions, division.buckets) == (partitions, buckets)
