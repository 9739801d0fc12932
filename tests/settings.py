"""Other settings of the Spark session that the tests share."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark interprets a query instead of compiling it to Java, which takes longer than a few rows."""
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

PINNED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("PruneFilters", "PropagateEmptyRelation")
    ),
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.execution.replaceHashWithSortAgg": "true",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(2**31 - 1),
    "spark.sql.ui.explainMode": "simple",
}
"""Settings that the rows, the memory or the time depend on. All others but CLUSTERS_OWN have Spark SQL's defaults.

- ansi: without it, an overflow wraps around and a division by zero is NULL.
- variable.substitute: it would let the environment change the query.
- excludedRules: with PruneFilters, WHERE 1 = 0 would read no event, so nothing would be counted; with the two rules
  about empty relations, the same is true of a JOIN whose other side is empty.
- fallbackThreshold: with more groups, a task would sort its rows and merge the first ones into the later ones, which
  loses the arrival order.
- replaceHashWithSortAgg: where rows are sorted by group, Spark holds one group in memory, not all groups of a task.
- explainMode: Spark describes the plan of each query for its UI. The default description of a long query takes time.
"""
CLUSTERS_OWN = (SHUFFLE_PARTITIONS, "spark.sql.adaptive.", "spark.sql.execution.pyspark.")
"""Names or prefixes of settings that a cluster may choose, apart from PINNED.

They divide the work and do not change the rows.
"""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Give a setting another value, and restore its value afterwards."""
    before = spark.conf.get(name)
    assert before is not None
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@contextmanager
def interpreting(spark: "SparkSession") -> Iterator[None]:
    """Let Spark interpret queries."""
    with ExitStack() as stack:
        for name, value in INTERPRETED.items():
            stack.enter_context(spark_setting(spark, name, value))
        yield


def pin_settings(spark: "SparkSession") -> None:
    """Give a session the defaults of Spark SQL for all settings but CLUSTERS_OWN, and then PINNED."""
    for name in spark.conf.getAll:
        if name.startswith("spark.sql.") and not name.startswith(CLUSTERS_OWN) and spark.conf.isModifiable(name):
            spark.conf.unset(name)
    for name, value in PINNED.items():
        spark.conf.set(name, value)
