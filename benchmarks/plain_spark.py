"""The peer: the job as one would write it first, with fastavro, from_json and a window function for the watermark."""

import io
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import fastavro
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

LATE, EARLY = 600, 300


def events_per_second(spark: SparkSession, folder: Path, out: Path, events: int) -> float:
    """From the folder of blobs to the Parquet of the aggregates, as `recapture` computes them."""
    begin = time.perf_counter()
    aggregates(spark, folder).write.mode("overwrite").parquet(str(out))
    return events / (time.perf_counter() - begin)


def aggregates(spark: SparkSession, folder: Path) -> DataFrame:
    """windowEnd, deviceId, events and avgTemperature of five-minute windows."""
    paths = [(str(path), path.parts[-7], path.stat().st_mtime) for path in sorted(folder.rglob("*.avro"))]
    blobs = spark.sparkContext.parallelize(paths, 16)
    raw = spark.createDataFrame(blobs.mapPartitions(_records), "partition string, arrival double, seq long, body string")
    body = F.from_json("body", "deviceId string, eventTime string, temperature double")
    event = raw.select("partition", "arrival", "seq", body.alias("e")).select(
        "partition", "arrival", "seq", "e.*", F.col("e.eventTime").cast("timestamp").cast("double").alias("t")
    )
    in_time = event.where(F.col("t") - F.col("arrival") <= EARLY).withColumn(
        "t", F.greatest("t", F.col("arrival") - LATE)
    )
    so_far = (
        Window.partitionBy("partition", "deviceId")
        .orderBy("arrival", "seq")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    ordered = in_time.withColumn("t", F.max("t").over(so_far))
    end = (F.ceil(F.col("t") / 300) * 300).cast("timestamp").alias("windowEnd")
    return ordered.groupBy(end, "deviceId").agg(F.count("*").alias("events"), F.avg("temperature").alias("avgTemperature"))


def _records(blobs: Iterable[tuple[str, str, float]]) -> Iterator[Row]:
    for path, partition, arrival in blobs:
        for record in fastavro.reader(io.BytesIO(Path(path).read_bytes())):
            yield Row(partition, float(arrival), record["SequenceNumber"], record["Body"].decode())
