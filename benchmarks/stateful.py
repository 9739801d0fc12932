"""LAG, AVG with LIMIT DURATION, and JOIN next to plain Spark SQL: python -m benchmarks.stateful [EVENTS] [--keys N]

Both read the same events, already ordered, from Parquet; JOIN has two inputs of so many events. Each line shows events
per second, their ratio, and the peak memory of Spark so far. With `--keys 1`, one hot key has all events. Every round
checks that both compute the same.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.usage import peak_mib
from recapture.execute.spark.session import create_session
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import input_view
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH

SECONDS = 3600
START = UNIX_EPOCH + 1_750_000_000 * TICKS_PER_SECOND
ROWS_PER_PARTITION = 500_000
DECLARED = "CREATE TABLE telemetry (k nvarchar(max), x float);\n"
MATCHES = 4
"""How many events of the second input an event of the first one matches, on average."""


@dataclass(frozen=True)
class Comparison:
    """A query, and the plain Spark SQL of its column `v`."""

    query: str
    peer: str
    inputs: tuple[str, ...] = ("telemetry",)


def comparisons(events: int, keys: int) -> dict[str, Comparison]:
    """Return what is compared, by name."""
    milliseconds = max(1, round(1000 * SECONDS * MATCHES * keys / events))
    width = milliseconds * TICKS_PER_MILLISECOND
    return {
        "LAG": Comparison(
            DECLARED
            + "SELECT k, x, LAG(x) OVER (PARTITION BY k LIMIT DURATION(minute, 5)) AS v INTO out FROM telemetry",
            "SELECT CASE WHEN lag(_system_timestamp) OVER w > _system_timestamp - 3000000000 THEN lag(x) OVER w END"
            " AS v FROM `input telemetry`"
            " WINDOW w AS (PARTITION BY k ORDER BY _system_timestamp, _arrival, _partition)",
        ),
        "AVG": Comparison(
            DECLARED
            + "SELECT k, x, AVG(x) OVER (PARTITION BY k LIMIT DURATION(second, 10)) AS v INTO out FROM telemetry",
            "SELECT avg(x) OVER (PARTITION BY k ORDER BY _system_timestamp RANGE BETWEEN 99999999 PRECEDING AND CURRENT"
            " ROW) AS v FROM `input telemetry`",
        ),
        "JOIN": Comparison(
            DECLARED + DECLARED.replace("telemetry", "alarms") + "SELECT a.k, a.x - b.x AS v INTO out FROM telemetry a "
            f"JOIN alarms b ON a.k = b.k AND DATEDIFF(millisecond, a, b) BETWEEN 0 AND {milliseconds}",
            "SELECT a.x - b.x AS v FROM `input telemetry` a JOIN (SELECT *, explode(array("
            f"_system_timestamp div {width}, _system_timestamp div {width} - 1)) AS bucket FROM `input alarms`) b "
            f"ON a.k = b.k AND a._system_timestamp div {width} = b.bucket "
            f"AND b._system_timestamp BETWEEN a._system_timestamp AND a._system_timestamp + {width}",
            ("telemetry", "alarms"),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stateful", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=5_000_000, help="default: %(default)s")
    parser.add_argument("--keys", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: %(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spark = create_session("local[*]", "benchmark", Path(scratch))
        try:
            for seed, alias in enumerate(("telemetry", "alarms")):
                folder = Path(scratch) / alias
                fill(folder, chosen.events, chosen.keys, seed)
                spark.read.parquet(str(folder)).createOrReplaceTempView(f"`{input_view(alias)}`")
            for name, comparison in comparisons(chosen.events, chosen.keys).items():
                print(f"{name}: {compare(spark, comparison, chosen.events, chosen.rounds)}", flush=True)
        finally:
            spark.stop()


def fill(folder: Path, events: int, keys: int, seed: int) -> None:
    """Write the view of an input for one slice, each event at a time of its own."""
    folder.mkdir()
    random = np.random.default_rng(seed)
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


def compare(spark: SparkSession, comparison: Comparison, events: int, rounds: int) -> str:
    """Return the rates of both, and their ratio: medians of interleaved rounds after one that warms up."""
    inputs = dict.fromkeys(comparison.inputs, CaptureInput.metadata)
    compiled = compile_query(comparison.query, inputs=inputs, output_aliases=["out"])
    read = events * len(inputs)
    ours, peers = [], []
    for _ in range(rounds + 1):
        seconds, total = timed(spark, compiled.outputs[0].sql)
        peer_seconds, peer_total = timed(spark, comparison.peer)
        assert total == peer_total, f"recapture computes {total}, plain Spark {peer_total}"
        ours.append(read / seconds)
        peers.append(read / peer_seconds)
    ratio = median(our / their for our, their in zip(ours[1:], peers[1:], strict=True))
    rates = f"recapture {median(ours[1:]):,.0f} events/s, plain Spark {median(peers[1:]):,.0f}"
    assert spark.sparkContext._jvm is not None
    peak = peak_mib(spark.sparkContext._jvm.ProcessHandle.current().pid())
    return f"{rates}: {ratio:.2f} of plain Spark; peak memory {peak:,.0f} MiB"


def timed(spark: SparkSession, sql: str) -> tuple[float, tuple[int, float]]:
    """Return how long a query takes, and the number and the rounded sum of its values."""
    begin = time.perf_counter()
    [(count, total)] = spark.sql(f"SELECT count(v), round(sum(v), 3) FROM (\n{sql}\n)").collect()
    return time.perf_counter() - begin, (count, total)


if __name__ == "__main__":
    main()
