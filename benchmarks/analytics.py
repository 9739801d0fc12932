"""LAG and AVG with LIMIT DURATION next to plain Spark SQL: python -m benchmarks.analytics [EVENTS] [--keys N]

Both read the same events, already ordered, from Parquet. Each line shows events per second, their ratio, and the peak
memory of Spark. With `--keys 1`, one hot key has all events. Every round checks that both compute the same.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.run.session import create_session
from recapture.time_model.ticks import TICKS_PER_SECOND, UNIX_EPOCH

SECONDS = 3600
START = UNIX_EPOCH + 1_750_000_000 * TICKS_PER_SECOND
ROWS_PER_PARTITION = 500_000
DECLARED = "CREATE TABLE telemetry (k nvarchar(max), x float);\n"
COMPARED = {
    "LAG": (
        "SELECT k, x, LAG(x) OVER (PARTITION BY k LIMIT DURATION(minute, 5)) AS v INTO out FROM telemetry",
        "CASE WHEN lag(_system_timestamp) OVER w > _system_timestamp - 3000000000 THEN lag(x) OVER w END",
        "w AS (PARTITION BY k ORDER BY _system_timestamp, _arrival, _partition)",
    ),
    "AVG": (
        "SELECT k, x, AVG(x) OVER (PARTITION BY k LIMIT DURATION(second, 10)) AS v INTO out FROM telemetry",
        "avg(x) OVER w",
        "w AS (PARTITION BY k ORDER BY _system_timestamp RANGE BETWEEN 99999999 PRECEDING AND CURRENT ROW)",
    ),
}
"""By function: our query, and plain Spark's value over its window."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=5_000_000, help="default: %(default)s")
    parser.add_argument("--keys", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: %(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch) / "events"
        fill(events, chosen.events, chosen.keys)
        spark = create_session("local[*]", "benchmark", Path(scratch))
        try:
            spark.read.parquet(str(events)).createOrReplaceTempView("events")
            for name in COMPARED:
                print(compare(spark, name, chosen.events, chosen.rounds), flush=True)
        finally:
            spark.stop()


def fill(folder: Path, events: int, keys: int) -> None:
    """Write the view `events` of one slice, each event at a time of its own."""
    folder.mkdir()
    random = np.random.default_rng(0)
    times = START + 1 + np.sort(random.choice(SECONDS * TICKS_PER_SECOND, events, replace=False))
    for number, part in enumerate(np.array_split(times, max(1, events // ROWS_PER_PARTITION))):
        columns = {
            "k": pa.array([f"device-{key:05}" for key in range(keys)]).take(random.integers(0, keys, len(part))),
            "x": random.integers(0, 1000, len(part)) / 2,
            "_partition": pa.repeat("0", len(part)),
            "_slice_start": np.full(len(part), START),
            "_slice_end": np.full(len(part), START + SECONDS * TICKS_PER_SECOND),
            "_system_timestamp": part,
            "_arrival": part,
        }
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")


def compare(spark: SparkSession, name: str, events: int, rounds: int) -> str:
    """Return the rates of both, and their ratio: medians of interleaved rounds after one that warms up."""
    query, value, window = COMPARED[name]
    compiled = compile_query(DECLARED + query, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["out"])
    peer = f"SELECT k, x, {value} AS v FROM events WINDOW {window}"
    ours, peers = [], []
    for _ in range(rounds + 1):
        seconds, total = timed(spark, compiled.outputs[0].sql)
        peer_seconds, peer_total = timed(spark, peer)
        assert total == peer_total, f"recapture computes {total}, plain Spark {peer_total}"
        ours.append(events / seconds)
        peers.append(events / peer_seconds)
    ratio = median(our / their for our, their in zip(ours[1:], peers[1:], strict=True))
    rates = f"recapture {median(ours[1:]):,.0f} events/s, plain Spark {median(peers[1:]):,.0f}"
    return f"{name}: {rates}: {ratio:.2f} of plain Spark; peak memory {peak_mib(spark):,.0f} MiB"


def timed(spark: SparkSession, sql: str) -> tuple[float, tuple[int, float]]:
    """Return how long a query takes, and the number and the rounded sum of its values."""
    begin = time.perf_counter()
    [(count, total)] = spark.sql(f"SELECT count(v), round(sum(v), 3) FROM (\n{sql}\n)").collect()
    return time.perf_counter() - begin, (count, total)


def peak_mib(spark: SparkSession) -> float:
    """Return the largest memory that Spark's process has had."""
    assert spark.sparkContext._jvm is not None
    process = spark.sparkContext._jvm.ProcessHandle.current().pid()
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
