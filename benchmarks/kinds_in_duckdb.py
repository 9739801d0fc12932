"""Kinds of queries next to programs by hand in DuckDB over the same blobs: python -m benchmarks.kinds_in_duckdb

The programs parse the bodies, judge times as the pipeline does (late events are adjusted, and no event is older than
one before it in its partition), and write one sorted Parquet file. They count nothing, look for no duplicates and no
gaps, and divide nothing into slices. The number of rows is that of Recapture, but for sessions: SQL without recursion
cannot cut those that last longer than their longest duration.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.capture_blobs import batches, partitions
from benchmarks.kinds import KINDS, best, cpu_seconds, in_processes, pipeline_file
from benchmarks.run import WORLDS
from benchmarks.world import START, World
from recapture.definition.pipeline import load
from recapture.execute.processes.workers import workers
from recapture.run.plan import plan_run

RECORD = pa.schema([("arrival", pa.int64()), ("sequence", pa.int64()), ("body", pa.binary())])
EVENTS = """
INSERT INTO events
WITH parsed AS (
    SELECT * EXCLUDE (body), json_transform(
        decode(body)::JSON, '{"deviceId": "VARCHAR", "eventTime": "VARCHAR", "temperature": "DOUBLE"}'
    ) AS event
    FROM records
)
SELECT
    $partition, arrival, sequence, event.deviceId, event.temperature,
    max(greatest(epoch_us(event.eventTime::TIMESTAMPTZ), arrival - 600_000_000)) OVER (
        ORDER BY arrival, sequence ROWS UNBOUNDED PRECEDING
    )
FROM parsed
"""
IN_ORDER = "(PARTITION BY deviceId ORDER BY time, arrival, partition, sequence)"
PROGRAMS = {
    "LAG": f"""
        SELECT time, deviceId, if(time - lag(time) OVER w <= 300_000_000, lag(temperature) OVER w, NULL) AS p
        FROM events WINDOW w AS {IN_ORDER}
        """,
    "JOIN": """
        WITH minutes AS (SELECT time, deviceId, temperature, time // 60_000_000 AS minute FROM events)
        SELECT b.time, a.deviceId, a.temperature - b.temperature AS d
        FROM (SELECT * EXCLUDE (minute), unnest([minute, minute + 1]) AS minute FROM minutes) AS a
        JOIN minutes AS b
        ON a.deviceId = b.deviceId AND a.minute = b.minute AND b.time - a.time BETWEEN 1_000_000 AND 60_000_000
        """,
    "sliding": """
        WITH instants AS (
            SELECT time, deviceId, temperature, 1 AS enters FROM events
            UNION ALL SELECT time + 60_000_000, deviceId, NULL, 0 FROM events
        )
        SELECT DISTINCT time, deviceId, sum(enters) OVER w AS n, avg(temperature) OVER w AS m
        FROM instants
        WINDOW w AS (PARTITION BY deviceId ORDER BY time RANGE BETWEEN 59_999_999 PRECEDING AND CURRENT ROW)
        QUALIFY n > 0
        """,
    "session": f"""
        WITH begun AS (
            SELECT *, if(time - lag(time) OVER {IN_ORDER} <= 30_000_000, 0, 1) AS begins FROM events
        ), numbered AS (SELECT *, sum(begins) OVER {IN_ORDER} AS session FROM begun)
        SELECT max(time) + 30_000_000 AS time, deviceId, count(*) AS n, avg(temperature) AS m
        FROM numbered GROUP BY deviceId, session
        """,
}
"""SQL of the rows of each kind, over `events`."""


def program(archive: Path, sql: str, start: int, end: int, out: Path) -> int:
    """Write the rows with a time in (start, end], in microseconds, and return their number."""
    database = duckdb.connect(config={"preserve_insertion_order": False})
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute(
        "CREATE TABLE events (partition INT, arrival BIGINT, sequence BIGINT, deviceId VARCHAR, temperature DOUBLE, "
        "time BIGINT)"
    )

    def add(number: int, paths: list[Path]) -> None:
        with database.cursor() as cursor:
            cursor.register("records", pa.RecordBatchReader.from_batches(RECORD, records(paths)))
            cursor.execute(EVENTS, {"partition": number})

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(add, *zip(*enumerate(partitions(archive)), strict=True)))
    database.execute(
        f"COPY (SELECT * FROM ({sql}) WHERE time > {start} AND time <= {end} ORDER BY ALL) TO '{out}' (FORMAT parquet)"
    )
    (rows,) = database.execute(f"SELECT count(*) FROM '{out}'").fetchone() or (0,)
    return int(rows)


def records(paths: list[Path]) -> Iterator[pa.RecordBatch]:
    """Yield the arrivals (microseconds), sequence numbers and bodies of blobs."""
    for path in paths:
        arrival = path.stat().st_mtime_ns // 1000
        for batch in batches(path, "SequenceNumber", "Body"):
            yield pa.RecordBatch.from_arrays([pa.repeat(arrival, len(batch)), *batch.columns], schema=RECORD)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds_in_duckdb", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the fastest counts (default: %(default)s)")
    chosen = parser.parse_args()
    world = World(chosen.events)
    archive = WORLDS / f"{chosen.events}-events"
    world.make(archive)
    start, end = (int(time.timestamp() * 1_000_000) for time in (START, world.end))
    print(f"{'kind':10} {'rows':>9} {'CPU s':>7} {'DuckDB':>7} {'ratio':>6} {'rows of DuckDB':>15}")
    with tempfile.TemporaryDirectory() as folder, workers(os.cpu_count() or 1) as started:
        for name, sql in PROGRAMS.items():
            scratch = Path(folder) / name
            scratch.mkdir()
            pipeline = load(pipeline_file(scratch / "ours", archive, world, KINDS[name]))
            plan_run(pipeline, START, world.end)
            ours, theirs, rows = [], [], 0
            for _ in range(chosen.rounds + 1):
                ours.append(in_processes(started, pipeline, world, scratch))
                begin = cpu_seconds()
                rows = program(archive, sql, start, end, scratch / "rows.parquet")
                theirs.append(cpu_seconds() - begin)
            mine, peer = best(ours[1:]), min(theirs[1:])
            ratio = peer / mine.cpu_seconds
            print(f"{name:10} {mine.rows:>9,} {mine.cpu_seconds:7.2f} {peer:7.2f} {ratio:6.2f} {rows:15,}", flush=True)


if __name__ == "__main__":
    main()
