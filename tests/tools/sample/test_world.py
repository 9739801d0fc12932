"""The sample world holds what goes wrong in a real one, and is always the same."""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any

import fastavro
import pytest

from recapture.tools.sample import SampleBlob, world

START = datetime(2026, 3, 1, tzinfo=UTC)
INTERVAL = timedelta(seconds=300)


@pytest.fixture(scope="module")
def six_hours() -> list[SampleBlob]:
    return list(world(START, 6))


def _path_time(blob: SampleBlob) -> datetime:
    return datetime.strptime("/".join(blob.name.split("/")[3:]), "%Y/%m/%d/%H/%M/%S.avro").replace(tzinfo=UTC)


def _partition(blob: SampleBlob) -> str:
    return blob.name.split("/")[2]


@cache
def _records(blob: SampleBlob) -> list[dict[str, Any]]:
    """Return the records of a blob; most blobs are read by several tests."""
    return list(fastavro.reader(BytesIO(blob.content)))  # type: ignore[arg-type]


def _event_time(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z")[:26]).replace(tzinfo=UTC)


def test_the_same_arguments_give_the_same_bytes() -> None:
    first = list(world(START, 1))
    assert list(world(START, 1)) == first
    assert list(world(START, 1, seed=1)) != first


def test_every_partition_has_a_blob_every_interval_and_it_arrives_after_its_end(six_hours: list[SampleBlob]) -> None:
    assert six_hours[0].name == "contoso/telemetry/0/2026/03/01/00/00/00.avro"
    expected = [(START + n * INTERVAL, str(p)) for n in range(6 * 12 + 1 + 12) for p in range(4)]
    assert [(_path_time(blob), _partition(blob)) for blob in six_hours] == expected
    for blob in six_hours:
        assert blob.last_modified.microsecond == 0
        assert INTERVAL < blob.last_modified - _path_time(blob) < INTERVAL + timedelta(seconds=10)


def test_the_last_hour_is_complete_for_a_late_tolerance_of_an_hour(six_hours: list[SampleBlob]) -> None:
    newest = {_partition(blob): blob.last_modified for blob in six_hours}
    assert min(newest.values()) > START + timedelta(hours=7)


def test_events_lie_in_the_interval_of_their_blob_with_contiguous_sequence_numbers(six_hours: list[SampleBlob]) -> None:
    numbers = defaultdict(list)
    for blob in six_hours:
        for record in _records(blob):
            enqueued = datetime.fromtimestamp(record["SystemProperties"]["x-opt-enqueued-time"] / 1000, UTC)
            assert _path_time(blob) <= enqueued < _path_time(blob) + INTERVAL
            numbers[_partition(blob)].append(record["SequenceNumber"])
    assert all(sequence == list(range(len(sequence))) for sequence in numbers.values())
    assert 20_000 < sum(map(len, numbers.values())) < 30_000


def test_one_partition_is_silent_for_a_while_and_its_blobs_go_on_empty(six_hours: list[SampleBlob]) -> None:
    empty = Counter(_partition(blob) for blob in six_hours if not _records(blob))
    assert empty.pop("3") >= 12 + 7
    assert set(empty.values()) == {12}


def test_a_device_has_one_partition(six_hours: list[SampleBlob]) -> None:
    homes = defaultdict(set)
    for blob in six_hours:
        for record in _records(blob):
            homes[record["SystemProperties"]["x-opt-partition-key"]].add(_partition(blob))
    assert len(homes) == 40
    assert all(len(home) == 1 for home in homes.values())


@pytest.mark.parametrize("seed", [0, 1, None], ids=["one hour", "another hour", "six hours"])
def test_every_oddity_occurs(six_hours: list[SampleBlob], seed: int | None) -> None:
    counts: Counter[str] = Counter()
    for blob in six_hours if seed is None else world(START, 1, seed=seed):
        for record in _records(blob):
            counts.update(_oddities(record["Body"], blob.last_modified))
            counts["null property"] += None in record["Properties"].values()
    ordinary = counts.pop("ordinary")
    rare = {"not UTF-8", "not JSON", "no event time", "null event time"}
    assert set(counts) == rare | {"early", "late", "no zone", "pretty-printed", "null property"}
    assert min(counts.values()) > 0
    assert sum(counts[kind] for kind in rare) < ordinary / 100
    assert counts["late"] < ordinary / 20


def _oddities(body: bytes, arrival: datetime) -> list[str]:
    try:
        event = json.loads(body.decode())
    except UnicodeDecodeError:
        return ["not UTF-8"]
    except json.JSONDecodeError:
        return ["not JSON"]
    if "eventTime" not in event:
        return ["no event time"]
    if event["eventTime"] is None:
        return ["null event time"]
    assert isinstance(event["temperature"], float)
    assert set(event["site"]) == {"id", "region"}
    lag = arrival - _event_time(event["eventTime"])
    odd = {
        "early": lag < -timedelta(minutes=5),
        "late": lag > timedelta(minutes=10),
        "no zone": not event["eventTime"].endswith("Z"),
        "pretty-printed": b"\n" in body,
    }
    return [kind for kind, occurs in odd.items() if occurs] or ["ordinary"]


def test_events_of_a_device_are_out_of_order_by_less_than_a_minute_and_by_minutes(six_hours: list[SampleBlob]) -> None:
    newest: dict[str, datetime] = {}
    disorder: dict[str, set[int]] = defaultdict(set)
    for blob in six_hours:
        for record in _records(blob):
            if _oddities(record["Body"], blob.last_modified) != ["ordinary"]:
                continue
            event = json.loads(record["Body"])
            time = _event_time(event["eventTime"])
            behind = newest.setdefault(event["deviceId"], time) - time
            newest[event["deviceId"]] = max(newest[event["deviceId"]], time)
            if behind > timedelta():
                disorder[event["deviceId"]].add(behind // timedelta(minutes=1))
    assert disorder == {"device-013": {0, 1, 2}, "device-014": {0}}


def test_a_world_goes_on_for_the_hours_that_follow(six_hours: list[SampleBlob]) -> None:
    longer = list(world(START, 6, following_hours=2))
    assert longer[: 6 * 12 * 4] == six_hours[: 6 * 12 * 4]
    assert len(longer) == (8 * 12 + 12) * 4
    assert all(_records(blob) for blob in longer[: 8 * 12 * 4] if _partition(blob) != "3")


def test_in_the_faulty_hour_and_no_other_half_of_the_devices_send_records(six_hours: list[SampleBlob]) -> None:
    changed = [
        (_path_time(blob).hour, json.loads(record["Body"]), json.loads(usual["Body"]))
        for blob, usual_blob in zip(world(START, 6, faulty_hour=3), six_hours, strict=True)
        for record, usual in zip(_records(blob), _records(usual_blob), strict=True)
        if record["Body"] != usual["Body"]
    ]
    assert {hour for hour, _, _ in changed} == {3}
    assert {body["deviceId"] for _, body, _ in changed} == {f"device-{number:03}" for number in range(20, 40)}
    assert all(body["temperature"]["value"] == usual["temperature"] for _, body, usual in changed)


def test_the_schema_changes_once_in_a_world(six_hours: list[SampleBlob]) -> None:
    with_null = [b'"bytes","null"]' in blob.content for blob in six_hours]
    assert with_null == sorted(with_null)
    assert set(with_null) == {False, True}


def test_a_world_may_have_another_size() -> None:
    blobs = list(world(START, 1, partitions=1, devices=2, interval_seconds=60, namespace="fabrikam", event_hub="line"))
    assert len(blobs) == 60 + 1 + 60
    assert blobs[1].name == "fabrikam/line/0/2026/03/01/00/01/00.avro"
    assert sum(len(_records(blob)) for blob in blobs) > 0


@pytest.mark.parametrize("changes", [{"hours": 0}, {"start": datetime(2026, 3, 1)}, {"partitions": 0}, {"devices": 0}])
def test_an_impossible_world_is_refused(changes: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"start": START, "hours": 1}
    with pytest.raises(ValueError, match="a world needs"):
        next(world(**(arguments | changes)))
