"""The same events give the same rows and the same verdicts, whatever wrote their blobs.

Spark computes the rows of Capture's blobs, and processes compute those of the other formats.
"""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import RunError
from recapture.execute.processes.workers import Workers
from recapture.run.status import status
from tests.formats.samples import SAMPLES, Numbered
from tests.worlds import COUNTS, HOUR, TEN, at, backfill, body, published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put(home: Path, kind: str, opened: datetime, events: Numbered) -> Path:
    """Write a blob of the archive, last modified five minutes after it was opened; return its path."""
    sample = SAMPLES[kind]
    path = home / "archive" / sample.name.format(opened)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sample.write(events, opened))
    os.utime(path, ((opened + timedelta(minutes=5)).timestamp(),) * 2)
    return path


def defined(home: Path, kind: str, **more: Any) -> Pipeline:
    file = home / "telemetry.yaml"
    sections = {
        "name": "telemetry",
        "input": {"alias": "telemetry", "container": "archive", **SAMPLES[kind].keys, **more},
        "job": {"eventsLateArrivalMaxDelayInSeconds": 600, "query": COUNTS},
        "output": {"alias": "aggregates", "table": "table"},
    }
    file.write_text(json.dumps(sections))
    return load(file)


def archive(home: Path, kind: str) -> None:
    """Write an archive from nine to half past eleven, with late, out-of-order and malformed events."""
    number = 0
    for place in range(30):
        opened = at(-60 + 5 * place)
        events = []
        for n in range(4):
            late = place % 7 == n
            time = opened + timedelta(seconds=290 - 70 * n - 700 * late)
            events.append((number, body(f"late-{place}" if late else f"device-{n % 2}", time, 20 + 0.1 * number)))
            number += 1
        if place == 20:
            events.append((number, b"not an event"))
            number += 1
        put(home, kind, opened, events)


def rows_and_counts(engine: "SparkSession | Workers", home: Path, kind: str) -> tuple[list[Any], dict[str, Any]]:
    archive(home, kind)
    report = backfill(engine, defined(home, kind), TEN, TEN + HOUR)
    counts = {name: value for name, value in report["metrics"].items() if name != "InputEventBytes"}
    return published(home / "table"), counts


@pytest.fixture(scope="module")
def expected(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    """Return the rows and counts that Capture's blobs give."""
    rows, counts = rows_and_counts(spark, tmp_path_factory.mktemp("capture"), "Capture")
    assert len(rows) > 10
    assert (counts["malformed"], counts["SequenceGaps"], counts["DuplicateEvents"]) == (1, 0, 0)
    assert min(counts[name] for name in ("on_time", "late_adjusted", "out_of_order_adjusted")) > 0
    return rows, counts


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != "Capture"])
def test_the_rows_and_the_verdicts_are_those_of_capture(
    processes: Workers, tmp_path: Path, kind: str, expected: tuple[list[Any], dict[str, Any]]
) -> None:
    assert rows_and_counts(processes, tmp_path, kind) == expected


def test_a_damaged_blob_of_any_format_stops_the_run_or_is_quarantined(spark: "SparkSession", tmp_path: Path) -> None:
    archive(tmp_path, "CSV")
    path = put(tmp_path, "CSV", at(20), [(0, body("a", at(20)))])
    path.write_bytes(path.read_bytes()[:-9])
    os.utime(path, (at(25).timestamp(),) * 2)
    pipeline = defined(tmp_path, "CSV")
    with pytest.raises(RunError, match=r"^blob logs/2024/03/01/10-20/0/a.csv.gz is damaged: its gzip cannot be"):
        backfill(spark, pipeline, TEN, TEN + HOUR)
    report = backfill(spark, defined(tmp_path, "CSV", on_damaged_blob="quarantine"), TEN, TEN + HOUR)
    assert (report["metrics"]["DamagedBlobs"], report["metrics"]["InputEvents"]) == (1, 45)
    (row,) = [row for row in published(tmp_path / "table_quarantine", "1") if row["verdict"] == "damaged"]
    assert (row["blob"], row["body"]) == ("logs/2024/03/01/10-20/0/a.csv.gz", path.read_bytes())


def test_iot_hub_s_messages_may_arrive_by_enqueued_time(processes: Workers, tmp_path: Path) -> None:
    archive(tmp_path, "IoT Hub, Avro")
    pipeline = defined(tmp_path, "IoT Hub, Avro", arrival_time="EventEnqueuedUtcTime")
    report = backfill(processes, pipeline, TEN, TEN + HOUR)
    assert report["metrics"]["InputEvents"] == 49, "enqueued from 10:05 to 11:00"
    assert status(pipeline)["slices"][0]["rows"] == len(published(tmp_path / "table")) > 10
