"""Messages that an IoT hub routed to storage."""

import base64
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DamagedBlobError
from recapture.formats.iot_hub import IotHubReader
from recapture.model import Metadata
from recapture.time_model.ticks import from_datetime
from tests.formats.blobs import TEN, bodies, column, hour, pinned, read, reasons, values
from tests.paths import CAPTURE_FILES

IOT = IotHubReader()
ENQUEUED = column(Metadata.EVENT_ENQUEUED)
USER = column(Metadata.USER, "le/vel")
DEVICE = column(Metadata.IOT_HUB, "connectionDeviceId")
SCHEMA = {
    "type": "record",
    "name": "Message",
    "namespace": "Microsoft.Azure.Devices",
    "fields": [
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "Properties", "type": {"type": "map", "values": "string"}},
        {"name": "SystemProperties", "type": {"type": "map", "values": "string"}},
        {"name": "Body", "type": ["null", "bytes"]},
    ],
}
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "EnqueuedTimeUtc": st.integers(0, 600).map(
                lambda s: f"{TEN + timedelta(seconds=s):%Y-%m-%dT%H:%M:%S}.1230000Z"
            ),
            "Properties": st.dictionaries(st.sampled_from(["le/vel", "x"]), st.text(max_size=3), max_size=2),
            "SystemProperties": st.just({"connectionDeviceId": "a"}),
            "Body": st.one_of(st.none(), st.binary(max_size=12)),
        }
    ),
    min_size=1,
    max_size=6,
)


def avro(messages: list[dict[str, Any]], codec: str = "null") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(SCHEMA), messages, codec=codec)
    return out.getvalue()


def json_lines(messages: list[dict[str, Any]]) -> bytes:
    def line(message: dict[str, Any]) -> str:
        body = message["Body"]
        return json.dumps(message | {"Body": base64.b64encode(body).decode() if isinstance(body, bytes) else body})

    return "\n".join(map(line, messages)).encode()


def real(name: str) -> bytes:
    path = CAPTURE_FILES / name
    if not path.exists():
        pytest.skip(f"shared/capture-files/{name} is not next to this repository")
    return path.read_bytes()


@given(MESSAGES, st.sampled_from(["null", "deflate"]))
def test_avro_and_json_lines_hold_the_same_messages(messages: list[dict[str, Any]], codec: str) -> None:
    columns = [ENQUEUED, USER, column(Metadata.EVENT_PROCESSED), DEVICE, column(Metadata.USER)]
    for content in (avro(messages, codec), json_lines(messages)):
        events = read(IOT, content, *columns, blob=pinned(enqueued=hour()))
        assert bodies(events) == [message["Body"] for message in messages]
        assert reasons(events) == [None] * len(messages)
        assert events.number.tolist() == list(range(len(messages)))
        expected = [from_datetime(datetime.fromisoformat(message["EnqueuedTimeUtc"])) for message in messages]
        assert values(events, ENQUEUED) == values(events, columns[2]) == expected
        assert values(events, DEVICE) == ["a"] * len(messages)
        assert values(events, USER) == [message["Properties"].get("le/vel") for message in messages]
        assert [json.loads(text) for text in values(events, columns[4])] == [
            message["Properties"] for message in messages
        ]


def test_a_real_blob_with_bodies_in_base64_is_read() -> None:
    events = read(
        IOT, real("message_enrichments_json_encoding.jsonl"), ENQUEUED, column(Metadata.USER, "level"), DEVICE
    )
    body = {
        "deviceId": "Contoso-Test-Device",
        "temperature": 29.232016848042615,
        "humidity": 64.305349692844487,
        "pointInfo": "This is a storage message.",
    }
    assert [json.loads(content or b"") for content in bodies(events)] == [body, body]
    assert values(events, ENQUEUED) == [from_datetime(datetime(2019, 5, 10, 6, 6, 32, 722_000, UTC))] * 2
    assert values(events, column(Metadata.USER, "level")) == ["storage"] * 2
    assert values(events, DEVICE) == ["Contoso-Test-Device"] * 2


def test_a_real_blob_with_an_inline_body_is_read() -> None:
    events = read(IOT, real("iot_central_export_blob_inline_json_body.jsonl"))
    assert [json.loads(content or b"") for content in bodies(events)] == [
        {"temp": 49.91322758395974, "humid": 49.61214852573155, "pm25": 25.87332214661367}
    ]


@pytest.mark.parametrize(
    ("system", "body", "expected"),
    [
        ({}, "eyJhIjoxfQ==", b'{"a":1}'),
        ({"contentType": "application/json"}, "eyJhIjoxfQ==", b'{"a":1}'),
        (
            {"contentType": "application/json; charset=utf-8", "contentEncoding": "UTF-8"},
            "eyJhIjoxfQ==",
            b'"eyJhIjoxfQ=="',
        ),
        ({"contentType": "application/json", "contentEncoding": "utf-8"}, {"a": [1, "é"]}, '{"a":[1,"é"]}'.encode()),
        ({"contentType": "application/octet-stream", "contentEncoding": "utf-8"}, "eyJhIjoxfQ==", b'{"a":1}'),
        ({}, None, None),
    ],
)
def test_a_body_is_base64_unless_the_sender_said_that_it_is_json(
    system: dict[str, str], body: object, expected: bytes | None
) -> None:
    assert bodies(read(IOT, json.dumps({"SystemProperties": system, "Body": body}).encode())) == [expected]


def test_lines_without_a_message_keep_their_places_and_their_bytes() -> None:
    lines = [b'{"Body": {"a": 1}}', b'{"Body": "no base64!"}', b"{", b'{"Bo', b'{"Body": "e30="}', b"\xff"]
    events = read(IOT, b"\n".join(lines))
    assert bodies(events) == [b'{"a":1}', lines[1], lines[2], lines[3], b"{}", lines[5]]
    not_json = "its line is not JSON"
    assert reasons(events) == [None, "its Body is not base64", not_json, not_json, None, not_json]


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_by_enqueued_time_every_message_must_have_its_enqueued_time(text: str | None) -> None:
    message = {"Properties": {}, "SystemProperties": {}, "Body": b"{}"}
    good, bad = message | {"EnqueuedTimeUtc": "2026-03-01T10:00:00.0000000Z"}, message | {"EnqueuedTimeUtc": text}
    contents = [json_lines([good, bad])] + ([] if text is None else [avro([good, bad])])
    for content in contents:
        assert len(bodies(read(IOT, content))) == 2
        with pytest.raises(DamagedBlobError) as caught:
            read(IOT, content, ENQUEUED, blob=pinned(enqueued=hour()))
        assert "its event 1 has " in str(caught.value)
        assert "so its enqueued time is unknown" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has no bytes"),
        (b"deviceId,temperature\n", "it is neither an Avro file nor JSON lines"),
        (avro([])[:40], "it is cut off"),
        (avro([]).replace(b"null", b"zstd", 1), "its codec is 'zstd'; IoT Hub writes null or deflate"),
    ],
)
def test_a_blob_that_iot_hub_did_not_write_is_damaged(content: bytes, reason: str) -> None:
    with pytest.raises(DamagedBlobError) as caught:
        read(IOT, content)
    assert reason in str(caught.value)


def test_records_of_capture_are_not_those_of_iot_hub() -> None:
    from recapture.tools.sample.capture_file import capture_file

    with pytest.raises(DamagedBlobError) as caught:
        read(IOT, capture_file([]))
    assert "its records are 'EventData', not the Message of IoT Hub" in str(caught.value)
