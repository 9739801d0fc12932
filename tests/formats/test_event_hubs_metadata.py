"""The metadata that Event Hubs Capture adds to its events."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.pinning import EnqueuedRange, PinnedBlob
from recapture.errors import DamagedBlobError, RunError
from recapture.formats import event_hubs_metadata as metadata
from recapture.formats.avro import decode
from recapture.formats.enqueued_times import UNREAD, read_times
from recapture.formats.event_hubs import EVENT_DATA, CaptureInput
from recapture.formats.event_hubs_metadata import fields_of, record_of, string_of
from recapture.formats.events import ENQUEUED
from recapture.model import ROUTED_TIME, AsaType, Metadata, MetadataColumn
from recapture.storage import Blob
from recapture.time_model.ticks import from_datetime
from recapture.tools.sample.capture_file import capture_file, capture_schema, enqueued_text

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "contoso/telemetry/3/2026/03/01/11/55/00.avro"
BLOB = PinnedBlob("telemetry", "3", Blob(NAME, "etag", 1, NOON))


def file(*events: Mapping[str, Any]) -> bytes:
    if not events:
        return capture_file([])
    out = BytesIO()
    blank = {"Offset": "", "EnqueuedTimeUtc": "", "SystemProperties": {}, "Properties": {}, "Body": b""}
    records = [{"SequenceNumber": number, **blank, **event} for number, event in enumerate(events, 7)]
    fastavro.writer(out, fastavro.parse_schema(json.loads(capture_schema())), records)
    return out.getvalue()


def read(column: MetadataColumn, *events: Mapping[str, Any], pinned: PinnedBlob = BLOB) -> list[Any]:
    content = file(*events)
    arrays = metadata.read([column], pinned, decode(pinned.blob.name, content, EVENT_DATA, fields_of([column])))
    kinds = {AsaType.BIGINT: pa.int64(), AsaType.DATETIME: pa.int64()}
    kinds |= dict.fromkeys([AsaType.STRING, AsaType.RECORD], pa.string())
    assert arrays[column].type == kinds[column.type]
    values: list[Any] = arrays[column].to_pylist()
    return values


def user(key: str) -> MetadataColumn:
    return MetadataColumn(Metadata.USER, key)


def test_only_the_fields_that_are_asked_for_are_decoded() -> None:
    assert fields_of([]) == ()
    assert fields_of([MetadataColumn(Metadata.BLOB_NAME), MetadataColumn(Metadata.PARTITION_ID)]) == ()
    assert fields_of([user("a"), user("b"), MetadataColumn(Metadata.OFFSET)]) == ("Properties", "Offset")


def test_the_metadata_of_a_blob_is_the_same_for_all_its_events() -> None:
    events: list[dict[str, Any]] = [{}, {}]
    assert read(MetadataColumn(Metadata.PARTITION_ID), *events) == [3, 3]
    assert read(MetadataColumn(Metadata.BLOB_NAME), *events) == [NAME, NAME]
    assert read(MetadataColumn(Metadata.BLOB_LAST_MODIFIED), *events) == [from_datetime(NOON)] * 2


def test_every_event_has_its_own_metadata() -> None:
    system = {"x-opt-partition-key": "k", "x-opt-publisher": "p"}
    events: list[dict[str, Any]] = [{"Offset": "96", "SystemProperties": system}, {"Offset": "x"}]
    assert read(MetadataColumn(Metadata.SEQUENCE_NUMBER), *events) == [7, 8]
    assert read(MetadataColumn(Metadata.OFFSET), *events) == ["96", "x"]
    assert read(MetadataColumn(Metadata.PARTITION_KEY), *events) == ["k", None]
    assert read(MetadataColumn(Metadata.PUBLISHER), *events) == ["p", None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("café", "café"),
        ("", ""),
        (-(2**63), "-9223372036854775808"),
        (9_007_199_254_740_993, "9007199254740993"),
        (0.1, "0.1"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), "café"),
        (b"", ""),
        (b"\xff\x00", None),
        (None, None),
    ],
)
def test_a_property_is_read_as_text(value: Any, text: str | None) -> None:
    assert read(user("a"), {"Properties": {"b": 1, "a": value}}, {}, {"Properties": {"A": value}}) == [text, None, None]


def test_the_headers_of_a_kafka_record_are_properties_and_its_key_is_no_partition_key() -> None:
    """Event Hubs keeps the key in x-opt-kafka-key, as bytes; a query of ASA has no name for it."""
    record = {"SystemProperties": {"x-opt-kafka-key": b"device-7"}, "Properties": {"trace": b"a1", "raw": b"\xff"}}
    assert (read(user("trace"), record), read(user("raw"), record)) == (["a1"], [None])
    assert read(MetadataColumn(Metadata.PARTITION_KEY), record) == [None]


def test_an_event_has_the_properties_that_an_iot_hub_added_before_it_routed_it() -> None:
    system = {"iothub-connection-device-id": "sensor-7", ROUTED_TIME: 1772366400250}
    events: list[dict[str, Any]] = [{"SystemProperties": system}, {}]
    assert read(MetadataColumn(Metadata.ROUTED, "iothub-connection-device-id"), *events) == ["sensor-7", None]
    expected = from_datetime(NOON + timedelta(milliseconds=250))
    assert read(MetadataColumn(Metadata.ROUTED, ROUTED_TIME), *events) == [expected, None]


def test_a_time_of_an_iot_hub_that_cannot_be_read_is_damage() -> None:
    for value in ("noon", -1, 2**62):
        with pytest.raises(DamagedBlobError, match=f"event 7 has {ROUTED_TIME} '?{value}"):
            read(MetadataColumn(Metadata.ROUTED, ROUTED_TIME), {"SystemProperties": {ROUTED_TIME: value}})


def test_no_events_have_no_values() -> None:
    for kind in CaptureInput.metadata.known:
        assert read(MetadataColumn(kind)) == []


PROPERTIES = st.dictionaries(
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=3), st.binary(max_size=2)),
)


def naive_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None if value is None else str(value)


@given(events=st.lists(PROPERTIES, max_size=6), cut=st.integers(0, 6))
def test_properties_of_every_type_are_read_side_by_side(events: list[dict[str, Any]], cut: int) -> None:
    """This holds for a slice of a longer column too."""
    table = decode("b", file(*({"Properties": properties} for properties in events)), EVENT_DATA, ["Properties"])
    column = table["Properties"].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    assert string_of(column.slice(cut), "a").to_pylist() == [
        naive_text(properties.get("a")) for properties in events[cut:]
    ]
    assert list(map(json.loads, record_of(column.slice(cut)).to_pylist())) == [
        {name: naive_text(value) for name, value in properties.items()} for properties in events[cut:]
    ]


# Enqueued time


def enqueued(text: str, milliseconds: Any = None) -> dict[str, Any]:
    system = {} if milliseconds is None else {"x-opt-enqueued-time": milliseconds}
    return {"EnqueuedTimeUtc": text, "SystemProperties": system}


def test_the_millisecond_is_preferred_to_the_second() -> None:
    event = enqueued("12/9/2022 4:51:25 PM", 1670604685193)
    late, early = read(ENQUEUED, event, enqueued("12/9/2022 4:51:25 PM"))
    assert late == from_datetime(datetime(2022, 12, 9, 16, 51, 25, 193_000, UTC))
    assert early == from_datetime(datetime(2022, 12, 9, 16, 51, 25, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("3/1/2026 12:00:00 AM", NOON - timedelta(hours=12)),
        ("3/1/2026 12:00:00 PM", NOON),
        ("3/1/2026 1:05:09 PM", NOON + timedelta(hours=1, minutes=5, seconds=9)),
        ("11/16/2016 4:44:11 PM", datetime(2016, 11, 16, 16, 44, 11, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_the_service_writes_it(text: str, instant: datetime) -> None:
    assert read(ENQUEUED, enqueued(text)) == [from_datetime(instant)]


@given(time=st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31)))
def test_the_time_of_every_second_is_read_in_compiled_code(time: datetime) -> None:
    instant = time.replace(microsecond=0, tzinfo=UTC)
    assert read_times(pa.array(["", enqueued_text(instant)])).tolist() == [UNREAD, from_datetime(instant)]


WRITTEN = st.one_of(
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
        lambda time: f"{time.month}/{time.day}/{time.year} {time.hour % 12 or 12}:{time:%M:%S %p}"
    ),
    st.from_regex(r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4} [0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M", fullmatch=True),
    st.text(max_size=3),
)


@given(texts=st.lists(WRITTEN, max_size=6))
def test_many_strings_at_once_are_read_as_each_alone(texts: list[str]) -> None:
    assert metadata.seconds(pa.array(texts, pa.string()).dictionary_encode()).tolist() == [
        metadata._second(text) for text in texts
    ]


@pytest.mark.parametrize(
    ("event", "written"),
    [
        (enqueued(""), "EnqueuedTimeUtc ''"),
        (enqueued("2026-03-01T12:00:00Z"), "EnqueuedTimeUtc '2026-03-01T12:00:00Z'"),
        (enqueued("2/30/2026 1:00:00 PM"), "EnqueuedTimeUtc '2/30/2026 1:00:00 PM'"),
        (enqueued("3/1/2026 12:00:00 PM", "soon"), "x-opt-enqueued-time 'soon'"),
        (enqueued("3/1/2026 12:00:00 PM", 1.5), "x-opt-enqueued-time 1.5"),
        (enqueued("3/1/2026 12:00:00 PM", 2**62), f"x-opt-enqueued-time {2**62}"),
        (enqueued("3/1/2026 12:00:00 PM", -1), "x-opt-enqueued-time -1"),
    ],
)
def test_a_blob_whose_enqueued_times_cannot_be_read_is_damaged(event: dict[str, Any], written: str) -> None:
    with pytest.raises(DamagedBlobError) as caught:
        read(ENQUEUED, enqueued("3/1/2026 12:00:00 PM"), event)
    assert f"event 8 has {written}, so its enqueued time is unknown" in str(caught.value)


def test_an_event_was_processed_when_it_arrived() -> None:
    """No archive records when a live job read the event."""
    event = enqueued("3/1/2026 11:57:00 AM")
    processed = MetadataColumn(Metadata.EVENT_PROCESSED)
    assert read(processed, event) == [from_datetime(NOON)]
    in_window = PinnedBlob("telemetry", "3", BLOB.blob, EnqueuedRange(from_datetime(NOON), from_datetime(NOON)))
    content = file(event)
    columns = [processed, ENQUEUED]
    arrays = metadata.read(columns, in_window, decode(NAME, content, EVENT_DATA, fields_of(columns)))
    assert arrays[processed].to_pylist() == [from_datetime(NOON - timedelta(minutes=3))]


def test_a_partition_that_is_not_a_number_is_an_error_of_one_line() -> None:
    with pytest.raises(RunError, match="is of partition 'a', which is not a number"):
        read(MetadataColumn(Metadata.PARTITION_ID), {}, pinned=PinnedBlob("telemetry", "a", BLOB.blob))
