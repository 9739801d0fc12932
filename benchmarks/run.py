"""Compare a backfill with plain Spark and with the floor, in events per second: python -m benchmarks.run [EVENTS]

The clock runs from the planned manifest to the staged Parquet files. The first round warms up all three and does not
count. Every round checks that all three read the same events and that plain Spark computed the same rows.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from benchmarks import floor, plain_spark
from benchmarks.world import START, World
from recapture.definition.pipeline import load
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers, workers
from recapture.execute.spark.session import create_session
from recapture.run.plan import plan_run
from recapture.run.staged import staged_rows

WORLDS = Path(__file__).parents[1] / ".cache" / "benchmarks"
"""Folder of the worlds, which are made once."""
PIPELINE = """
name: benchmark
input:
  alias: telemetry
  container: {container}
  namespace: contoso
  event_hub: telemetry
  empty_blobs: false
job:
  eventsLateArrivalMaxDelayInSeconds: 600
  query: |
    SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature
    INTO aggregates
    FROM telemetry TIMESTAMP BY eventTime OVER deviceId
    GROUP BY deviceId, TumblingWindow(minute, 5)
output:
  alias: aggregates
  table: {table}
"""

Row = tuple[datetime, str, int, float]
"""windowEnd, deviceId, events and avgTemperature."""


@dataclass(frozen=True)
class Rates:
    """Events per second of the three programs in one round."""

    recapture: float
    floor: float
    plain_spark: float

    def __str__(self) -> str:
        return f"recapture {self.recapture:,.0f} events/s, floor {self.floor:,.0f}, plain Spark {self.plain_spark:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=5_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: %(default)s)")
    chosen = parser.parse_args()
    world = World(chosen.events)
    if chosen.events < world.blob_count or chosen.rounds < 1:
        parser.error(f"give at least {world.blob_count} events and 1 round")
    archive = WORLDS / f"{chosen.events}-events"
    with tempfile.TemporaryDirectory() as scratch, workers(os.cpu_count() or 1) as processes:
        spark = create_session("local[*]", "benchmark", Path(scratch))
        try:
            _, *counted = _printed(compare(spark, processes, world, archive, Path(scratch), chosen.rounds + 1))
        finally:
            spark.stop()
    to_peer = median(rates.recapture / rates.plain_spark for rates in counted)
    to_floor = median(rates.recapture / rates.floor for rates in counted)
    print(f"recapture is {to_peer:.2f} of plain Spark and {to_floor:.2f} of the floor")


def compare(
    spark: SparkSession, processes: Workers, world: World, archive: Path, scratch: Path, rounds: int
) -> Iterator[Rates]:
    """Yield the rates of each round; `archive` has the world or gets it. Raise AssertionError if the results differ."""
    world.make(archive)
    pipeline = load(pipeline_file(scratch, archive))
    spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().collect()
    for _ in range(rounds):
        run = plan_run(pipeline, START, world.end)
        begin = time.perf_counter()
        computed = compute(processes, run, scratch)
        ours = world.events / (time.perf_counter() - begin)
        lowest = floor.events_per_second(archive, pipeline.query, world.events)
        peer = plain_spark.events_per_second(spark, archive, scratch / "peer", world.events)
        our_rows = _rows(staged_rows(run.id, computed, pipeline.outputs[0]))
        require_same(our_rows, rows_of(scratch / "peer", world.end))
        yield Rates(ours, lowest, peer)


def pipeline_file(folder: Path, archive: Path) -> Path:
    """Write the pipeline file of a world to a folder, which will have the table too, and return its path."""
    path = folder / "benchmark.yaml"
    path.write_text(PIPELINE.format(container=archive.as_uri(), table=(folder / "table").as_uri()))
    return path


def rows_of(files: Path | list[str], end: datetime) -> list[Row]:
    """Return the rows that a program wrote to a file, a folder or files for the range until `end`, sorted."""
    table = ds.dataset(files, format="parquet").to_table()
    ends = table["windowEnd"].cast(pa.timestamp("us", tz="UTC"))
    table = table.set_column(table.schema.get_field_index("windowEnd"), "windowEnd", ends)
    return _rows(table.filter((pc.field("windowEnd") > START) & (pc.field("windowEnd") <= end)))


def require_same(ours: list[Row], peers: list[Row]) -> None:
    """Raise AssertionError at the first row that differs. Means may differ in their last digits."""
    assert len(ours) == len(peers) > 0, f"recapture has {len(ours)} rows, plain Spark {len(peers)}"
    for our, peer in zip(ours, peers, strict=True):
        same = our[:3] == peer[:3] and math.isclose(our[3], peer[3], rel_tol=1e-9)
        assert same, f"recapture has {our}, plain Spark {peer}"


def _rows(table: pa.Table) -> list[Row]:
    names = ("windowEnd", "deviceId", "events", "avgTemperature")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


def _printed(rounds: Iterator[Rates]) -> Iterator[Rates]:
    for number, rates in enumerate(rounds):
        print(f"round {number}: {rates}" if number else f"warm-up: {rates}", flush=True)
        yield rates


if __name__ == "__main__":
    main()
