"""Count events and average temperatures per device and window with polars, from Capture blobs to one Parquet file."""

import argparse
import multiprocessing
import os
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from polars import col

SECOND = 1_000_000
EARLY, LATE, WINDOW = 300 * SECOND, 600 * SECOND, 300 * SECOND
SECONDS, POINT, DIGITS, TEXT = 19, 19, 7, 28
FORMAT = "%Y-%m-%dT%H:%M:%S"
EVENT = pl.Schema({"sequence": pl.Int64, "deviceId": pl.String, "time": pl.String, "temperature": pl.Float64})


class Event(msgspec.Struct, rename="camel", gc=False):
    """Name the fields that the aggregates need."""

    device_id: str | None = None
    event_time: str | None = None
    temperature: float | None = None


DECODER = msgspec.json.Decoder(Event)
DAMAGE = (msgspec.DecodeError, ValueError, RecursionError)


def counted(paths: list[Path]) -> pl.DataFrame:
    """Return what a partition adds to each device and window; the window of damaged events is null."""
    avro = SessionContext(SessionConfig().with_target_partitions(1))
    events = pl.concat([windowed(avro, path) for path in paths])
    if not events["sequence"].is_sorted():
        events = events.sort("arrival", "sequence")
    ordered = events.lazy().with_columns(col("window").cum_max().over("deviceId"))
    temperature = col("temperature")
    sums = ordered.group_by("window", "deviceId").agg(
        events=pl.len(), temperatures=temperature.count(), total=temperature.sum()
    )
    return sums.collect()


def windowed(avro: SessionContext, path: Path) -> pl.DataFrame:
    """Return the events of a blob that are not early, each in the window of its own time."""
    arrival = path.stat().st_mtime_ns // 1000
    records = pa.RecordBatchReader.from_stream(avro.read_avro(path).select('"SequenceNumber"', '"Body"'))
    events = pl.concat([EVENT.to_frame(), *map(decoded, records)], rechunk=True)
    window = -(-col("time").clip(lower_bound=arrival - LATE) // WINDOW)
    return (
        events.with_columns(micros(events["time"]))
        .lazy()
        .filter((col("time") <= arrival + EARLY).fill_null(True))
        .select("sequence", "deviceId", "temperature", window=window.cast(pl.Int32), arrival=arrival)
        .collect()
    )


def decoded(records: pa.RecordBatch) -> pl.DataFrame:
    """Return the events of records, without a time where the body is damaged."""
    bodies = records["Body"].to_pylist()
    try:
        found = list(map(DECODER.decode, bodies))
    except (TypeError, *DAMAGE):
        found = [checked(body or b"") for body in bodies]
    columns = {
        "sequence": pl.Series(records["SequenceNumber"]),
        "deviceId": [event.device_id for event in found],
        "time": [event.event_time for event in found],
        "temperature": [event.temperature for event in found],
    }
    return pl.DataFrame(columns, schema=EVENT)


def checked(body: bytes) -> Event:
    """Return the event in a body less the fields of a wrong type, or an empty event if the body is damaged."""
    try:
        fields = msgspec.json.decode(body)
    except DAMAGE:
        return Event()
    if not isinstance(fields, dict):
        return Event()
    device, time, temperature = (fields.get(name) for name in ("deviceId", "eventTime", "temperature"))
    number = temperature if isinstance(temperature, int | float) and not isinstance(temperature, bool) else None
    return Event(
        device if isinstance(device, str | None) else msgspec.json.encode(device).decode(),
        time if isinstance(time, str) else None,
        number if number is not None and abs(number) <= sys.float_info.max else None,
    )


def micros(times: pl.Series) -> pl.Series:
    """Return ISO times as microseconds since the epoch, fast if all have the seven digits and the Z of Azure."""
    text = times.str
    if ((text.len_bytes() == TEXT) & text.ends_with("Z") & (text.slice(POINT, 1) == ".")).all():
        seconds = text.head(SECONDS).str.to_datetime(FORMAT, time_unit="us", strict=False).dt.epoch("us")
        return seconds + text.slice(POINT + 1, DIGITS).cast(pl.UInt32, strict=False) // 10
    return text.to_datetime(FORMAT + "%.f%#z", time_unit="us", strict=False).dt.epoch("us")


def aggregates(sums: pl.DataFrame) -> pl.LazyFrame:
    """Return the rows of the output from the sums of all partitions."""
    totals = sums.lazy().drop_nulls("window").group_by("window", "deviceId").agg(pl.all().sum())
    return totals.select(
        windowEnd=(col("window").cast(pl.Int64) * WINDOW).cast(pl.Datetime("us", "UTC")),
        deviceId="deviceId",
        events=col("events").cast(pl.Int64),
        avgTemperature=pl.when(col("temperatures") > 0).then(col("total") / col("temperatures")),
    )


def main() -> None:
    """Write the Parquet file, with one process for each core and one task for each partition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("start", type=datetime.fromisoformat)
    parser.add_argument("end", type=datetime.fromisoformat)
    options = parser.parse_args()
    partitions: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(options.archive.rglob("*.avro"), key=lambda path: path.stat().st_mtime_ns):
        partitions[path.parts[-7]].append(path)
    os.environ["POLARS_MAX_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool() as pool:
        sums = pl.concat(pool.map(counted, partitions.values(), chunksize=1))
    rows = aggregates(sums).filter(col("windowEnd") > options.start, col("windowEnd") <= options.end)
    rows.sort("windowEnd", "deviceId").collect().write_parquet(options.out)
    print(f"{sums.filter(col('window').is_null())['events'].sum()} damaged events left out")


if __name__ == "__main__":
    main()
