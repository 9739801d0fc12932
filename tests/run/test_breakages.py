"""Twelve ways to break data, each injected into an hour of the sample world, and what the sample's suite says about it.

The table in docs/quality.md has a row for each; it is compared with the audits of these hours.
"""

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
import yaml

from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError
from recapture.execute.processes.workers import Workers
from recapture.run.plan import plan_run
from recapture.run_files.computed import Computed, read_computed, write_computed
from recapture.run_files.files import RunFiles
from recapture.tools.sample import SampleBlob, SampleEvent, capture_file, world, write_world
from tests.paths import ROOT
from tests.stages import audit
from tests.worlds import World, backfill, run_file, staged

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
ALWAYS = ("no event is malformed", "every event has a valid timestamp")
"""Built-in expectations that devices of the sample world never meet."""

Body = dict[str, Any]
Change = Callable[[int, Body], Iterable[Body]]
"""From the place of a blob in its hour (0 to 11) and a body to the bodies that are sent instead."""


def most_of_the_hour(change: Callable[[Body], Iterable[Body]]) -> Change:
    """Change the bodies in the middle of the hour, so that the hours around it stay as they are."""
    return lambda place, body: change(body) if 1 <= place <= 8 else [body]


def set_back(body: Body) -> Iterator[Body]:
    if body.get("eventTime"):
        text = body["eventTime"]
        back = datetime.fromisoformat(text[:19]) - HOUR
        body = {**body, "eventTime": f"{back:%Y-%m-%dT%H:%M:%S}{text[19:]}"}
    yield body


def renamed(body: Body) -> Iterator[Body]:
    yield {"temp" if name == "temperature" else name: value for name, value in body.items()}


CHANGES: dict[str, Change] = {
    "every clock is set back by an hour": most_of_the_hour(set_back),
    "every event is sent twice": most_of_the_hour(lambda body: [body, body]),
    "temperatures are in °F instead of °C": most_of_the_hour(
        lambda body: [{**body, "temperature": body["temperature"] * 1.8 + 32}]
    ),
    "temperatures are NULL": most_of_the_hour(lambda body: [{**body, "temperature": None}]),
    "the sensor of a device is stuck": lambda _, body: [
        {**body, "temperature": 23.5} if body["deviceId"] == "device-010" else body
    ],
    "the field temperature is renamed to temp": most_of_the_hour(renamed),
    "the field temperature becomes a record": most_of_the_hour(
        lambda body: [{**body, "temperature": {"value": body["temperature"], "unit": "C"}}]
    ),
    "a device is silent": lambda _, body: [] if body["deviceId"] == "device-002" else [body],
}
"""Breakages of events."""


def copied(place: int, blob: SampleBlob) -> list[SampleBlob]:
    if place != 3:
        return [blob]
    later = blob.last_modified + timedelta(minutes=1)
    return [blob, replace(blob, name=blob.name.replace("/00.avro", "/30.avro"), last_modified=later)]


BLOBS: dict[str, Callable[[int, SampleBlob], list[SampleBlob]]] = {
    "half of the time is missing": lambda place, blob: [] if 2 <= place <= 7 else [blob],
    "a blob is copied": copied,
    "a partition is gone": lambda place, blob: [] if place < 11 and "/telemetry/1/" in blob.name else [blob],
    "a blob is truncated": lambda place, blob: [
        replace(blob, content=blob.content[: len(blob.content) // 2]) if place == 3 else blob
    ],
}
"""Breakages of blobs."""

SOUND, REST = "nothing is broken", "nothing is broken before a truncated blob"
HOURS = [SOUND, *CHANGES, *BLOBS]
HOURS.insert(-1, REST)
"""What is broken in each hour of the second day.

An hour also reads the hours before it, for duplicates and watermarks, and the hour after it, for late events.
"""


def opened(blob: SampleBlob) -> datetime:
    """Return the start of a blob's capture window."""
    *_, year, month, day, hour, minute, _ = blob.name.removesuffix(".avro").split("/")
    return datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:00Z")


def broken(blobs: Iterable[SampleBlob]) -> Iterator[SampleBlob]:
    """Yield a world whose second day is broken, hour by hour. Its sequence numbers have no other gaps than before."""
    shifts: dict[str, int] = {}
    for blob in blobs:
        since = opened(blob) - FIRST_DAY - DAY
        if since < timedelta():
            yield blob
            continue
        breakage = HOURS[since // HOUR] if since < HOUR * len(HOURS) else SOUND
        place = since % HOUR // timedelta(minutes=5)
        partition = blob.name.split("/")[2]
        events, shifts[partition] = changed(blob, CHANGES.get(breakage), place, shifts.get(partition, 0))
        blob = replace(blob, content=capture_file(events))
        yield from BLOBS[breakage](place, blob) if breakage in BLOBS else [blob]


def changed(blob: SampleBlob, change: Change | None, place: int, shift: int) -> tuple[list[SampleEvent], int]:
    """Return the events of a blob after a change, and what to add to the sequence numbers after them."""
    events = []
    for record in fastavro.reader(io.BytesIO(blob.content)):
        assert isinstance(record, dict)
        enqueued = datetime.fromtimestamp(record["SystemProperties"]["x-opt-enqueued-time"] / 1000, UTC)
        bodies = [record["Body"]]
        if change is not None and record["Body"].startswith(b"{") and b"temperature" in record["Body"]:
            bodies = [json.dumps(body).encode() for body in change(place, json.loads(record["Body"]))]
        for content in bodies:
            number = record["SequenceNumber"] + shift
            events.append(SampleEvent(number, record["Offset"], enqueued, content))
            shift += 1
        shift -= 1
    return events, shift


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The sample's world, job and suite; one earlier day is enough to compare with."""
    home = World(tmp_path_factory.mktemp("breakages"))
    hours = 24 + len(HOURS) + 1
    write_world(broken(world(FIRST_DAY, hours, partitions=3, devices=14)), home.capture)
    suite = json.loads((ROOT / "expectations" / "telemetry.json").read_text("utf-8"))
    for expectation in suite["expectations"]:
        if "_near_earlier_days" in expectation["type"]:
            expectation["kwargs"]["min_days"] = 1
    home.home.joinpath("telemetry.json").write_text(json.dumps(suite))
    sample = yaml.safe_load((ROOT / "dags" / "pipelines" / "telemetry.yaml").read_text("utf-8"))
    return home.define(quality="telemetry.json", on_damaged_blob="quarantine", **sample["job"])


def caught(pipeline: Pipeline, table: Path, computed: str, start: datetime) -> list[str]:
    """Audit one slice of a run that computed several, and return the titles of what failed, with severities."""
    run = plan_run(pipeline, start, start + HOUR)
    folder = table / "_recapture"
    manifest = folder.joinpath(run.id, "manifest.json").read_bytes()
    shutil.copytree(folder / computed, folder / run.id, dirs_exist_ok=True)
    folder.joinpath(run.id, "manifest.json").write_bytes(manifest)
    whole = read_computed(RunFiles(run.files.container, computed))
    staged = tuple(file for file in whole.staged if file.slice_start in run.slices)
    metrics = tuple(row for row in whole.metrics if row.slice_start in run.slices)
    write_computed(run.files, Computed(staged, metrics))
    with contextlib.suppress(AuditError):
        audit(run)
    failed = [result for result in run_file(table, run.id, "audit.json")["json"]["results"] if not result["success"]]
    titles = [(result["title"], result["severity"]) for result in failed]
    return [f"{title} ({severity})" for title, severity in titles if title not in ALWAYS]


def test_the_page_says_which_expectation_catches_each_of_twelve_breakages(
    processes: Workers, pipeline: Pipeline
) -> None:
    backfill(processes, pipeline, FIRST_DAY, FIRST_DAY + HOUR * len(HOURS))
    table = pipeline.file.parent / "table"
    run = staged(processes, pipeline, FIRST_DAY + DAY, FIRST_DAY + DAY + HOUR * len(HOURS))
    found = {
        breakage: caught(pipeline, table, run.id, FIRST_DAY + DAY + HOUR * number)
        for number, breakage in enumerate(HOURS)
        if breakage != REST
    }
    assert found.pop(SOUND) == []
    assert found == table_of(ROOT / "docs" / "quality.md")


def table_of(page: Path) -> dict[str, list[str]]:
    """Return the rows of the page's table of breakages. The critical ones are those that stop the run."""
    _, _, section = page.read_text("utf-8").partition("## Twelve ways to break data")
    rows = re.findall(r"^\| ([^|]+) \| (yes|no) \| ([^|]+) \|$", section, re.MULTILINE)
    assert [(stops == "yes") is ("(critical)" in found) for _, stops, found in rows] == [True] * 12
    return {breakage: [text.strip() for text in found.split(";")] for breakage, _, found in rows}
