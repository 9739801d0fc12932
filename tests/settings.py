"""Other settings of the Spark session that the tests share."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark interprets a query instead of compiling it to Java, which takes longer than a few rows."""
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
