"""Count events and average temperatures per device and window with DuckDB, from Capture blobs to one Parquet file."""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.capture_blobs import batches, partitions, summary

SECOND = 1_000_000
RULES = {"early": 300 * SECOND, "late": 600 * SECOND, "window": 300 * SECOND}
RECORD = pa.schema([("arrival", pa.int64()), ("sequence", pa.int64()), ("body", pa.binary())])
NUMBERED_RECORD = pa.schema([*RECORD, ("enqueued", pa.string()), ("place", pa.int64())])

CREATE = """
CREATE TYPE verdict AS ENUM ('in time', 'late', 'early', 'damaged', 'duplicate');
CREATE TABLE sums (
    windowEnd BIGINT, deviceId VARCHAR, verdict verdict, events BIGINT, temperatures BIGINT, total DOUBLE
)
"""

ADD_PARTITION = """
INSERT INTO sums
WITH parsed AS (
    SELECT * EXCLUDE (body), json_transform(
        TRY_CAST(TRY(decode(body)) AS JSON),
        '{{"deviceId": "VARCHAR", "eventTime": "VARCHAR", "temperature": "JSON"}}'
    ) AS event
    FROM records
), timed AS (
    SELECT
        * EXCLUDE (event), event.deviceId, TRY_CAST(event.temperature::VARCHAR AS DOUBLE) AS temperature,
        epoch_us(TRY_CAST(event.eventTime AS TIMESTAMPTZ)) AS time
    FROM parsed
), judged AS (
    SELECT
        arrival, sequence, deviceId, temperature, time,
        CASE
            WHEN {duplicate} THEN 'duplicate'::verdict
            WHEN time IS NULL OR deviceId IS NULL THEN 'damaged'::verdict
            WHEN time - arrival > $early THEN 'early'::verdict
            WHEN arrival - time > $late THEN 'late'::verdict
            ELSE 'in time'::verdict
        END AS verdict
    FROM timed
), windowed AS (
    SELECT
        arrival, sequence, deviceId, temperature, verdict,
        if(
            verdict <= 'late'::verdict, (greatest(time, arrival - $late) + $window - 1) // $window * $window, NULL
        ) AS ownEnd
    FROM judged
), ordered AS (
    SELECT deviceId, temperature, verdict, if(ownEnd IS NULL, NULL, max(ownEnd) OVER so_far) AS windowEnd
    FROM windowed
    WINDOW so_far AS (PARTITION BY deviceId ORDER BY arrival, sequence ROWS UNBOUNDED PRECEDING)
)
SELECT windowEnd, deviceId, verdict, count(*), count(temperature), sum(temperature) FROM ordered GROUP BY ALL
"""

NEVER = "false"
REPEATS = """
arrival - lag(arrival) OVER (PARTITION BY sequence, enqueued ORDER BY arrival, place) <= 3_600_000_000
"""

WRITE = """
COPY (
    SELECT
        make_timestamptz(windowEnd) AS windowEnd, deviceId,
        sum(events)::BIGINT AS events, sum(total) / sum(temperatures) AS avgTemperature
    FROM sums
    WHERE sums.windowEnd > epoch_us($start) AND sums.windowEnd <= epoch_us($end)
    GROUP BY ALL
    ORDER BY windowEnd, deviceId
) TO $out (FORMAT parquet)
"""

COUNTS = "SELECT verdict::VARCHAR, sum(events)::BIGINT FROM sums GROUP BY ALL"


class Partition:
    """The records of the blobs of a partition, in the order of their arrival."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.ascends = True
        """Whether each sequence number that was read is above those before."""

    def ascending(self) -> Iterator[pa.RecordBatch]:
        """Yield arrivals (microseconds), sequence numbers and bodies, up to a batch whose numbers do not ascend."""
        numbers = np.array([np.iinfo(np.int64).min])
        for arrival, batch in self._batches("SequenceNumber", "Body"):
            numbers = np.append(numbers[-1], batch["SequenceNumber"])
            self.ascends = bool((numbers[:-1] < numbers[1:]).all())
            if not self.ascends:
                return
            yield pa.RecordBatch.from_arrays([arrival, *batch.columns], schema=RECORD)

    def all(self) -> Iterator[pa.RecordBatch]:
        """Yield the same of all records, with enqueued times and indices."""
        place = 0
        for arrival, batch in self._batches("SequenceNumber", "Body", "EnqueuedTimeUtc"):
            places = pa.array(range(place, place + len(batch)))
            place += len(batch)
            yield pa.RecordBatch.from_arrays([arrival, *batch.columns, places], schema=NUMBERED_RECORD)

    def _batches(self, *columns: str) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        for path in self.paths:
            arrival = path.stat().st_mtime_ns // 1000
            for batch in batches(path, *columns):
                yield pa.repeat(arrival, len(batch)), batch


def add(database: duckdb.DuckDBPyConnection, paths: list[Path]) -> None:
    """Add the sums of a partition. Look for duplicates only if the sequence numbers do not ascend."""
    partition = Partition(paths)
    with database.cursor() as cursor:
        cursor.begin()
        cursor.register("records", pa.RecordBatchReader.from_batches(RECORD, partition.ascending()))
        cursor.execute(ADD_PARTITION.format(duplicate=NEVER), RULES)
        if not partition.ascends:
            cursor.rollback()
            cursor.begin()
            cursor.register("records", pa.RecordBatchReader.from_batches(NUMBERED_RECORD, partition.all()))
            cursor.execute(ADD_PARTITION.format(duplicate=REPEATS), RULES)
        cursor.commit()


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
    print(summary(dict(database.execute(COUNTS).fetchall())))


if __name__ == "__main__":
    main()
