"""One task of a run: a partition's blobs in arrival order, judged in one pass (docs/time-model.md, sections 1 to 3)."""

import json
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recapture.formats.event_hubs import CaptureReader
from recapture.ordering import chunks
from recapture.ordering.order import Reading, order, schema
from recapture.ordering.task import split
from recapture.storage import open_container
from recapture.time_model.ticks import from_datetime
from tests.ordering.tasks import (
    BY_ARRIVAL,
    BY_DEVICE,
    HOUR,
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    TUMBLING,
    at,
    compiled,
    only,
    ordered,
    planned,
    put,
    quarantined,
    system_times,
    verdicts,
)


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


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_a_large_blob_is_divided_into_chunks_and_counted_once(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", chunk)
    numbers = [3, 1, 4, 1, 5, 9, 2]
    put(tmp_path, TEN + 10 * MINUTE, [(n, at(TEN + (10 - n) * MINUTE)) for n in numbers])
    rows, counted = only(tmp_path)
    assert system_times(rows) == [540] * 6
    assert verdicts(counted) == {"on_time": 1, "out_of_order_adjusted": 5}
    assert (counted.blobs, counted.events, counted.duplicates) == (1, 7, 1)


def test_large_events_do_not_wait_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    for n in range(3):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (5 + n) * MINUTE))])
    plan = planned(tmp_path, PLAIN)
    (task,) = split(plan.slices, plan.blobs, 1 << 30)
    batches, _ = order(task, open_container(tmp_path.as_uri()), Reading(PLAIN, POLICIES, CaptureReader()))
    assert [batch.num_rows for batch in batches] == [1, 1, 1]


@pytest.mark.parametrize("aggregate", [False, True])
def test_a_chunk_is_dropped_before_the_next_one_is_read(
    tmp_path: Path, aggregate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two large blobs would be in memory, as the bodies of a chunk stay in its blob."""
    dropped: list[bool] = []

    def noted(*arguments: Any) -> Iterator[chunks.Chunk]:
        for chunk in chunks.chunks(*arguments):
            is_alive = weakref.ref(chunk)
            yield chunk
            del chunk
            dropped.append(is_alive() is None)

    monkeypatch.setattr("recapture.ordering.order.chunks", noted)
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 1)
    for n in range(3):
        put(tmp_path, TEN + (10 + n) * MINUTE, [(n, at(TEN + (5 + n) * MINUTE))])
    plan = planned(tmp_path, PLAIN)
    (task,) = split(plan.slices, plan.blobs, 1 << 30)
    container = open_container(tmp_path.as_uri())
    batches, _ = order(task, container, Reading(PLAIN, POLICIES, CaptureReader()), aggregate=aggregate)
    assert len(list(batches)) > 0
    assert dropped == [True] * 3


def test_an_event_is_in_every_slice_in_which_one_of_its_windows_ends(tmp_path: Path) -> None:
    query = compiled(TUMBLING.format("").replace("TumblingWindow(minute, 5)", "HoppingWindow(minute, 120, 60)"))
    put(tmp_path, TEN + 31 * MINUTE, [(1, at(TEN + 30 * MINUTE))])
    plan = planned(tmp_path, query, hours=3)
    (task,) = split(plan.slices, plan.blobs, 1 << 30)
    rows, counters = ordered(tmp_path, query, POLICIES, task)
    assert [table.num_rows for table in rows.values()] == [1, 1, 0]
    assert [counted.events for counted in counters.values()] == [1, 0, 0], "counted where it arrived, once"


def test_an_event_at_the_end_of_a_slice_is_in_it_and_not_in_the_next(tmp_path: Path) -> None:
    put(tmp_path, TEN + HOUR, [(1, at(TEN + HOUR)), (2, at(TEN + HOUR + timedelta(microseconds=1)))])
    plan = planned(tmp_path, PLAIN, hours=2)
    (task,) = split(plan.slices, plan.blobs, 1 << 30)
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
            "_arrival": from_datetime(TEN + 10 * MINUTE),
            "deviceId": "a",
            "temperature": 20.5,
            "site.id": "s",
        }
    ]


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
        (109, "malformed", "it has no event in it"),
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


def test_a_declared_field_is_checked_even_if_no_output_reads_it(tmp_path: Path) -> None:
    """Another output does not change which events count."""
    table = "CREATE TABLE telemetry (eventTime datetime, a bigint, site record, site.floor float, name nvarchar(max)) "
    time = (TEN + 5 * MINUTE).isoformat()
    whole = {"eventTime": time, "a": 1.0, "site": {"floor": 2}, "name": "n"}
    bodies: list[dict[str, Any]] = [
        whole,
        whole | {"a": 1.5},
        whole | {"site": 7},
        whole | {"site": {"floor": "2"}},
        whole | {"a": None, "site": {}},
        whole | {"name": 5},
        {name: value for name, value in whole.items() if name != "name"},
        {name: value for name, value in whole.items() if name != "eventTime"},
    ]
    put(tmp_path, TEN + 10 * MINUTE, [(n, json.dumps(body).encode()) for n, body in enumerate(bodies)])
    for select in ("COUNT(*) AS events", "COUNT(*) AS events, SUM(a) AS a, MAX(site.floor) AS b"):
        query = compiled(table + TUMBLING.format("").replace("COUNT(*) AS events", select))
        _, counted = only(tmp_path, query)
        assert verdicts(counted) == {"on_time": 2, "malformed": 6}
        assert [row["reason"] for row in quarantined(counted)] == [
            "a is not a bigint but float",
            "site is not a record but bigint",
            "site.floor is not a float but nvarchar(max)",
            "name is not an nvarchar(max) but bigint",
            "name is missing",
            "eventTime is missing",
        ]


def test_an_event_that_deviates_from_create_table_counts_once_and_for_its_key(tmp_path: Path) -> None:
    table = "CREATE TABLE telemetry (eventTime datetime, id nvarchar(max), v bigint) "
    query = compiled(table + "SELECT id, MAX(v) AS v INTO out FROM telemetry GROUP BY id, Tumbling(minute, 5)")
    bodies = ['"id":"a","v":1', '"ID":"b","v":"1"', '"id":"b"', '"id":"a"', '"id":null,"v":2', '"v":2']
    bodies.append('"id":"a","V":3.0')
    written = [(n, f'{{"eventTime":"2024-03-01T10:05:00Z",{body}}}'.encode()) for n, body in enumerate(bodies)]
    put(tmp_path, TEN + 10 * MINUTE, [*written, written[0]])
    rows, counted = only(tmp_path, query)
    assert (counted.events, counted.duplicates, verdicts(counted)) == (8, 1, {"on_time": 3, "malformed": 4})
    assert sorted(rows["v"].to_pylist()) == [1, 2, 3]
    counts = {row["key"]: (row["events"], row["malformed"]) for row in counted.keys.table().to_pylist()}
    assert counts == {"a": (3, 1), "b": (2, 2), None: (2, 1)}
