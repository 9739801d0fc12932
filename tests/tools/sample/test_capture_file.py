"""A sample Capture file is what Event Hubs would have written."""

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import fastavro
import pytest

from recapture.tools.sample import SampleEvent, capture_file
from tests.paths import CAPTURE_FILES

SYNC = 16
"""Bytes of a sync marker, which is random in a real file."""

EVENTS = [
    SampleEvent(7, "1456", datetime(2026, 3, 1, 0, 59, 59, 999_000, UTC), b"\xff", "device-1"),
    SampleEvent(8, "1600", datetime(2026, 11, 21, 12, 0, 0, 0, UTC), b"{}", None, {"attempt": 1, "route": None}),
]


def _real(name: str) -> bytes:
    path = CAPTURE_FILES / name
    if not path.exists():
        pytest.skip(f"the real file {name} is not next to this checkout")
    return path.read_bytes()


def _records(content: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(BytesIO(content)))  # type: ignore[arg-type]


def _without_sync(content: bytes) -> bytes:
    return content.replace(content[-SYNC:], b"?" * SYNC)


def test_an_empty_file_is_the_real_one_except_for_its_sync_marker() -> None:
    assert _without_sync(capture_file([])) == _without_sync(_real("empty.avro"))


def test_a_file_of_2022_is_rebuilt_except_for_its_sync_marker() -> None:
    real = _real("p9--2022-12-09--16-50-12.avro")
    (record,) = _records(real)
    event = SampleEvent(
        record["SequenceNumber"],
        record["Offset"],
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=record["SystemProperties"]["x-opt-enqueued-time"]),
        record["Body"],
        record["SystemProperties"]["x-opt-partition-key"],
    )
    assert _without_sync(capture_file([event])) == _without_sync(real)


@pytest.mark.parametrize(
    ("name", "properties_with_null"),
    [("2016-no-extension-05", False), ("p9--2022-12-09--16-50-12.avro", True), ("empty.avro", True)],
)
def test_the_schema_is_that_of_the_real_files(name: str, properties_with_null: bool) -> None:
    real = _real(name)
    sample = capture_file(EVENTS, properties_with_null=properties_with_null)
    header = real[: real.index(real[-SYNC:])]
    assert sample.startswith(header)
    schema = fastavro.reader(BytesIO(sample)).writer_schema
    assert _records(real) == list(fastavro.reader(BytesIO(real), reader_schema=schema))


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_events_decode_to_what_they_were_made_of(codec: Any) -> None:
    assert _records(capture_file(EVENTS, codec=codec)) == [
        {
            "SequenceNumber": 7,
            "Offset": "1456",
            "EnqueuedTimeUtc": "3/1/2026 12:59:59 AM",
            "SystemProperties": {"x-opt-partition-key": "device-1", "x-opt-enqueued-time": 1772326799999},
            "Properties": {},
            "Body": b"\xff",
        },
        {
            "SequenceNumber": 8,
            "Offset": "1600",
            "EnqueuedTimeUtc": "11/21/2026 12:00:00 PM",
            "SystemProperties": {"x-opt-enqueued-time": 1795262400000},
            "Properties": {"attempt": 1, "route": None},
            "Body": b"{}",
        },
    ]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_an_empty_file_decodes_to_no_events(codec: Any) -> None:
    assert _records(capture_file([], codec=codec)) == []


def test_the_schema_of_2016_leaves_out_what_it_cannot_hold() -> None:
    assert [r["Properties"] for r in _records(capture_file(EVENTS, properties_with_null=False))] == [{}, {"attempt": 1}]


def test_the_same_events_give_the_same_bytes_in_one_block() -> None:
    content = capture_file(EVENTS)
    assert content == capture_file(iter(EVENTS))
    (block,) = fastavro.block_reader(BytesIO(content))
    assert block.num_records == len(EVENTS)
    assert block.offset + block.size == len(content)
