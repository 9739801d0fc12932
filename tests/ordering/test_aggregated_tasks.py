"""A task that aggregates gives, for each slice, the panes of exactly the events that it would have passed on."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.formats.event_hubs import CaptureReader
from recapture.ordering import chunks, panes
from recapture.ordering.order import Reading, order
from recapture.ordering.panes import SlicePanes
from recapture.ordering.task import Task, split
from recapture.query.model import CompiledInput
from recapture.storage import Blob, open_container
from recapture.time_model.slices import Slice
from recapture.tools.sample import SampleEvent
from tests.ordering.tasks import BY_DEVICE, HOUR, MINUTE, PLAIN, POLICIES, TEN, compiled, planned, put_events

ACROSS_SLICES = compiled(
    "SELECT COUNT(*) AS events INTO out FROM telemetry TIMESTAMP BY eventTime GROUP BY HoppingWindow(minute, 90, 30)"
)

LATENESS = (900, 700, 500, 290, 10)
"""Seconds from the times of the events of a blob to its arrival."""


def event(number: int, arrival: datetime, late: int) -> SampleEvent:
    time = arrival - timedelta(seconds=late)
    fields = {"eventTime": time.isoformat(), "deviceId": f"device-{number % 3}", "temperature": number / 7}
    return SampleEvent(number, str(number), arrival - MINUTE, json.dumps(fields).encode())


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a blob with late events every five minutes from half past eight on; a chunk has four of them."""
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 4 * len(LATENESS))
    for number in range(8, 66):
        arrival = TEN - 2 * HOUR + number * 5 * MINUTE
        put_events(tmp_path, arrival, [event(5 * number + n, arrival, late) for n, late in enumerate(LATENESS)])
    return tmp_path


def only_task(folder: Path, query: CompiledInput, arrival_time: ArrivalTime) -> Task:
    plan = planned(folder, query, POLICIES, hours=3, arrival_time=arrival_time)
    (task,) = split(plan.slices, plan.blobs, 10**9)
    return task


@pytest.mark.parametrize("arrival_time", ArrivalTime)
@pytest.mark.parametrize("query", [PLAIN, BY_DEVICE, ACROSS_SLICES], ids=["tumbling", "by device", "across slices"])
def test_each_slice_has_the_panes_of_its_events(archive: Path, query: CompiledInput, arrival_time: ArrivalTime) -> None:
    task = only_task(archive, query, arrival_time)
    container = open_container(archive.as_uri())
    events, event_counters = order(task, container, Reading(query, POLICIES, CaptureReader()))
    expected = {slice_: SlicePanes(slice_, task.partition, query.aggregations) for slice_ in event_counters}
    for batch in events:
        start, end = (batch[name][0].as_py() for name in ("_slice_start", "_slice_end"))
        expected[Slice(start, end)].add(batch)
    batches, pane_counters = order(task, container, Reading(query, POLICIES, CaptureReader()), aggregate=True)
    rows = pa.Table.from_batches(batches, panes.schema(query.aggregations)).to_pylist()
    assert sorted(map(repr, rows)) == sorted(
        repr(row) for slice_panes in expected.values() for batch in slice_panes.batches() for row in batch.to_pylist()
    )
    assert len(rows) > len(expected)
    assert [counters.metrics(POLICIES) for counters in pane_counters.values()] == [
        counters.metrics(POLICIES) for counters in event_counters.values()
    ]


@pytest.mark.parametrize("arrival_time", ArrivalTime)
def test_the_panes_of_a_slice_come_before_the_blobs_of_later_slices_are_read(
    archive: Path, arrival_time: ArrivalTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a task of many slices does not keep all of them in memory."""
    task = only_task(archive, PLAIN, arrival_time)
    container = open_container(archive.as_uri())
    read: list[str] = []

    def noted(blob: Blob) -> bytes:
        read.append(blob.name)
        return content(blob)

    content = container.read
    monkeypatch.setattr(container, "read", noted)
    batches, _ = order(task, container, Reading(PLAIN, POLICIES, CaptureReader()), aggregate=True)
    so_far = [len(read) for _ in batches]
    assert len(so_far) == 3
    assert so_far[0] < so_far[1] < so_far[2] == len(task.blobs)
