"""Whatever a cluster's defaults say, the rows are the same."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from recapture.execute.spark import daemon
from recapture.execute.spark.session import CLUSTERS_OWN
from recapture.run.plan import plan_run
from tests.paths import ROOT
from tests.stages import audit, publish
from tests.worlds import QUICK_START, TEN, at, backfill, files, steady

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
    assert {"spark.sql.ansi.enabled", "spark.sql.execution.arrow.useLargeVarTypes"} < hostile.keys()
    cluster = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3", **hostile}
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


def test_only_workers_on_this_machine_start_with_what_they_need(spark: SparkSession) -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import sys

        for batch in batches:
            name = "recapture.execute.spark.worker"
            yield pa.RecordBatch.from_pydict(
                {"loaded": [name in sys.modules] * len(batch), "server": [os.getppid()] * len(batch)}
            )

    assert daemon.settings("spark://spark:7077") == daemon.settings("yarn") == {}
    (row,) = spark.range(1).mapInArrow(loaded, "loaded boolean, server long").collect()
    assert row.loaded
    assert "recapture.execute.spark.daemon" in psutil.Process(row.server).cmdline()
