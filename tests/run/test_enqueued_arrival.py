"""A run by enqueued time, and what the hub adds to its events, from Capture files to the published table."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from recapture.definition.pipeline import Pipeline
from recapture.execute.processes.workers import Workers
from recapture.run.plan import preview
from recapture.run.progress import completeness
from recapture.tools.sample import world, write_world
from tests.worlds import HOUR, TELEMETRY, TEN, World, backfill, published

QUERY = """\
SELECT System.Timestamp() AS windowEnd, PartitionId AS partition,
    GetMetadataPropertyValue(telemetry, '[User].[attempt]') AS attempt,
    COUNT(*) AS events, MAX(EventEnqueuedUtcTime) AS newest
INTO aggregates FROM telemetry
GROUP BY PartitionId, GetMetadataPropertyValue(telemetry, '[User].[attempt]'), TumblingWindow(minute, 5)"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of Capture files, from nine o'clock on."""
    home = tmp_path_factory.mktemp("world")
    write_world(world(TEN - HOUR, 3, partitions=2, devices=16), home / "capture")
    return home


def define(home: Path, table: str, arrival_time: str, query: str = QUERY) -> Pipeline:
    return World(home).define(query, table, inputs=[TELEMETRY | {"arrival_time": arrival_time, "empty_blobs": True}])


def events_of(home: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of the folder that are JSON, with their partition, enqueued time and attempt."""
    for path in sorted((home / "capture").rglob("*.avro")):
        for record in fastavro.reader(BytesIO(path.read_bytes())):
            assert isinstance(record, dict)
            try:
                json.loads(record["Body"].decode())
            except ValueError:
                continue
            milliseconds = record["SystemProperties"]["x-opt-enqueued-time"]
            enqueued = datetime(1970, 1, 1, tzinfo=TEN.tzinfo) + timedelta(milliseconds=milliseconds)
            attempt = record["Properties"].get("attempt")
            yield {"partition": int(path.parts[-7]), "enqueued": enqueued, "attempt": attempt}


def test_by_enqueued_time_each_event_is_in_the_window_in_which_the_hub_took_it(home: Path, processes: Workers) -> None:
    pipeline = define(home, "enqueued", "EventEnqueuedUtcTime")
    report = backfill(processes, pipeline, TEN, TEN + HOUR)
    counts: Counter[tuple[datetime, int, str | None]] = Counter()
    newest: dict[tuple[datetime, int, str | None], datetime] = {}
    for event in events_of(home):
        past = (event["enqueued"] - TEN) % timedelta(minutes=5)
        end = event["enqueued"] + (timedelta(minutes=5) - past if past else timedelta())
        key = (end, event["partition"], None if event["attempt"] is None else str(event["attempt"]))
        if TEN < end <= TEN + HOUR:
            counts[key] += 1
            newest[key] = max(newest.get(key, event["enqueued"]), event["enqueued"])
    rows = published(home / "enqueued")
    published_counts = {(row["windowEnd"], row["partition"], row["attempt"]): row["events"] for row in rows}
    assert published_counts == counts
    assert {(row["windowEnd"], row["partition"], row["attempt"]): row["newest"] for row in rows} == newest
    assert len({key[2] for key in counts}) > 2
    assert report["metrics"]["on_time"] == counts.total()


def test_the_arrival_time_is_part_of_the_digest_of_a_run(home: Path) -> None:
    by_blob, by_event = define(home, "one", "BlobLastModified"), define(home, "one", "EventEnqueuedUtcTime")
    assert preview(by_blob, TEN, TEN + HOUR).digest != preview(by_event, TEN, TEN + HOUR).digest


def test_by_enqueued_time_a_range_waits_for_a_capture_window_that_began_after_it(home: Path) -> None:
    """Capture's last blobs begin an hour after noon and are written five minutes later."""
    query = QUERY.replace("FROM telemetry", "FROM telemetry TIMESTAMP BY t")
    by_event = define(home, "one", "EventEnqueuedUtcTime", query)
    last = TEN + 2 * HOUR + timedelta(minutes=30)
    assert completeness(by_event, TEN, TEN + 2 * HOUR, last).waiting == ()
    waiting = completeness(by_event, TEN, TEN + 3 * HOUR, last).waiting
    assert len(waiting) == 2
    for partition, line in enumerate(waiting):
        assert line.startswith(f"partition {partition}: written up to 2024-03-01T13:00:00Z; ")
        assert line.endswith("; slice 2024-03-01T12:00:00Z needs more")
