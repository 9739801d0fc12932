"""The Spark job that a good engineer writes: fastavro, from_json, and a window function for the watermark.

`python -m benchmarks.plain_spark ARCHIVE OUT` runs it in a process of its own.
"""

import io
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import fastavro
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

LATE, EARLY = 600, 300


def events_per_second(spark: SparkSession, folder: Path, out: Path, events: int) -> float:
    """Return the rate from the folder of blobs to the Parquet files of the aggregates that Recapture computes too."""
    begin = time.perf_counter()
    aggregates(spark, folder).write.mode("overwrite").parquet(str(out))
    return events / (time.perf_counter() - begin)


def aggregates(spark: SparkSession, folder: Path) -> DataFrame:
    """Return windowEnd, deviceId, events and avgTemperature of five-minute windows."""
    paths = [(str(path), path.parts[-7], path.stat().st_mtime) for path in sorted(folder.rglob("*.avro"))]
    blobs = spark.sparkContext.parallelize(paths, 16)
    columns = "partition string, arrival double, seq long, body string"
    raw = spark.createDataFrame(blobs.mapPartitions(_records), columns)
    body = f.from_json("body", "deviceId string, eventTime string, temperature double")
    event = raw.select("partition", "arrival", "seq", body.alias("e")).select(
        "partition", "arrival", "seq", "e.*", f.col("e.eventTime").cast("timestamp").cast("double").alias("t")
    )
    in_time = event.where(f.col("t") - f.col("arrival") <= EARLY).withColumn(
        "t", f.greatest("t", f.col("arrival") - LATE)
    )
    so_far = (
        Window.partitionBy("partition", "deviceId")
        .orderBy("arrival", "seq")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    ordered = in_time.withColumn("t", f.max("t").over(so_far))
    end = (f.ceil(f.col("t") / 300) * 300).cast("timestamp").alias("windowEnd")
    events, mean = f.count("*").alias("events"), f.avg("temperature").alias("avgTemperature")
    return ordered.groupBy(end, "deviceId").agg(events, mean)


def _records(blobs: Iterable[tuple[str, str, float]]) -> Iterator[tuple[str, float, int, str]]:
    for path, partition, arrival in blobs:
        for record in fastavro.reader(io.BytesIO(Path(path).read_bytes())):
            assert isinstance(record, dict)
            yield partition, float(arrival), record["SequenceNumber"], record["Body"].decode()


if __name__ == "__main__":
    job = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    aggregates(job, Path(sys.argv[1])).write.mode("overwrite").parquet(sys.argv[2])
    job.stop()
