"""The benchmark's input: Capture blobs in a local folder, made once and kept between runs."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fastavro
import numpy as np

from recapture.sample.capture_file import capture_schema, enqueued_text

START = datetime(2026, 3, 1, tzinfo=UTC)
PARTITIONS = 4
DEVICES = 1000
INTERVAL = timedelta(minutes=5)


def blob_count(hours: int) -> int:
    """Return the number of blobs in a world of that length: one for each partition and interval."""
    return PARTITIONS * int(timedelta(hours=hours) / INTERVAL)


def make(folder: Path, events: int, hours: int) -> None:
    """Write `events` events over `hours` hours as Capture would, spread evenly over the blobs."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / f".{events}-{hours}"
    if marker.exists():
        return
    random = np.random.default_rng(7)
    blobs = blob_count(hours)
    intervals = blobs // PARTITIONS
    schema = fastavro.parse_schema(json.loads(capture_schema()))
    for partition in range(PARTITIONS):
        sequence = 0
        for interval in range(intervals):
            number = partition * intervals + interval
            count = events * (number + 1) // blobs - events * number // blobs
            begins = START + interval * INTERVAL
            modified = begins + INTERVAL + timedelta(seconds=3)
            at = np.sort(random.uniform(0, INTERVAL.total_seconds(), count))
            records = [
                _record(sequence + place, begins + timedelta(seconds=seconds), random)
                for place, seconds in enumerate(at.tolist())
            ]
            sequence += count
            path = folder / f"contoso/telemetry/{partition}/{begins:%Y/%m/%d/%H/%M/%S}.avro"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                fastavro.writer(file, schema, records, codec="null", sync_interval=1 << 30)
            os.utime(path, (modified.timestamp(), modified.timestamp()))
    marker.touch()


def _record(sequence: int, enqueued: datetime, random: np.random.Generator) -> dict[str, object]:
    time = enqueued - timedelta(seconds=float(random.exponential(20)))
    body = {
        "deviceId": f"device-{random.integers(DEVICES)}",
        "eventTime": f"{time:%Y-%m-%dT%H:%M:%S.%f}0Z",
        "temperature": round(float(random.normal(21, 4)), 2),
        "site": {"id": f"site-{random.integers(20)}", "region": "west"},
        "firmware": "4.11.2",
    }
    return {
        "SequenceNumber": sequence,
        "Offset": str(sequence * 256),
        "EnqueuedTimeUtc": enqueued_text(enqueued),
        "SystemProperties": {"x-opt-enqueued-time": int(enqueued.timestamp() * 1000)},
        "Properties": {},
        "Body": json.dumps(body, separators=(",", ":")).encode(),
    }
