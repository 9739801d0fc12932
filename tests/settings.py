"""Other settings of the Spark session that the tests share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

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
