"""One task of a run: a partition's blobs in arrival order, judged in one pass (docs/time-model.md, sections 1 to 3)."""

import errno
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recapture.archive.manifest import ArrivalTime, Manifest, PinnedBlob, RowDefinition, pin_blobs
from recapture.errors import RunError
from recapture.formats.avro import decode
from recapture.formats.event_hubs import EVENT_DATA, CaptureInput, CaptureNames, CaptureReader
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT
from recapture.model import AsaType, FirstOf, InputColumn, Instant, Metadata, MetadataColumn, Shifted
from recapture.ordering import chunks, decoding
from recapture.ordering.counters import Counters, FurthestAhead
from recapture.ordering.order import order, schema
from recapture.ordering.quarantine import QUARANTINE_SCHEMA
from recapture.ordering.task import Task, split
from recapture.query import CompiledQuery, compile_query
from recapture.sample import SampleEvent, capture_file, write_world
from recapture.sample import world as sample_world
from recapture.storage import open_container
from recapture.time_model import timestamps
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, slices_between
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, UNIX_EPOCH, from_datetime, from_seconds
from recapture.time_model.verdicts import Verdict
from recapture.time_model.windows import HoppingWindow
from tests.draws import examples
from tests.oracle import VERDICTS, Event, Outcome, Policy, judge_event, process, slice_metrics

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
POLICIES = Policies(
    out_of_order_tolerance=0, late_tolerance=from_seconds(600), early_window=from_seconds(300), adjust=True
)
TUMBLING = (
    "SELECT COUNT(*) AS events INTO out FROM telemetry TIMESTAMP BY eventTime {} GROUP BY TumblingWindow(minute, 5)"
)


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, input_alias="telemetry", output_aliases=["out"], input_metadata=CaptureInput.metadata)


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
    query: CompiledQuery,
    policies: Policies | None = POLICIES,
    first: int = 0,
    hours: int = 1,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
) -> Manifest:
    """Return the manifest of `hours` slices from `first` hours after ten."""
    names = CaptureNames("contoso", "telemetry")
    definition = RowDefinition("t", names, "1", "", policies, query.look_back, 300, "telemetry", {}, arrival_time)
    start = from_datetime(TEN + first * HOUR)
    slices = slices_between(start, start + hours * from_seconds(3600), from_seconds(3600))
    return pin_blobs(definition, open_container(folder.as_uri()), slices, TEN + 100 * HOUR)


Ordered = tuple[dict[Slice, pa.Table], dict[Slice, Counters]]


def ordered(
    folder: Path, query: CompiledQuery, policies: Policies | None, task: Task, quarantine_damaged: bool = False
) -> Ordered:
    """Return the rows and the counters of each slice."""
    batches, counters = order(
        task, open_container(folder.as_uri()), query, policies, CaptureReader(), quarantine_damaged=quarantine_damaged
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
    query: CompiledQuery = PLAIN,
    policies: Policies | None = POLICIES,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
    quarantine_damaged: bool = False,
) -> tuple[pa.Table, Counters]:
    """Return the rows and the counters of the only partition for the hour from ten."""
    manifest = planned(folder, query, policies, arrival_time=arrival_time)
    (task,) = split(manifest.slices, manifest.blobs, 1)
    rows, counters = ordered(folder, query, policies, task, quarantine_damaged)
    return rows[manifest.slices[0].slice], counters[manifest.slices[0].slice]


def system_times(rows: pa.Table) -> list[int]:
    """Return the System.Timestamps, in seconds after ten."""
    seconds = [(time - from_datetime(TEN)) / from_seconds(1) for time in rows["_system_timestamp"].to_pylist()]
    return [int(second) for second in seconds]


def verdicts(counted: Counters) -> dict[str, int]:
    return {verdict.name.lower(): int(counted.verdicts[verdict]) for verdict in Verdict if counted.verdicts[verdict]}


def quarantined(counted: Counters) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(counted.quarantine, QUARANTINE_SCHEMA).to_pylist()
    return rows


# Order


def test_within_a_partition_arrival_comes_before_the_sequence_number(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(7, at(TEN + 9 * MINUTE)), (8, at(TEN + 8 * MINUTE))])
    put(tmp_path, TEN + 20 * MINUTE, [(1, at(TEN + 14 * MINUTE)), (2, at(TEN + 13 * MINUTE))])
    rows, _ = only(tmp_path)
    assert system_times(rows) == [540, 540, 840, 840]


def test_in_a_tie_of_last_modified_the_sequence_numbers_decide_across_blobs(tmp_path: Path) -> None:
    """The order of the blobs' names does not matter."""
    arrival = TEN + 10 * MINUTE
    put(tmp_path, arrival, [(3, at(TEN + 9 * MINUTE)), (1, at(TEN + 6 * MINUTE))], opened=TEN)
    put(tmp_path, arrival, [(2, at(TEN + 8 * MINUTE)), (4, at(TEN + 7 * MINUTE))], opened=TEN + MINUTE)
    rows, counted = only(tmp_path)
    assert system_times(rows) == [360, 480, 540, 540]
    assert verdicts(counted) == {"on_time": 3, "out_of_order_adjusted": 1}
    assert counted.blobs == 2


@pytest.mark.parametrize("chunk", [1, 2, 1 << 20])
def test_the_watermark_is_carried_from_chunk_to_chunk(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", chunk)
    for n in range(6):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (9 - n % 3) * MINUTE))])
    rows, counted = only(tmp_path)
    assert system_times(rows) == [540] * 6
    assert verdicts(counted) == {"on_time": 2, "out_of_order_adjusted": 4}


def test_large_events_do_not_wait_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    for n in range(3):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (5 + n) * MINUTE))])
    manifest = planned(tmp_path, PLAIN)
    (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
    batches, _ = order(
        task, open_container(tmp_path.as_uri()), PLAIN, POLICIES, CaptureReader(), quarantine_damaged=False
    )
    assert [batch.num_rows for batch in batches] == [1, 1, 1]


def test_an_event_is_in_every_slice_in_which_one_of_its_windows_ends(tmp_path: Path) -> None:
    query = compiled(TUMBLING.format("").replace("TumblingWindow(minute, 5)", "HoppingWindow(minute, 120, 60)"))
    put(tmp_path, TEN + 31 * MINUTE, [(1, at(TEN + 30 * MINUTE))])
    manifest = planned(tmp_path, query, hours=3)
    (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
    rows, counters = ordered(tmp_path, query, POLICIES, task)
    assert [table.num_rows for table in rows.values()] == [1, 1, 0]
    assert [counted.events for counted in counters.values()] == [1, 0, 0], "counted where it arrived, once"


def test_an_event_at_the_end_of_a_slice_is_in_it_and_not_in_the_next(tmp_path: Path) -> None:
    put(tmp_path, TEN + HOUR, [(1, at(TEN + HOUR)), (2, at(TEN + HOUR + timedelta(microseconds=1)))])
    manifest = planned(tmp_path, PLAIN, hours=2)
    (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
    rows, counters = ordered(tmp_path, PLAIN, POLICIES, task)
    assert [table.num_rows for table in rows.values()] == [1, 1]
    assert [counted.events for counted in counters.values()] == [2, 0]


def test_without_timestamp_by_the_arrival_is_the_time_and_no_policy_applies(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, b"{}"), (2, at(TEN - 90 * HOUR)), (3, b"[]")])
    rows, counted = only(tmp_path, BY_ARRIVAL, policies=None)
    assert system_times(rows) == [600, 600]
    assert verdicts(counted) == {"on_time": 2, "malformed": 1}


def test_disorder_is_judged_by_the_over_key(tmp_path: Path) -> None:
    def of(device: str, minute: int) -> bytes:
        return json.dumps({"deviceId": device, "eventTime": (TEN + minute * MINUTE).isoformat()}).encode()

    put(tmp_path, TEN + 10 * MINUTE, [(1, of("a", 9)), (2, of("b", 5)), (3, of("a", 6)), (4, of("b", 6))])
    rows, counted = only(tmp_path, BY_DEVICE)
    assert system_times(rows) == [540, 300, 540, 360]
    assert rows["deviceId"].to_pylist() == ["a", "b", "a", "b"]
    assert verdicts(counted) == {"on_time": 3, "out_of_order_adjusted": 1}


def test_the_rows_have_the_columns_that_the_query_reads(tmp_path: Path) -> None:
    body = b'{"deviceId":"a","eventTime":"2026-03-01T10:09:00Z","temperature":20.5,"site":{"id":"s"},"more":1}'
    put(tmp_path, TEN + 10 * MINUTE, [(1, body)])
    rows, _ = only(tmp_path, BY_DEVICE)
    assert rows.schema == schema(BY_DEVICE)
    assert rows.to_pylist() == [
        {
            "_partition": "0",
            "_slice_start": from_datetime(TEN),
            "_slice_end": from_datetime(TEN + HOUR),
            "_system_timestamp": from_datetime(TEN + 9 * MINUTE),
            "deviceId": "a",
            "temperature": 20.5,
            "site.id": "s",
        }
    ]


# The law


def test_each_kind_of_event_has_its_verdict_and_unusable_events_are_quarantined(tmp_path: Path) -> None:
    arrival = TEN + 30 * MINUTE
    bodies = [
        at(TEN + 29 * MINUTE),
        at(TEN + 36 * MINUTE),
        at(TEN + 10 * MINUTE),
        at(TEN + 28 * MINUTE),
        b"{}",
        b'{"eventTime":null}',
        b'{"eventTime":"noon"}',
        b"caf\xe9",
        b"",
        b"[]",
    ]
    name = put(tmp_path, arrival, enumerate(bodies, 100))
    rows, counted = only(tmp_path)
    assert verdicts(counted) == {
        "on_time": 1,
        "early_dropped": 1,
        "out_of_order_adjusted": 2,
        "invalid_timestamp": 3,
        "malformed": 3,
    }
    assert system_times(rows) == [29 * 60] * 3
    assert (counted.events, counted.event_bytes, counted.blobs) == (10, sum(map(len, bodies)), 1)
    assert (counted.late, counted.out_of_order) == (1, 2)
    expected = [
        (104, "invalid_timestamp", "eventTime is missing or null"),
        (105, "invalid_timestamp", "eventTime is missing or null"),
        (106, "invalid_timestamp", "eventTime is not a time"),
        (107, "malformed", "not UTF-8"),
        (108, "malformed", "not JSON"),
        (109, "malformed", "not a JSON object"),
    ]
    etag = next(open_container(tmp_path.as_uri()).list(name)).etag
    assert quarantined(counted) == [
        {
            "input": "telemetry",
            "partition": "0",
            "sequence_number": number,
            "place": None,
            "blob": name,
            "etag": etag,
            "verdict": verdict,
            "reason": reason,
            "body": bodies[number - 100],
        }
        for number, verdict, reason in expected
    ]


def test_a_missing_over_key_is_an_invalid_timestamp(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 9 * MINUTE))])
    rows, counted = only(tmp_path, BY_DEVICE)
    assert rows.num_rows == 0
    assert [row["reason"] for row in quarantined(counted)] == ["the OVER key deviceId is missing or null"]


def test_each_quarantine_row_names_its_own_blob_in_a_tie(tmp_path: Path) -> None:
    first = put(tmp_path, TEN + 10 * MINUTE, [(3, b"3"), (1, b"1")], opened=TEN)
    second = put(tmp_path, TEN + 10 * MINUTE, [(2, b"2")], opened=TEN + MINUTE)
    _, counted = only(tmp_path)
    rows = [(row["sequence_number"], row["blob"], row["body"]) for row in quarantined(counted)]
    assert rows == [(1, first, b"1"), (2, second, b"2"), (3, first, b"3")]


def test_empty_blobs_are_counted_as_sources(tmp_path: Path) -> None:
    for minute in (0, 10, 20, 60, 65):
        put(tmp_path, TEN + minute * MINUTE, [])
    rows, counted = only(tmp_path)
    assert rows.num_rows == 0
    assert (counted.events, counted.blobs) == (0, 3), "what arrives at the start belongs to the slice before"


def test_a_damaged_blob_stops_the_task(tmp_path: Path) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-5])
    os.utime(path, ((TEN + 10 * MINUTE).timestamp(),) * 2)
    with pytest.raises(RunError, match=rf"^blob {name} is damaged: it is cut off"):
        only(tmp_path)


def test_a_blob_that_changed_since_it_was_planned_stops_the_task(tmp_path: Path) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    manifest = planned(tmp_path, PLAIN)
    put(tmp_path, TEN + 11 * MINUTE, [(1, at(TEN + MINUTE))], opened=TEN + 5 * MINUTE)
    (task,) = split(manifest.slices, manifest.blobs, 1)
    with pytest.raises(RunError, match=rf"^blob {name} changed since it was planned"):
        ordered(tmp_path, PLAIN, POLICIES, task)


# Damaged blobs


def spoil(path: Path, content: bytes) -> None:
    """Replace the content of a file, and keep its LastModified."""
    modified = path.stat().st_mtime
    path.write_bytes(content)
    os.utime(path, (modified,) * 2)


@pytest.mark.parametrize("arrival_time", list(ArrivalTime))
def test_a_damaged_blob_may_be_quarantined_with_its_bytes(tmp_path: Path, arrival_time: ArrivalTime) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 5 * MINUTE))])
    name = put(tmp_path, TEN + 20 * MINUTE, [(2, at(TEN + 15 * MINUTE))])
    put(tmp_path, TEN + 30 * MINUTE, [(3, at(TEN + 25 * MINUTE))])
    content = (tmp_path / name).read_bytes()[:-5]
    spoil(tmp_path / name, content)
    rows, counted = only(tmp_path, arrival_time=arrival_time, quarantine_damaged=True)
    assert system_times(rows) == [300, 1500]
    assert (counted.events, counted.blobs, counted.damaged, counted.whole) == (2, 3, 1, False)
    assert verdicts(counted) == {"on_time": 2}
    assert gaps(counted) == [(2, 2)], "what it held is missing"
    (row,) = quarantined(counted)
    assert row.pop("etag")
    assert row.pop("reason").startswith("it is cut off: its block at byte ")
    nothing = {"sequence_number": None, "place": None}
    place = {"input": "telemetry", "partition": "0", "blob": name}
    assert row == nothing | place | {"verdict": "damaged", "body": content}


@dataclass(frozen=True)
class Stumbling:
    """A `Reader` that raises an error for every blob with events."""

    error: Exception
    limits = DEFAULT
    numbered = True

    def read(self, pinned: PinnedBlob, content: bytes, metadata: Sequence[MetadataColumn]) -> Events:
        events = CaptureReader().read(pinned, content, metadata)
        if len(events.number):
            raise self.error
        return events


def read_by(folder: Path, reader: Reader, quarantine_damaged: bool) -> Counters:
    """Return the counters of the hour from ten, read by this reader."""
    manifest = planned(folder, PLAIN)
    (task,) = split(manifest.slices, manifest.blobs, 1)
    batches, counters = order(
        task, open_container(folder.as_uri()), PLAIN, POLICIES, reader, quarantine_damaged=quarantine_damaged
    )
    assert list(batches) == []
    return counters[manifest.slices[0].slice]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
        (MemoryError(), "MemoryError"),
        (pa.ArrowInvalid("offset overflow"), "ArrowInvalid: offset overflow"),
        (OverflowError("too large\nin two lines"), "OverflowError: too large"),
    ],
)
def test_any_error_that_a_blob_causes_in_its_reader_is_damage_of_that_blob(
    tmp_path: Path, error: Exception, reason: str
) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    put(tmp_path, TEN + 20 * MINUTE, [])
    with pytest.raises(RunError, match=rf"^blob {name} is damaged: it cannot be read \({re.escape(reason)}\); restore"):
        read_by(tmp_path, Stumbling(error), quarantine_damaged=False)
    counted = read_by(tmp_path, Stumbling(error), quarantine_damaged=True)
    assert (counted.blobs, counted.damaged) == (2, 1)
    assert [(row["blob"], row["reason"]) for row in quarantined(counted)] == [(name, f"it cannot be read ({reason})")]


@pytest.mark.parametrize("quarantine_damaged", [False, True])
def test_a_full_disk_is_not_damage_of_a_blob(tmp_path: Path, quarantine_damaged: bool) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(RunError, match=rf"^cannot unpack blob {name}: No space left on device$"):
        read_by(tmp_path, Stumbling(full), quarantine_damaged)


def test_avro_files_with_only_a_header_are_empty_and_counted(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 5 * MINUTE))])
    put(tmp_path, TEN + 15 * MINUTE, [])
    names = [put(tmp_path, TEN + minutes * MINUTE, []) for minutes in (20, 25)]
    for name in names:
        spoil(tmp_path / name, (tmp_path / name).read_bytes()[:-18])
    rows, counted = only(tmp_path)
    assert rows.num_rows == 1
    assert (counted.blobs, counted.damaged, counted.without_block) == (4, 0, names)


def test_a_large_damaged_blob_is_quarantined_without_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LARGEST_QUARANTINED", 3)
    for minute, content in ((10, b"abc"), (20, b"abcd")):
        spoil(tmp_path / put(tmp_path, TEN + minute * MINUTE, []), content)
    _, counted = only(tmp_path, quarantine_damaged=True)
    assert [row["body"] for row in quarantined(counted)] == [b"abc", None]


def test_a_blob_that_does_not_match_its_content_md5_is_quarantined_without_its_bytes(tmp_path: Path) -> None:
    """The bytes that were written are not known."""
    name = put(tmp_path, TEN + 20 * MINUTE, [(2, at(TEN + 15 * MINUTE))])
    manifest = planned(tmp_path, PLAIN)
    (task,) = split(manifest.slices, manifest.blobs, 1)
    (pinned,) = task.blobs
    mismatched = replace(pinned, blob=replace(pinned.blob, md5="AAAAAAAAAAAAAAAAAAAAAA=="))
    _, counters = ordered(tmp_path, PLAIN, POLICIES, replace(task, blobs=(mismatched,)), True)
    (row,) = quarantined(counters[manifest.slices[0].slice])
    assert (row["blob"], row["verdict"], row["body"]) == (name, "damaged", None)
    assert row["reason"].startswith("its Content-MD5 is AAAAAAAAAAAAAAAAAAAAAA==")


def test_a_slice_knows_of_all_damage_that_it_reads_and_counts_what_arrived_in_it(tmp_path: Path) -> None:
    """It reads from a quarter to nine, for duplicates, to ten past eleven, for late events."""
    for minutes, whole in ((-75, False), (-76, True), (30, False), (65, False), (80, True)):
        name = put(tmp_path, TEN + minutes * MINUTE, [])
        spoil(tmp_path / name, b"")
        put(tmp_path, TEN + 40 * MINUTE, [(2, at(TEN + 35 * MINUTE))])
        manifest = planned(tmp_path, PLAIN, hours=3, first=-1)
        (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
        _, counters = ordered(tmp_path, PLAIN, POLICIES, task, True)
        counted = counters[manifest.slices[1].slice]
        assert (counted.whole, counted.damaged) == (whole, int(minutes == 30)), minutes
        (tmp_path / name).unlink()


# Duplicates and gaps


def copied(folder: Path, name: str, arrival: datetime, opened: datetime) -> str:
    """Write the same bytes under another name; return that name."""
    path = folder / f"contoso/telemetry/0/{opened:%Y/%m/%d/%H/%M/%S}.avro"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((folder / name).read_bytes())
    os.utime(path, (arrival.timestamp(),) * 2)
    return str(path.relative_to(folder))


@pytest.mark.parametrize("arrival_time", list(ArrivalTime))
def test_only_the_first_arrival_of_an_event_is_used(tmp_path: Path, arrival_time: ArrivalTime) -> None:
    """A duplicate of an event that is early, late, malformed or untimed is a duplicate, and has no verdict."""
    arrival = TEN + 30 * MINUTE
    bodies = [at(arrival - MINUTE), at(arrival + 20 * MINUTE), at(TEN - HOUR), b"[]", b"{}"]
    events = [SampleEvent(n, "", arrival - 4 * MINUTE, body) for n, body in enumerate(bodies, 7)]
    name = put_events(tmp_path, arrival, events)
    rows, once = only(tmp_path, arrival_time=arrival_time)
    copied(tmp_path, name, arrival + 20 * MINUTE, arrival - 4 * MINUTE)
    again, twice = only(tmp_path, arrival_time=arrival_time)
    assert again.equals(rows)
    assert (twice.events, twice.duplicates, twice.blobs) == (10, 5, 2)
    assert twice.event_bytes == 2 * once.event_bytes
    changed = {"planned_slice", "events", "event_bytes", "blobs", "duplicates"}
    assert {key: value for key, value in plain(twice).items() if key not in changed} == {
        key: value for key, value in plain(once).items() if key not in changed
    }


def test_by_enqueued_time_a_duplicate_is_recognised_however_late_its_blob_was_written(tmp_path: Path) -> None:
    events = [SampleEvent(n, "", TEN + 8 * MINUTE, at(TEN + 8 * MINUTE)) for n in range(3)]
    name = put_events(tmp_path, TEN + 10 * MINUTE, events)
    copied(tmp_path, name, TEN + 90 * HOUR, TEN + 6 * MINUTE)
    rows, counted = only(tmp_path, arrival_time=ENQUEUED)
    assert (rows.num_rows, counted.events, counted.duplicates) == (3, 6, 3)


def test_a_duplicate_does_not_move_the_watermark(tmp_path: Path) -> None:
    """If it were used, it would be late: its time would be adjusted, and move the watermark past the next event."""
    name = put(tmp_path, TEN + 5 * MINUTE, [(1, at(TEN + 4 * MINUTE))])
    copied(tmp_path, name, TEN + 50 * MINUTE, TEN + MINUTE)
    put(tmp_path, TEN + 50 * MINUTE, [(2, at(TEN + 41 * MINUTE))], opened=TEN + 46 * MINUTE)
    rows, counted = only(tmp_path, policies=replace(POLICIES, late_tolerance=from_seconds(540)))
    assert system_times(rows) == [240, 2460]
    assert (verdicts(counted), counted.duplicates) == ({"on_time": 2}, 1)


def test_an_event_twice_in_one_blob_is_used_once(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(n, at(TEN + 5 * MINUTE)) for n in (3, 1, 2, 3, 1)])
    rows, counted = only(tmp_path)
    assert (rows.num_rows, counted.events, counted.duplicates) == (3, 5, 2)


def test_a_gap_counts_in_the_slice_that_holds_the_arrival_after_it(tmp_path: Path) -> None:
    put(tmp_path, TEN + 55 * MINUTE, [(1, at(TEN)), (4, at(TEN))])
    put(tmp_path, TEN + 65 * MINUTE, [(9, at(TEN + HOUR))])
    slices = all_tasks(tmp_path, PLAIN, POLICIES, 1 << 40, 0, 2)
    assert [gaps(counted) for _, counted in slices.values()] == [[(2, 3)], [(5, 8)]]


@pytest.mark.parametrize(("minutes", "missing"), [(70, []), (71, [(2, 2)])])
def test_an_event_that_arrives_within_what_a_slice_reads_is_not_missing_in_it(
    tmp_path: Path, minutes: int, missing: list[tuple[int, int]]
) -> None:
    put(tmp_path, TEN + 50 * MINUTE, [(1, at(TEN)), (3, at(TEN))])
    event = SampleEvent(2, "", TEN + 50 * MINUTE, at(TEN))
    put_events(tmp_path, TEN + minutes * MINUTE, [event])
    for hours in (1, 2):
        slices = all_tasks(tmp_path, PLAIN, POLICIES, 1 << 40, 0, hours)
        assert gaps(next(iter(slices.values()))[1]) == missing


# Metadata and times

EVENT_TIME = InputColumn(("eventTime",), AsaType.DATETIME)
MILLISECONDS = InputColumn(("ms",), AsaType.BIGINT)
SINCE_1970 = Shifted(TICKS_PER_MILLISECOND, MILLISECONDS, Instant(UNIX_EPOCH))


def test_the_rows_have_the_metadata_that_the_query_reads(tmp_path: Path) -> None:
    """Only the metadata that the query reads is in the rows, after the body's columns."""
    columns = [MetadataColumn(kind) for kind in CaptureInput.metadata.known if kind is not Metadata.USER]
    columns.append(MetadataColumn(Metadata.USER, "firmware"))
    query = replace(PLAIN, metadata=tuple(columns))
    arrival = TEN + 10 * MINUTE
    event = SampleEvent(7, "96", TEN + 9 * MINUTE, at(TEN + 8 * MINUTE), "key", {"firmware": 2})
    name = put_events(tmp_path, arrival, [event])
    rows, _ = only(tmp_path, query)
    assert rows.schema == schema(query)
    (row,) = rows.select([column.name for column in columns]).to_pylist()
    assert row == {
        "@PartitionId": 0,
        "@EventEnqueuedUtcTime": from_datetime(TEN + 9 * MINUTE),
        "@EventProcessedUtcTime": from_datetime(arrival),
        "@BlobName": name,
        "@BlobLastModifiedUtcTime": from_datetime(arrival),
        "@SequenceNumber": 7,
        "@Offset": "96",
        "@PartitionKey": "key",
        "@Publisher": None,
        "@User.firmware": "2",
    }


def test_metadata_follows_its_event_when_events_are_reordered(tmp_path: Path) -> None:
    query = replace(PLAIN, metadata=(MetadataColumn(Metadata.SEQUENCE_NUMBER), MetadataColumn(Metadata.USER, "n")))
    arrival = TEN + 10 * MINUTE
    for minute, numbers in ((0, (3, 1)), (1, (4, 2))):
        events = [SampleEvent(n, "", arrival, at(TEN + n * MINUTE), None, {"n": f"n{n}"}) for n in numbers]
        put_events(tmp_path, arrival, events, opened=TEN + minute * MINUTE)
    rows, _ = only(tmp_path, query)
    assert rows["@SequenceNumber"].to_pylist() == [1, 2, 3, 4]
    assert rows["@User.n"].to_pylist() == ["n1", "n2", "n3", "n4"]


def test_blobs_with_the_schema_of_2016_and_with_today_s_are_read_together(tmp_path: Path) -> None:
    query = replace(PLAIN, metadata=(MetadataColumn(Metadata.USER, "n"),))
    for n, with_null in enumerate((False, True)):
        arrival = TEN + (10 + n) * MINUTE
        event = SampleEvent(n, "", arrival, at(arrival), None, {"n": n})
        put_events(tmp_path, arrival, [event], properties_with_null=with_null)
    rows, _ = only(tmp_path, query)
    assert rows["@User.n"].to_pylist() == ["0", "1"]


@pytest.mark.parametrize("kind", [Metadata.PARTITION_KEY, Metadata.PARTITION_ID])
def test_disorder_may_be_judged_by_metadata(tmp_path: Path, kind: Metadata) -> None:
    query = replace(PLAIN, over=(MetadataColumn(kind),))
    arrival = TEN + 10 * MINUTE
    sent = [("a", 9), ("b", 5), (None, 5), ("a", 6), ("b", 6)]
    put_events(
        tmp_path,
        arrival,
        [SampleEvent(n, "", arrival, at(TEN + minute * MINUTE), key) for n, (key, minute) in enumerate(sent)],
    )
    rows, counted = only(tmp_path, query)
    if kind is Metadata.PARTITION_KEY:
        assert system_times(rows) == [540, 300, 540, 360]
        assert [row["reason"] for row in quarantined(counted)] == ["the OVER key @PartitionKey is missing or null"]
    else:
        assert system_times(rows) == [540] * 5


def test_the_application_time_may_come_from_several_fields(tmp_path: Path) -> None:
    """An event without a time is quarantined with the field's name; it is not malformed."""
    query = replace(PLAIN, timestamp_by=FirstOf((EVENT_TIME, SINCE_1970)))
    since = int((TEN + 3 * MINUTE).timestamp() * 1000)
    bodies = [at(TEN + 2 * MINUTE), b'{"ms":%d}' % since, b'{"ms":"x"}', b'{"ms":%d}' % 2**62, b'{"eventTime":"x"}']
    put(tmp_path, TEN + 10 * MINUTE, enumerate(bodies))
    rows, counted = only(tmp_path, query)
    assert system_times(rows) == [120, 180]
    assert [(row["verdict"], row["reason"]) for row in quarantined(counted)] == [
        ("invalid_timestamp", "ms is not a bigint"),
        ("invalid_timestamp", "ms gives a time outside the years 1 to 9999"),
        ("invalid_timestamp", "eventTime is not a time"),
    ]


def test_the_application_time_may_be_the_enqueued_time(tmp_path: Path) -> None:
    query = replace(PLAIN, timestamp_by=MetadataColumn(Metadata.EVENT_ENQUEUED))
    events = [SampleEvent(n, "", TEN + n * MINUTE, b"{}") for n in (1, 2)]
    put_events(tmp_path, TEN + 10 * MINUTE, events)
    rows, counted = only(tmp_path, query)
    assert system_times(rows) == [60, 120]
    assert verdicts(counted) == {"on_time": 2}


# The early window


def test_an_early_event_may_be_adjusted(tmp_path: Path) -> None:
    """It is moved to its arrival plus the early window, and moves the watermark there."""
    arrival = TEN + 10 * MINUTE
    name = put(tmp_path, arrival, [(1, at(arrival + 6 * MINUTE)), (2, at(arrival)), (3, at(arrival + 5 * MINUTE))])
    rows, counted = only(tmp_path, policies=replace(POLICIES, adjust_early=True))
    assert system_times(rows) == [900, 900, 900]
    assert verdicts(counted) == {"early_adjusted": 1, "out_of_order_adjusted": 1, "on_time": 1}
    assert counted.early == 1
    assert counted.furthest_ahead == FurthestAhead(from_seconds(300), 3, name, True)
    rows, counted = only(tmp_path)
    assert system_times(rows) == [600, 900]
    assert verdicts(counted) == {"early_dropped": 1, "on_time": 2}
    assert counted.early == 1


def test_without_an_early_window_a_slice_gives_the_same_alone_and_in_a_range(tmp_path: Path) -> None:
    """A task of its own reads the slice as if the window were on, and does not see a clock that runs far ahead."""
    without = replace(POLICIES, early_window=None)
    put(tmp_path, TEN - 30 * MINUTE, [(1, at(TEN + 30 * MINUTE))])
    put(tmp_path, TEN + 10 * MINUTE, [(2, at(TEN + 5 * MINUTE)), (3, at(TEN + 50 * MINUTE)), (4, at(TEN + 6 * MINUTE))])
    together = all_tasks(tmp_path, PLAIN, without, 1 << 40, -1, 3)
    for hour in (-1, 0, 1):
        for key, (rows, counted) in all_tasks(tmp_path, PLAIN, without, 1 << 40, hour, 1).items():
            assert rows.equals(together[key][0])
            assert plain(counted) == plain(together[key][1])
    rows, counted = together["0", Slice(from_datetime(TEN), from_datetime(TEN + HOUR))]
    assert system_times(rows) == [300, 3000, 3000]
    assert verdicts(counted) == {"on_time": 2, "out_of_order_adjusted": 1}


# By enqueued time

ENQUEUED = ArrivalTime.EVENT_ENQUEUED


def sent(number: int, enqueued: datetime, time: datetime | None = None) -> SampleEvent:
    return SampleEvent(number, str(number), enqueued, at(time or enqueued))


def test_the_sequence_number_decides_the_order_whatever_the_enqueued_time(tmp_path: Path) -> None:
    """It decides within a blob and from blob to blob (docs/time-model.md, section 1.1)."""
    events = [sent(2, TEN + 8 * MINUTE), sent(1, TEN + 9 * MINUTE)]
    put_events(tmp_path, TEN + 11 * MINUTE, events, opened=TEN + 5 * MINUTE)
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(3, TEN + 7 * MINUTE)], opened=TEN + 9 * MINUTE)
    rows, counted = only(tmp_path, arrival_time=ENQUEUED)
    assert system_times(rows) == [540, 540, 540]
    assert verdicts(counted) == {"on_time": 1, "out_of_order_adjusted": 2}
    rows, counted = only(tmp_path)
    assert system_times(rows) == [420, 540, 540], "by LastModified the other blob comes first"


def test_each_event_is_judged_by_its_own_arrival(tmp_path: Path) -> None:
    late = replace(POLICIES, late_tolerance=from_seconds(60))
    first, second = TEN + 5 * MINUTE, TEN + 9 * MINUTE
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, first, TEN), sent(2, second, second - MINUTE)])
    rows, counted = only(tmp_path, policies=late, arrival_time=ENQUEUED)
    assert system_times(rows) == [4 * 60, 8 * 60]
    assert verdicts(counted) == {"late_adjusted": 1, "on_time": 1}
    rows, counted = only(tmp_path, policies=late)
    assert verdicts(counted) == {"late_adjusted": 2}


def test_an_event_is_counted_in_the_slice_of_its_own_arrival_and_a_blob_in_that_of_its_window(tmp_path: Path) -> None:
    border = TEN + HOUR
    events = [sent(1, border - MINUTE), sent(2, border + MINUTE), sent(3, border), sent(4, border + 2 * MINUTE)]
    put_events(tmp_path, border + 4 * MINUTE, events, opened=border - 2 * MINUTE)
    manifest = planned(tmp_path, PLAIN, hours=2, arrival_time=ENQUEUED)
    (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
    rows, counters = ordered(tmp_path, PLAIN, POLICIES, task)
    assert [(counted.events, counted.blobs) for counted in counters.values()] == [(2, 1), (2, 0)]
    assert [table.num_rows for table in rows.values()] == [1, 3]


def test_without_timestamp_by_the_enqueued_time_is_the_time(tmp_path: Path) -> None:
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + 7 * MINUTE), sent(2, TEN + 6 * MINUTE)])
    rows, counted = only(tmp_path, BY_ARRIVAL, policies=None, arrival_time=ENQUEUED)
    assert system_times(rows) == [420, 360], "and no policy applies"
    assert verdicts(counted) == {"on_time": 2}


def test_by_enqueued_time_an_event_was_processed_when_it_was_enqueued(tmp_path: Path) -> None:
    columns = (MetadataColumn(Metadata.EVENT_PROCESSED), MetadataColumn(Metadata.EVENT_ENQUEUED))
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + 7 * MINUTE)])
    rows, _ = only(tmp_path, replace(PLAIN, metadata=columns), arrival_time=ENQUEUED)
    assert [rows[column.name].to_pylist() for column in columns] == [[from_datetime(TEN + 7 * MINUTE)]] * 2


def test_by_enqueued_time_verdicts_need_the_late_tolerance_and_the_early_window_before_a_slice(tmp_path: Path) -> None:
    """One event, 80 minutes before the slice, is as early as is allowed; one in the slice is as late as is allowed."""
    policies = replace(POLICIES, late_tolerance=from_seconds(3600), early_window=from_seconds(1200))
    pushed = TEN - 80 * MINUTE + timedelta(seconds=2)
    put_events(tmp_path, pushed + 5 * MINUTE, [sent(1, pushed, pushed + 20 * MINUTE)], opened=pushed)
    for minutes in range(-70, 0, 10):
        put_events(tmp_path, TEN + (minutes + 10) * MINUTE, [], opened=TEN + minutes * MINUTE)
    arrival = TEN + timedelta(seconds=1)
    put_events(tmp_path, TEN + 5 * MINUTE, [sent(2, arrival, arrival - HOUR)], opened=TEN)
    _, counted = only(tmp_path, policies=policies, arrival_time=ENQUEUED)
    assert verdicts(counted) == {"out_of_order_adjusted": 1}


def test_an_event_enqueued_before_a_slice_is_in_it_if_the_watermark_moves_it_there(tmp_path: Path) -> None:
    """No event between two blobs that are read is left out because of its own time."""
    policies = replace(POLICIES, late_tolerance=None)
    put_events(tmp_path, TEN + MINUTE, [sent(1, TEN - MINUTE, TEN + 4 * MINUTE)], opened=TEN - 2 * MINUTE)
    put_events(tmp_path, TEN + 2 * MINUTE, [sent(2, TEN - 4 * MINUTE)], opened=TEN + MINUTE)
    rows, counted = only(tmp_path, policies=policies, arrival_time=ENQUEUED)
    assert system_times(rows) == [240, 240]
    assert counted.events == 0, "they are counted in the slice before"


@pytest.mark.parametrize("minutes", [-6, 16])
def test_a_blob_whose_events_were_enqueued_at_another_time_than_its_name_says_stops_the_task(
    tmp_path: Path, minutes: int
) -> None:
    name = put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + minutes * MINUTE)], opened=TEN)
    with pytest.raises(RunError, match=rf"^blob {name} holds events enqueued from 2026.+ set input.arrival_time to "):
        only(tmp_path, arrival_time=ENQUEUED)


WHEN = st.tuples(
    st.integers(0, 12),
    st.integers(-240, 540).map(lambda seconds: timedelta(seconds=seconds)),
    st.one_of(
        st.integers(-1500, 700).map(lambda seconds: timedelta(seconds=seconds)),
        st.sampled_from([timedelta(minutes=5), timedelta(minutes=-10), timedelta(hours=-2), timedelta(hours=2)]),
    ),
)
"""An event's blob, its enqueued time after the start of the blob's window, and its own time after its enqueued time."""


@settings(max_examples=examples(8))
@given(
    events=st.lists(WHEN, min_size=6, max_size=40),
    copied=st.booleans(),
    policies=st.builds(
        Policies,
        out_of_order_tolerance=st.sampled_from([0, 30, 599]).map(from_seconds),
        late_tolerance=st.sampled_from([0, 60, 600, 4000]).map(from_seconds),
        early_window=st.sampled_from([0, 300, 1000]).map(from_seconds),
        adjust=st.booleans(),
        adjust_early=st.booleans(),
    ),
    chunk=st.sampled_from([1, 5, 1 << 20]),
)
def test_with_times_that_run_backwards_a_slice_alone_is_that_of_the_range_and_of_the_oracle(
    events: list[tuple[int, timedelta, timedelta]], copied: bool, policies: Policies, chunk: int
) -> None:
    """The archive has thirteen windows of ten minutes around the hour from ten; the clocks differ by minutes."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_EVENTS", chunk)
        folder = Path(home)
        stream: list[Event] = []
        for window in range(13):
            opened = TEN - 30 * MINUTE + 10 * window * MINUTE
            mine = []
            for _, after, ahead in (event for event in events if event[0] == window):
                number = len(stream)
                mine.append(sent(number, opened + after, opened + after + ahead))
                arrival, time = from_datetime(opened + after), from_datetime(opened + after + ahead)
                stream.append(Event("0", arrival, number, time))
            put_events(folder, TEN + 50 * HOUR if copied else opened + 10 * MINUTE, mine, opened=opened)
        whole = all_tasks(folder, PLAIN, policies, 1 << 40, -1, 4, ENQUEUED)
        expected = in_sequence(stream, policies)
        alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
        for hour in (0, -1, 2, 1):
            alone |= all_tasks(folder, PLAIN, policies, 1, hour, 1, ENQUEUED)
        for key, (rows, counted) in alone.items():
            assert rows.equals(whole[key][0])
            assert plain(counted) == plain(whole[key][1])
            slice_ = key[1]
            times = [o.system_timestamp for o in expected if o.system_timestamp is not None]
            assert rows["_system_timestamp"].to_pylist() == [t for t in times if reaches(PLAIN, t, slice_)]
            metrics = slice_metrics(expected, slice_.start, slice_.end).get("0", {})
            assert counted.events == metrics.get("InputEvents", 0) == counted.verdicts.sum()
            if not policies.adjust_early:
                assert verdicts(counted) == {name: metrics[name] for name in VERDICTS if metrics.get(name)}


def in_sequence(events: Sequence[Event], policies: Policies) -> list[Outcome]:
    """Return the oracle's judgements in the order of sequence numbers; early events are adjusted beforehand."""
    policy = Policy(
        policies.out_of_order_tolerance,
        policies.late_tolerance,
        policies.early_window,
        "Adjust" if policies.adjust else "Drop",
    )
    largest: dict[Any, int] = {}
    outcomes = []
    for event in events:
        assert event.time is not None
        assert policies.early_window is not None
        time = min(event.time, event.arrival + policies.early_window) if policies.adjust_early else event.time
        outcomes.append(judge_event(replace(event, time=time), policy, True, largest))
    return outcomes


# Archives with copied, lost and recaptured events


ARCHIVE = st.lists(
    st.tuples(
        st.sampled_from(["goes on", "goes on", "goes on", "skips", "copies", "copies", "overlaps", "anew", "damaged"]),
        st.integers(1, 5),
        st.sampled_from([0, 5, 10, 20, 50, 70]),
        st.sampled_from([-400, -60, 0, 0, 200, 290]),
    ),
    min_size=8,
    max_size=30,
)
"""What happens to a blob, its number of events, the minutes to its arrival, and the seconds its events are ahead."""


def write_archive(folder: Path, archive: Iterable[tuple[str, int, int, int]]) -> list[SampleEvent]:
    """Write an archive from eight on; return the events that the hub sent.

    Every name shows when the events of its blob were enqueued, also the name of a copied blob.
    """
    sent: list[SampleEvent] = []
    number, arrival, spare = 100, TEN - 2 * HOUR, timedelta()
    for what, count, minutes, ahead in archive:
        arrival += minutes * MINUTE
        opened = arrival - 4 * MINUTE
        spare += timedelta(seconds=1)
        events: list[SampleEvent] = []
        if what == "copies" and sent:
            candidates = sent[-count - 3 : -1] or sent[-1:]
            opened = candidates[0].enqueued
            events = [event for event in candidates if event.enqueued <= opened + 3 * MINUTE]
        elif what == "overlaps" and sent and sent[-1].enqueued >= opened - 2 * MINUTE:
            events, opened = sent[-1:], sent[-1].enqueued
        elif what == "skips":
            number += count
        elif what == "anew":
            number, arrival = 0, arrival + 6 * MINUTE
            opened = arrival - 4 * MINUTE
        if what != "copies":
            enqueued = arrival - 3 * MINUTE
            body = at(enqueued + timedelta(seconds=ahead))
            fresh = [SampleEvent(number + n, "", enqueued, body) for n in range(count)]
            sent += fresh
            events = [*events, *fresh]
            number += count
        name = put_events(folder, arrival, events, opened=opened - MINUTE + spare)
        if what == "damaged":
            spoil(folder / name, (folder / name).read_bytes()[:-1])
    return sent


PART_COPIED = [
    ("anew", 2, 70, 0),
    ("copies", 1, 50, 0),
    *[("goes on", 1, minutes, -400) for minutes in (50, 0, 0, 0, 0, 0)],
]
"""The first of two events arrives again within the hour; the next blob arrives within an hour of the duplicate only."""


ANEW_ALIKE = [
    *[("goes on", 1, minutes, -400) for minutes in (0, 20, 0, 0, 0)],
    ("goes on", 2, 5, -400),
    ("goes on", 1, 20, -400),
    *[("anew", 2, minutes, -400) for minutes in (10, 0)],
]
"""Two events with one number and equally far ahead, of a hub that was recreated between them."""


@settings(max_examples=examples(15))
@example(archive=ANEW_ALIKE, chunk=5, arrival_time=ArrivalTime.BLOB_LAST_MODIFIED)
@example(archive=PART_COPIED, chunk=1, arrival_time=ArrivalTime.BLOB_LAST_MODIFIED)
@given(archive=ARCHIVE, chunk=st.sampled_from([1, 5, 1 << 20]), arrival_time=st.sampled_from(list(ArrivalTime)))
def test_whatever_was_copied_or_lost_a_slice_gives_the_same_alone_and_in_a_range(
    archive: list[tuple[str, int, int, int]], chunk: int, arrival_time: ArrivalTime
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_EVENTS", chunk)
        folder = Path(home)
        write_archive(folder, archive)
        whole = all_tasks(folder, PLAIN, POLICIES, 1 << 40, -2, 8, arrival_time, quarantine_damaged=True)
        alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
        for hour in range(-2, 6):
            alone |= all_tasks(folder, PLAIN, POLICIES, 1, hour, 1, arrival_time, quarantine_damaged=True)
        for key, (rows, counted) in alone.items():
            assert rows.equals(whole[key][0])
            assert plain(counted) == plain(whole[key][1])
            assert counted.events == counted.duplicates + counted.verdicts.sum()


# The sample world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three hours from nine on, with every fault of the sample world."""
    home = tmp_path_factory.mktemp("world")
    write_world(sample_world(TEN - HOUR, 3, partitions=2, devices=24), home)
    return home


def all_tasks(
    folder: Path,
    query: CompiledQuery,
    policies: Policies | None,
    task_bytes: int,
    first: int,
    hours: int,
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED,
    quarantine_damaged: bool = False,
) -> dict[tuple[str, Slice], tuple[pa.Table, Counters]]:
    """Return the rows and counters of every partition and slice, from one task after the other."""
    manifest = planned(folder, query, policies, first, hours, arrival_time)
    slices = {}
    for task in split(manifest.slices, manifest.blobs, task_bytes):
        rows, counters = ordered(folder, query, policies, task, quarantine_damaged)
        for slice_ in rows:
            assert (task.partition, slice_) not in slices
            slices[task.partition, slice_] = (rows[slice_], counters[slice_])
    return slices


@pytest.mark.parametrize("query", [PLAIN, BY_DEVICE], ids=["plain", "over"])
def test_a_slice_gives_the_same_alone_and_in_a_range(folder: Path, query: CompiledQuery) -> None:
    together = all_tasks(folder, query, POLICIES, 1 << 40, -1, 3)
    assert len(together) == 6
    alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
    for hour in (1, -1, 0):
        alone |= all_tasks(folder, query, POLICIES, 1, hour, 1)
    assert alone.keys() == together.keys()
    for key, (rows, counted) in alone.items():
        assert rows.num_rows > 100
        assert rows.equals(together[key][0])
        assert plain(counted) == plain(together[key][1])


def plain(counted: Counters) -> dict[str, Any]:
    return vars(counted) | {
        "verdicts": counted.verdicts.tolist(),
        "quarantine": quarantined(counted),
        "open_gaps": gaps(counted),
    }


def gaps(counted: Counters) -> list[tuple[int, int]]:
    ranges = [gaps.ranges for gaps in counted.open_gaps]
    return [bounds for range_ in ranges for bounds in zip(range_.first.tolist(), range_.last.tolist(), strict=True)]


CASES = {
    "adjust": POLICIES,
    "drop": Policies(from_seconds(3), from_seconds(60), from_seconds(300), adjust=False),
    "no late limit": Policies(from_seconds(30), None, from_seconds(300), adjust=True),
}


@pytest.mark.parametrize("over", [False, True], ids=["plain", "over"])
@pytest.mark.parametrize("policies", CASES.values(), ids=CASES)
def test_the_verdicts_and_times_are_the_oracle_s(folder: Path, policies: Policies, over: bool) -> None:
    query = BY_DEVICE if over else PLAIN
    slices = all_tasks(folder, query, policies, 1 << 40, -1, 3)
    read = planned(folder, query, policies, -1, 3).blobs
    if policies.late_tolerance is None:
        slices = all_tasks(folder, query, policies, 1 << 40, 0, 1)
        read = planned(folder, query, policies, 0, 1).blobs
    action: Any = "Adjust" if policies.adjust else "Drop"
    outcomes = process(
        list(events_of(folder, read, over)),
        Policy(policies.out_of_order_tolerance, policies.late_tolerance, policies.early_window, action),
    )
    for (partition, slice_), (rows, counted) in slices.items():
        expected = slice_metrics(outcomes, slice_.start, slice_.end)[partition]
        assert expected["InputEvents"] == counted.events == sum(counted.verdicts)
        assert {name: expected[name] for name in VERDICTS if expected[name]} == verdicts(counted)
        assert (expected["LateInputEvents"], expected["DroppedOrAdjustedEvents"]) == (
            counted.late,
            counted.out_of_order,
        )
        assert len(quarantined(counted)) == expected["malformed"] + expected["invalid_timestamp"]
        first = slice_.start - query.look_back
        times = [
            outcome.system_timestamp
            for outcome in sorted(outcomes, key=lambda outcome: (outcome.event.arrival, outcome.event.sequence))
            if outcome.event.partition == partition
            and outcome.system_timestamp is not None
            and reaches(query, outcome.system_timestamp, slice_)
        ]
        assert first < min(times)
        assert rows["_system_timestamp"].to_pylist() == times


def reaches(query: CompiledQuery, time: int, slice_: Slice) -> bool:
    """Return whether a window that ends in the slice holds the time. Ends are multiples of the hop."""
    window = query.reaches[0].window
    assert isinstance(window, HoppingWindow)
    hop, size = window.hop, window.size
    first_end = max(-(-time // hop), slice_.start // hop + 1) * hop
    return first_end <= slice_.end and first_end < time + size


def events_of(folder: Path, blobs: Sequence[PinnedBlob], over: bool) -> Iterable[Event]:
    """Yield the events for the oracle, with bodies read by json.loads."""
    for pinned in blobs:
        for row in decode(pinned.blob.name, (folder / pinned.blob.name).read_bytes(), EVENT_DATA).to_pylist():
            body: dict[str, Any] = {}
            malformed = False
            try:
                body = json.loads(row["Body"].decode())
            except ValueError:
                malformed = True
            ticks, valid = timestamps.parse(pa.array([body.get("eventTime")], pa.string()))
            yield Event(
                pinned.partition,
                pinned.arrival,
                row["SequenceNumber"],
                int(ticks[0]) if valid[0] else None,
                (body.get("deviceId"),) if over else None,
                malformed,
            )


def test_every_arrival_is_counted_once_in_one_slice(folder: Path) -> None:
    slices = all_tasks(folder, PLAIN, POLICIES, 1 << 20, -1, 3)
    counted: Counter[str] = Counter()
    for (partition, _), (_, counters) in slices.items():
        assert counters.events == counters.verdicts.sum()
        counted[partition] += counters.events
    start, end = from_datetime(TEN - HOUR), from_datetime(TEN + 2 * HOUR)
    arrived: Counter[str] = Counter()
    for pinned in planned(folder, PLAIN, POLICIES, -1, 3).blobs:
        if start < pinned.arrival <= end:
            arrived[pinned.partition] += decode("", (folder / pinned.blob.name).read_bytes(), EVENT_DATA).num_rows
    assert counted == arrived
    assert counted.total() > 5000
