"""Tasks of a small archive: blobs in a folder, the plan of some hours, and the rows and counters of their tasks."""

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from recapture.archive.definitions import ArrivalTime, InputDefinition
from recapture.archive.pinning import PlannedInput, pin_input
from recapture.formats.event_hubs import CaptureInput, CaptureNames, CaptureReader
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order, schema
from recapture.ordering.quarantine import QUARANTINE_SCHEMA
from recapture.ordering.task import Task, split
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput
from recapture.storage import open_container
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, slices_between
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.time_model.verdicts import Verdict
from recapture.time_model.windows import HoppingWindow
from recapture.tools.sample import SampleEvent, capture_file

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
POLICIES = Policies(
    out_of_order_tolerance=0, late_tolerance=from_seconds(600), early_window=from_seconds(300), adjust=True
)
TUMBLING = (
    "SELECT COUNT(*) AS events INTO out FROM telemetry TIMESTAMP BY eventTime {} GROUP BY TumblingWindow(minute, 5)"
)


def compiled(text: str) -> CompiledInput:
    return compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["out"]).inputs[0]


PLAIN = compiled(TUMBLING.format(""))
BY_DEVICE = compiled(
    "SELECT deviceId, site.id AS site, AVG(temperature) AS warmth INTO out "
    "FROM telemetry TIMESTAMP BY eventTime OVER deviceId GROUP BY deviceId, site.id, HoppingWindow(minute, 10, 5)"
)
BY_ARRIVAL = compiled("SELECT COUNT(*) AS events INTO out FROM telemetry GROUP BY TumblingWindow(minute, 5)")


def put(folder: Path, arrival: datetime, bodies: Iterable[tuple[int, bytes]], opened: datetime | None = None) -> str:
    """Write a blob of partition 0 with these (sequence number, body); return its name."""
    events = (SampleEvent(number, str(number), arrival, body) for number, body in bodies)
    return put_events(folder, arrival, events, opened)


def put_events(
    folder: Path,
    arrival: datetime,
    events: Iterable[SampleEvent],
    opened: datetime | None = None,
    properties_with_null: bool = True,
) -> str:
    """Write a blob of partition 0 with these events; return its name."""
    name = f"contoso/telemetry/0/{opened or arrival - 5 * MINUTE:%Y/%m/%d/%H/%M/%S}.avro"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(capture_file(events, properties_with_null=properties_with_null))
    os.utime(path, (arrival.timestamp(),) * 2)
    return name


def at(time: datetime) -> bytes:
    return json.dumps({"eventTime": time.isoformat()}).encode()


def planned(
    folder: Path,
    query: CompiledInput,
    policies: Policies | None = POLICIES,
    first: int = 0,
    hours: int = 1,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
) -> PlannedInput:
    """Return the plan of `hours` slices from `first` hours after ten."""
    definition = InputDefinition(
        alias="telemetry",
        names=CaptureNames("contoso", "telemetry"),
        policies=policies,
        look_back=query.look_back,
        interval_seconds=300,
        reading={},
        arrival_time=arrival_time,
    )
    start = from_datetime(TEN + first * HOUR)
    slices = slices_between(start, start + hours * from_seconds(3600), from_seconds(3600))
    return pin_input(definition, open_container(folder.as_uri()), slices, TEN + 100 * HOUR)


Ordered = tuple[dict[Slice, pa.Table], dict[Slice, Counters]]


def ordered(
    folder: Path, query: CompiledInput, policies: Policies | None, task: Task, quarantine_damaged: bool = False
) -> Ordered:
    """Return the rows and the counters of each slice."""
    batches, counters = order(
        task, open_container(folder.as_uri()), Reading(query, policies, CaptureReader(), quarantine_damaged)
    )
    rows = pa.Table.from_batches(batches, schema(query))
    by_slice = {
        slice_: rows.filter(pa.compute.equal(rows["_slice_start"], slice_.start)).combine_chunks()
        for slice_ in counters
    }
    assert sum(table.num_rows for table in by_slice.values()) == rows.num_rows
    return by_slice, counters


def only(
    folder: Path,
    query: CompiledInput = PLAIN,
    policies: Policies | None = POLICIES,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
    quarantine_damaged: bool = False,
) -> tuple[pa.Table, Counters]:
    """Return the rows and the counters of the only partition for the hour from ten."""
    plan = planned(folder, query, policies, arrival_time=arrival_time)
    (task,) = split(plan.slices, plan.blobs, 1)
    rows, counters = ordered(folder, query, policies, task, quarantine_damaged)
    return rows[plan.slices[0].slice], counters[plan.slices[0].slice]


def system_times(rows: pa.Table) -> list[int]:
    """Return the System.Timestamps, in seconds after ten."""
    seconds = [(time - from_datetime(TEN)) / from_seconds(1) for time in rows["_system_timestamp"].to_pylist()]
    return [int(second) for second in seconds]


def verdicts(counted: Counters) -> dict[str, int]:
    return {verdict.name.lower(): int(counted.verdicts[verdict]) for verdict in Verdict if counted.verdicts[verdict]}


def quarantined(counted: Counters) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(counted.quarantine, QUARANTINE_SCHEMA).to_pylist()
    return rows


def spoil(path: Path, content: bytes) -> None:
    """Replace the content of a file, and keep its LastModified."""
    modified = path.stat().st_mtime
    path.write_bytes(content)
    os.utime(path, (modified,) * 2)


def copied(folder: Path, name: str, arrival: datetime, opened: datetime) -> str:
    """Write the same bytes under another name; return that name."""
    path = folder / f"contoso/telemetry/0/{opened:%Y/%m/%d/%H/%M/%S}.avro"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((folder / name).read_bytes())
    os.utime(path, (arrival.timestamp(),) * 2)
    return str(path.relative_to(folder))


ENQUEUED = ArrivalTime.EVENT_ENQUEUED


def sent(number: int, enqueued: datetime, time: datetime | None = None) -> SampleEvent:
    return SampleEvent(number, str(number), enqueued, at(time or enqueued))


def all_tasks(
    folder: Path,
    query: CompiledInput,
    policies: Policies | None,
    task_bytes: int,
    first: int,
    hours: int,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
    quarantine_damaged: bool = False,
) -> dict[tuple[str, Slice], tuple[pa.Table, Counters]]:
    """Return the rows and counters of every partition and slice, from one task after the other."""
    plan = planned(folder, query, policies, first, hours, arrival_time)
    slices = {}
    for task in split(plan.slices, plan.blobs, task_bytes):
        rows, counters = ordered(folder, query, policies, task, quarantine_damaged)
        for slice_ in rows:
            assert (task.partition, slice_) not in slices
            slices[task.partition, slice_] = (rows[slice_], counters[slice_])
    return slices


def plain(counted: Counters) -> dict[str, Any]:
    return vars(counted) | {
        "verdicts": counted.verdicts.tolist(),
        "quarantine": quarantined(counted),
        "open_gaps": gaps(counted),
        "profile": counted.profile.table(counted.input, counted.partition).to_pylist(),
    }


def gaps(counted: Counters) -> list[tuple[int, int]]:
    ranges = [gaps.ranges for gaps in counted.open_gaps]
    return [bounds for range_ in ranges for bounds in zip(range_.first.tolist(), range_.last.tolist(), strict=True)]


def reaches(query: CompiledInput, time: int, slice_: Slice) -> bool:
    """Return whether a window that ends in the slice holds the time. Ends are multiples of the hop."""
    window = query.reaches[0].window
    assert isinstance(window, HoppingWindow)
    hop, size = window.hop, window.size
    first_end = max(-(-time // hop), slice_.start // hop + 1) * hop
    return first_end <= slice_.end and first_end < time + size
