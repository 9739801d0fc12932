"""One task of a run: a partition's blobs in arrival order, judged in one pass (time model, sections 2, 3 and 5)."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs import ordering
from spark_jobs.capture.decode import decode
from spark_jobs.capture.manifest import CaptureBlob, Definition, Manifest, PlannedSlice, plan
from spark_jobs.capture.names import CaptureNames
from spark_jobs.capture.sample import SampleEvent, capture_file, write_world
from spark_jobs.capture.sample import world as sample_world
from spark_jobs.errors import RunError
from spark_jobs.ordering import Counters, Task, order, split
from spark_jobs.query import CompiledQuery, compile_query
from spark_jobs.storage import Blob, open_container
from spark_jobs.time_model import timestamps
from spark_jobs.time_model.policies import Policies, Verdict
from spark_jobs.time_model.slices import Arrivals, Slice, slices_between
from spark_jobs.time_model.ticks import from_datetime, from_seconds
from tests.oracle import VERDICTS, Event, Policy, process, slice_metrics

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
POLICIES = Policies(out_of_order=0, late=from_seconds(600), early=from_seconds(300), adjust=True)
TUMBLING = (
    "SELECT COUNT(*) AS events INTO out FROM telemetry TIMESTAMP BY eventTime {} GROUP BY TumblingWindow(minute, 5)"
)


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, input_alias="telemetry", output_alias="out")


PLAIN = compiled(TUMBLING.format(""))
BY_DEVICE = compiled(
    "SELECT deviceId, site.id AS site, AVG(temperature) AS warmth INTO out "
    "FROM telemetry TIMESTAMP BY eventTime OVER deviceId GROUP BY deviceId, site.id, HoppingWindow(minute, 10, 5)"
)
BY_ARRIVAL = compiled("SELECT COUNT(*) AS events INTO out FROM telemetry GROUP BY TumblingWindow(minute, 5)")


def put(folder: Path, arrival: datetime, bodies: Iterable[tuple[int, bytes]], opened: datetime | None = None) -> str:
    """One blob of partition 0 with these (sequence number, body)."""
    name = f"contoso/telemetry/0/{opened or arrival - 5 * MINUTE:%Y/%m/%d/%H/%M/%S}.avro"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(capture_file(SampleEvent(number, str(number), arrival, body) for number, body in bodies))
    os.utime(path, (arrival.timestamp(),) * 2)
    return name


def at(time: datetime) -> bytes:
    return json.dumps({"eventTime": time.isoformat()}).encode()


def planned(
    folder: Path, query: CompiledQuery, policies: Policies | None = POLICIES, first: int = 0, hours: int = 1
) -> Manifest:
    """The manifest of `hours` slices from `first` hours after ten."""
    definition = Definition("t", CaptureNames("contoso", "telemetry"), "1", "", policies, query.window.look_back, 300)
    start = from_datetime(TEN + first * HOUR)
    slices = slices_between(start, start + hours * from_seconds(3600), from_seconds(3600))
    return plan(definition, open_container(folder.as_uri()), slices, TEN + 100 * HOUR)


Found = tuple[dict[Slice, pa.Table], dict[Slice, Counters]]


def ordered(folder: Path, query: CompiledQuery, policies: Policies | None, task: Task) -> Found:
    """The rows of each slice and its counters."""
    batches, counters = order(task, open_container(folder.as_uri()), query, policies)
    rows = pa.Table.from_batches(batches, ordering.schema(query))
    by_slice = {
        wanted: rows.filter(pa.compute.equal(rows["_slice_start"], wanted.start)).combine_chunks()
        for wanted in counters
    }
    assert sum(table.num_rows for table in by_slice.values()) == rows.num_rows
    return by_slice, counters


def only(folder: Path, query: CompiledQuery = PLAIN, policies: Policies | None = POLICIES) -> tuple[pa.Table, Counters]:
    """The rows and counters of the hour from ten, of the only partition."""
    manifest = planned(folder, query, policies)
    (task,) = split(manifest.slices, manifest.blobs, 1)
    rows, counters = ordered(folder, query, policies, task)
    return rows[manifest.slices[0].slice], counters[manifest.slices[0].slice]


def system_times(rows: pa.Table) -> list[int]:
    """Seconds after ten."""
    seconds = [(time - from_datetime(TEN)) / from_seconds(1) for time in rows["_system_timestamp"].to_pylist()]
    return [int(second) for second in seconds]


def verdicts(counted: Counters) -> dict[str, int]:
    return {verdict.name.lower(): int(counted.verdicts[verdict]) for verdict in Verdict if counted.verdicts[verdict]}


def quarantined(counted: Counters) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(counted.quarantine, ordering.QUARANTINE).to_pylist()
    return rows


# Tasks


def second(number: int) -> int:
    """The ticks of a second after ten."""
    return from_datetime(TEN) + from_seconds(number)


def some_slices(count: int, late: int | None = 2) -> list[PlannedSlice]:
    """Slices of 10 seconds with arrivals from 3 before to `late` after them."""
    return [
        PlannedSlice(
            Slice(second(start), second(start + 10)),
            Arrivals(second(start - 3), None if late is None else second(start + 10 + late)),
            str(start),
            (),
        )
        for start in range(0, 10 * count, 10)
    ]


def some_blobs(partition: str, *seconds: int, size: int = 1) -> list[CaptureBlob]:
    """Blobs of one partition that arrived so many seconds after ten."""
    return [
        CaptureBlob(partition, Blob(f"{partition}/{number}", "", size, TEN + timedelta(seconds=number)))
        for number in seconds
    ]


def shape(tasks: Iterable[Task]) -> list[tuple[str, list[int], list[int]]]:
    """Each task's partition, the starts of its slices and the arrivals of its blobs, in seconds after ten."""

    def after_ten(ticks: Iterable[int]) -> list[int]:
        return [(tick - second(0)) // from_seconds(1) for tick in ticks]

    return [
        (
            task.partition,
            after_ten(each.slice.start for each in task.slices),
            after_ten(each.arrival for each in task.blobs),
        )
        for task in tasks
    ]


def test_a_small_partition_is_one_task() -> None:
    blobs = some_blobs("0", 0, 10, 20, 30) + some_blobs("1", 10, 20)
    assert shape(split(some_slices(3), blobs, 100)) == [
        ("0", [0, 10, 20], [0, 10, 20, 30]),
        ("1", [0, 10, 20], [10, 20]),
    ]


def test_neighbouring_slices_share_a_task_until_it_reads_enough() -> None:
    assert shape(split(some_slices(4), some_blobs("0", 0, 10, 20, 30, 40), 3)) == [
        ("0", [0, 10], [0, 10, 20]),
        ("0", [20, 30], [20, 30, 40]),
    ]


def test_a_slice_that_is_too_large_by_itself_is_a_task() -> None:
    assert shape(split(some_slices(2), some_blobs("0", 0, 10, 20, size=500), 1)) == [
        ("0", [0], [0, 10]),
        ("0", [10], [10, 20]),
    ]


def test_a_slice_whose_arrivals_have_no_end_is_a_task() -> None:
    assert shape(split(some_slices(2, late=None), some_blobs("0", 0, 10, 20), 1000)) == [
        ("0", [0], [0, 10, 20]),
        ("0", [10], [10, 20]),
    ]


@pytest.mark.parametrize("task_bytes", [1, 2, 3, 5, 100])
def test_every_slice_of_every_partition_is_in_one_task_with_all_that_it_reads(task_bytes: int) -> None:
    slices, blobs = some_slices(7), some_blobs("0", *range(-10, 90, 10)) + some_blobs("3", -50, 41, 500)
    tasks = list(split(slices, blobs, task_bytes))
    for partition in ("0", "3"):
        mine = [task for task in tasks if task.partition == partition]
        assert [planned for task in mine for planned in task.slices] == slices
        for task in mine:
            needed = [
                b for b in blobs if b.partition == partition and any(s.arrivals.hold(b.arrival) for s in task.slices)
            ]
            assert list(task.blobs) == needed


def test_without_blobs_there_are_no_tasks() -> None:
    assert list(split(some_slices(2), [], 10)) == []


# Order


def test_within_a_partition_arrival_comes_before_the_sequence_number(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(7, at(TEN + 9 * MINUTE)), (8, at(TEN + 8 * MINUTE))])
    put(tmp_path, TEN + 20 * MINUTE, [(1, at(TEN + 14 * MINUTE)), (2, at(TEN + 13 * MINUTE))])
    rows, _ = only(tmp_path)
    assert system_times(rows) == [540, 540, 840, 840]


def test_in_a_tie_of_last_modified_the_sequence_numbers_decide_across_blobs(tmp_path: Path) -> None:
    """Which blob's name comes first is no matter."""
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
    monkeypatch.setattr(ordering, "CHUNK_EVENTS", chunk)
    for n in range(6):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (9 - n % 3) * MINUTE))])
    rows, counted = only(tmp_path)
    assert system_times(rows) == [540] * 6
    assert verdicts(counted) == {"on_time": 2, "out_of_order_adjusted": 4}


def test_large_events_do_not_wait_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "CHUNK_BYTES", 1)
    for n in range(3):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (5 + n) * MINUTE))])
    manifest = planned(tmp_path, PLAIN)
    (task,) = split(manifest.slices, manifest.blobs, 1 << 30)
    batches, _ = order(task, open_container(tmp_path.as_uri()), PLAIN, POLICIES)
    assert [batch.num_rows for batch in batches] == [1, 1, 1]


def test_an_event_stands_under_every_slice_in_which_a_window_of_it_ends(tmp_path: Path) -> None:
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


def test_the_columns_of_the_rows(tmp_path: Path) -> None:
    body = b'{"deviceId":"a","eventTime":"2026-03-01T10:09:00Z","temperature":20.5,"site":{"id":"s"},"more":1}'
    put(tmp_path, TEN + 10 * MINUTE, [(1, body)])
    rows, _ = only(tmp_path, BY_DEVICE)
    assert rows.schema == ordering.schema(BY_DEVICE)
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


def test_each_kind_of_event_has_its_verdict_and_what_was_not_judged_is_set_aside(tmp_path: Path) -> None:
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
        (106, "invalid_timestamp", "not a time"),
        (107, "malformed", "not UTF-8"),
        (108, "malformed", "not JSON"),
        (109, "malformed", "not a JSON object"),
    ]
    assert quarantined(counted) == [
        {
            "partition": "0",
            "sequence_number": number,
            "blob": name,
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
    assert [row["reason"] for row in quarantined(counted)] == ["the OVER key is missing or null"]


def test_each_quarantine_row_names_its_own_blob_in_a_tie(tmp_path: Path) -> None:
    one = put(tmp_path, TEN + 10 * MINUTE, [(3, b"3"), (1, b"1")], opened=TEN)
    other = put(tmp_path, TEN + 10 * MINUTE, [(2, b"2")], opened=TEN + MINUTE)
    _, counted = only(tmp_path)
    found = [(row["sequence_number"], row["blob"], row["body"]) for row in quarantined(counted)]
    assert found == [(1, one, b"1"), (2, other, b"2"), (3, one, b"3")]


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


# A whole world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours from nine on, with every fault that the sample world has."""
    home = tmp_path_factory.mktemp("world")
    write_world(sample_world(TEN - HOUR, 3, partitions=2, devices=24), home)
    return home


def all_tasks(
    folder: Path, query: CompiledQuery, policies: Policies | None, task_bytes: int, first: int, hours: int
) -> dict[tuple[str, Slice], tuple[pa.Table, Counters]]:
    """The rows and counters of every partition and slice, each task run by itself."""
    manifest = planned(folder, query, policies, first, hours)
    found = {}
    for task in split(manifest.slices, manifest.blobs, task_bytes):
        rows, counters = ordered(folder, query, policies, task)
        for wanted in rows:
            assert (task.partition, wanted) not in found
            found[task.partition, wanted] = (rows[wanted], counters[wanted])
    return found


@pytest.mark.parametrize("query", [PLAIN, BY_DEVICE], ids=["plain", "over"])
def test_a_slice_gives_the_same_alone_and_in_company(folder: Path, query: CompiledQuery) -> None:
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
    return vars(counted) | {"verdicts": counted.verdicts.tolist(), "quarantine": quarantined(counted)}


CASES = {
    "adjust": POLICIES,
    "drop": Policies(from_seconds(3), from_seconds(60), from_seconds(300), adjust=False),
    "no late limit": Policies(from_seconds(30), None, from_seconds(300), adjust=True),
}


@pytest.mark.parametrize("over", [False, True], ids=["plain", "over"])
@pytest.mark.parametrize("policies", CASES.values(), ids=CASES)
def test_the_verdicts_and_times_are_the_oracle_s(folder: Path, policies: Policies, over: bool) -> None:
    query = BY_DEVICE if over else PLAIN
    found = all_tasks(folder, query, policies, 1 << 40, -1, 3)
    read = planned(folder, query, policies, -1, 3).blobs
    if policies.late is None:
        found = all_tasks(folder, query, policies, 1 << 40, 0, 1)
        read = planned(folder, query, policies, 0, 1).blobs
    action: Any = "Adjust" if policies.adjust else "Drop"
    outcomes = process(
        list(events_of(folder, read, over)), Policy(policies.out_of_order, policies.late, policies.early, action)
    )
    for (partition, wanted), (rows, counted) in found.items():
        expected = slice_metrics(outcomes, wanted.start, wanted.end)[partition]
        assert expected["InputEvents"] == counted.events == sum(counted.verdicts)
        assert {name: expected[name] for name in VERDICTS} == {
            verdict.name.lower(): int(counted.verdicts[verdict]) for verdict in Verdict
        }
        assert (expected["LateInputEvents"], expected["DroppedOrAdjustedEvents"]) == (
            counted.late,
            counted.out_of_order,
        )
        assert len(quarantined(counted)) == expected["malformed"] + expected["invalid_timestamp"]
        first = wanted.start - query.window.look_back
        times = [
            outcome.system_timestamp
            for outcome in sorted(outcomes, key=lambda outcome: (outcome.event.arrival, outcome.event.sequence))
            if outcome.event.partition == partition
            and outcome.system_timestamp is not None
            and reaches(query, outcome.system_timestamp, wanted)
        ]
        assert first < min(times)
        assert rows["_system_timestamp"].to_pylist() == times


def reaches(query: CompiledQuery, time: int, wanted: Slice) -> bool:
    """Whether a window that ends in the slice holds the time; ends lie on whole hops."""
    hop, size = query.window.hop, query.window.size
    first_end = max(-(-time // hop), wanted.start // hop + 1) * hop
    return first_end <= wanted.end and first_end < time + size


def events_of(folder: Path, blobs: Sequence[CaptureBlob], over: bool) -> Iterable[Event]:
    """The events as the oracle takes them, by json.loads."""
    for pinned in blobs:
        for row in decode(pinned.blob.name, (folder / pinned.blob.name).read_bytes()).to_pylist():
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
    found = all_tasks(folder, PLAIN, POLICIES, 1 << 20, -1, 3)
    counted: Counter[str] = Counter()
    for (partition, _), (_, counters) in found.items():
        assert counters.events == counters.verdicts.sum()
        counted[partition] += counters.events
    start, end = from_datetime(TEN - HOUR), from_datetime(TEN + 2 * HOUR)
    arrived: Counter[str] = Counter()
    for pinned in planned(folder, PLAIN, POLICIES, -1, 3).blobs:
        if start < pinned.arrival <= end:
            arrived[pinned.partition] += decode("", (folder / pinned.blob.name).read_bytes()).num_rows
    assert counted == arrived
    assert counted.total() > 5000
