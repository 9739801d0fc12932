"""Events per second of a backfill beside its peer and its floor, in one run: python benchmarks/run.py [EVENTS]

The clock runs from the planned manifest to the staged Parquet files. The first round warms every side up and does not
count; the last line has the medians of the ratios.
"""

import argparse
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import floor
import plain_spark
import world

from spark_jobs import backfill, stages
from spark_jobs.pipeline import load

HOURS = 6
PIPELINE = """
name: benchmark
input:
  alias: telemetry
  container: {container}
  namespace: contoso
  event_hub: telemetry
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: %(default)s)")
    chosen = parser.parse_args()
    kept = Path(tempfile.gettempdir()) / f"recapture-benchmark-{chosen.events}"
    world.make(kept, chosen.events, HOURS)
    events = chosen.events // (HOURS * 12 * world.PARTITIONS) * HOURS * 12 * world.PARTITIONS
    with tempfile.TemporaryDirectory() as scratch:
        definition = Path(scratch) / "benchmark.yaml"
        definition.write_text(PIPELINE.format(container=kept.as_uri(), table=(Path(scratch) / "table").as_uri()))
        pipeline = load(definition)
        spark = backfill.session("local[*]", "benchmark")
        spark.sparkContext.addPyFile(plain_spark.__file__)
        spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().collect()
        to_floor, to_peer = [], []
        for round_ in range(chosen.rounds + 1):
            ours = _ours(spark, pipeline, events)
            lowest = floor.events_per_second(kept, pipeline.query, events)
            peer = plain_spark.events_per_second(spark, kept, Path(scratch) / "peer", events)
            rates = f"recapture {ours:,.0f} events/s, floor {lowest:,.0f}, plain Spark {peer:,.0f}"
            print(f"round {round_}: {rates}" if round_ else f"warm-up: {rates}", flush=True)
            if round_:
                to_floor.append(ours / lowest)
                to_peer.append(ours / peer)
        print(f"recapture is {median(to_peer):.2f} of plain Spark and {median(to_floor):.2f} of the floor")
        spark.stop()


def _ours(spark, pipeline, events: int) -> float:  # type: ignore[no-untyped-def]
    run_id = stages.plan(pipeline, world.START, world.START + timedelta(hours=HOURS))
    begin = time.perf_counter()
    backfill.run(spark, pipeline, run_id)
    return events / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
