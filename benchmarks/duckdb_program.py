"""Count events and average temperatures per device and window with DuckDB, from Capture blobs to one Parquet file."""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

SECOND = 1_000_000
RULES = {"early": 300 * SECOND, "late": 600 * SECOND, "window": 300 * SECOND}
AVRO = SessionContext(SessionConfig().with_target_partitions(1))
RECORD = pa.schema([("arrival", pa.int64()), ("sequence", pa.int64()), ("body", pa.binary())])

CREATE = "CREATE TABLE sums (windowEnd BIGINT, deviceId VARCHAR, events BIGINT, temperatures BIGINT, total DOUBLE)"

ADD_PARTITION = """
INSERT INTO sums
WITH parsed AS (
    SELECT arrival, sequence, json_transform(
        TRY_CAST(TRY(decode(body)) AS JSON),
        '{"deviceId": "VARCHAR", "eventTime": "VARCHAR", "temperature": "JSON"}'
    ) AS event
    FROM records
), timed AS (
    SELECT
        arrival, sequence, event.deviceId, TRY_CAST(event.temperature::VARCHAR AS DOUBLE) AS temperature,
        epoch_us(TRY_CAST(event.eventTime AS TIMESTAMPTZ)) AS time
    FROM parsed
), windowed AS (
    SELECT
        arrival, sequence, deviceId, temperature,
        if(time IS NULL, NULL, (greatest(time, arrival - $late) + $window - 1) // $window * $window) AS ownEnd
    FROM timed
    WHERE time IS NULL OR time - arrival <= $early
), ordered AS (
    SELECT deviceId, temperature, if(ownEnd IS NULL, NULL, max(ownEnd) OVER so_far) AS windowEnd
    FROM windowed
    WINDOW so_far AS (PARTITION BY deviceId ORDER BY arrival, sequence ROWS UNBOUNDED PRECEDING)
)
SELECT windowEnd, deviceId, count(*), count(temperature), sum(temperature) FROM ordered GROUP BY ALL
"""

WRITE = """
COPY (
    SELECT
        make_timestamptz(windowEnd) AS windowEnd, deviceId,
        sum(events)::BIGINT AS events, sum(total) / sum(temperatures) AS avgTemperature
    FROM sums
    WHERE sums.windowEnd > epoch_us($start) AND sums.windowEnd <= epoch_us($end)
    GROUP BY ALL
    ORDER BY windowEnd, deviceId NULLS FIRST
) TO $out (FORMAT parquet)
"""

DAMAGED = "SELECT coalesce(sum(events), 0) FROM sums WHERE windowEnd IS NULL"


def partitions(archive: Path) -> list[list[Path]]:
    """Return the blobs of each partition."""
    blobs: defaultdict[str, list[Path]] = defaultdict(list)
    for path in archive.rglob("*.avro"):
        blobs[path.parts[-7]].append(path)
    return list(blobs.values())


def records(paths: list[Path]) -> Iterator[pa.RecordBatch]:
    """Yield the arrivals, in microseconds, the sequence numbers and the bodies of the records of blobs."""
    for path in paths:
        arrival = path.stat().st_mtime_ns // 1000
        blob = AVRO.read_avro(path).select('"SequenceNumber"', '"Body"')
        for batch in pa.RecordBatchReader.from_stream(blob):
            yield pa.RecordBatch.from_arrays([pa.repeat(arrival, len(batch)), *batch.columns], schema=RECORD)


def add(database: duckdb.DuckDBPyConnection, paths: list[Path]) -> None:
    """Add the sums of a partition; the window of damaged events is null."""
    with database.cursor() as cursor:
        cursor.register("records", pa.RecordBatchReader.from_batches(RECORD, records(paths)))
        cursor.execute(ADD_PARTITION, RULES)


def main() -> None:
    """Write the Parquet file, with as many partitions at a time as there are cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("start", type=datetime.fromisoformat)
    parser.add_argument("end", type=datetime.fromisoformat)
    options = parser.parse_args()
    database = duckdb.connect(config={"preserve_insertion_order": False})
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute(CREATE)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda paths: add(database, paths), partitions(options.archive)))
    database.execute(WRITE, {"out": str(options.out), "start": options.start, "end": options.end})
    print(f"{database.execute(DAMAGED).fetchall()[0][0]} damaged events left out")


if __name__ == "__main__":
    main()
