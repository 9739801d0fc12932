"""What every body format promises: no event of a message is lost or counted twice, and none changes its neighbours."""

import csv
import gzip
import io
import itertools
import json
import pickle
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.formats import messages as formats_messages
from recapture.formats.bodies import Projection
from recapture.formats.body_formats import BodyFormat, messages_of
from recapture.formats.compressed_messages import Compression
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.messages import NO_EVENT, Messages
from recapture.model import AsaType, InputColumn
from tests.draws import examples

DEVICE, TEMPERATURE = InputColumn(("deviceId",), AsaType.STRING), InputColumn(("temperature",), AsaType.FLOAT)
FIELDS = Projection([DEVICE, TEMPERATURE])
Record = dict[str, Any]
Row = tuple[Any, ...] | str
"""The fields of an event, or the reason why it is malformed."""


def as_lines(records: Sequence[Record]) -> bytes:
    return "\r\n".join(map(json.dumps, records)).encode()


def as_array(records: Sequence[Record]) -> bytes:
    return json.dumps(records).encode()


def as_csv(records: Sequence[Record]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", quoting=csv.QUOTE_ALL)
    writer.writerow(records[0] if records else ["deviceId", "temperature"])
    writer.writerows(record.values() for record in records)
    return out.getvalue().removesuffix("\r\n").encode()


SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "reading",
    "fields": [{"name": "deviceId", "type": ["null", "string"]}, {"name": "temperature", "type": "double"}],
}


def as_avro(records: Sequence[Record], codec: str = "null", schema: Any = SCHEMA) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec)
    return out.getvalue()


@dataclass(frozen=True)
class Kind:
    """A way to write messages."""

    messages: Messages
    write: Callable[[Sequence[Record]], bytes]
    cuts: Callable[[bytes], set[int]] = lambda body: set()
    """Sizes to which a message may be cut without notice, because the rest is a message."""


def whole_lines(body: bytes) -> set[int]:
    """Return the sizes at which lines end: fewer lines are a message, too."""
    ends = {place for place, byte in enumerate(body) if byte == ord("\n")}
    return {end + step for end in ends for step in (-1, 0, 1)}


def whole_fields(body: bytes) -> set[int]:
    """Return the sizes at which a line of CSV or its last field ends: an empty field is null."""
    return whole_lines(body) | {place + 1 for place, byte in enumerate(body) if byte == ord(";")}


def whole_blocks(body: bytes) -> set[int]:
    return {place + 16 for place in range(len(body)) if body[place : place + 16] == body[-16:]}


def deflated(body: bytes) -> bytes:
    return zlib.compress(body, wbits=-15)


def squeezed(kind: Kind, compression: Compression) -> Kind:
    squeezes: dict[Compression, Callable[[bytes], bytes]]
    squeezes = {Compression.GZIP: gzip.compress, Compression.DEFLATE: deflated}
    inner = BodyFormat.CSV if kind.write is as_csv else BodyFormat.JSON
    return Kind(messages_of(inner, compression, ";"), lambda records: squeezes[compression](kind.write(records)))


JSON = messages_of()
CSV = messages_of(BodyFormat.CSV, delimiter=";")
AVRO = messages_of(BodyFormat.AVRO)
PLAIN = {
    "JSON array": Kind(JSON, as_array),
    "JSON lines": Kind(JSON, as_lines, whole_lines),
    "CSV": Kind(CSV, as_csv, whole_fields),
    "Avro": Kind(AVRO, as_avro, whole_blocks),
    "Avro, deflated": Kind(AVRO, lambda records: as_avro(records, "deflate"), whole_blocks),
}
KINDS = PLAIN | {
    f"{name}, {compression}": squeezed(PLAIN[name], compression)
    for name in ("JSON array", "CSV")
    for compression in Compression
    if compression is not Compression.NONE
}
each_kind: Callable[..., Any] = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


def rows_of(
    messages: Messages, bodies: Sequence[bytes | None], unreadable: pa.Array | None = None, fields: Projection = FIELDS
) -> list[list[Row]]:
    """Return the events of each message; they do not depend on whether the bodies are views."""
    decoder = JsonBodies(messages.only_strings)
    results = []
    for array in (pa.array(bodies, pa.binary()), pa.array(bodies, pa.binary()).cast(pa.binary_view())):
        events, parsed = formats_messages.read(messages, decoder, array, fields, unreadable)
        message = list(range(len(bodies))) if events is None else events.message.tolist()
        assert message == sorted(message)
        assert set(message) == set(range(len(bodies)))
        reasons = parsed.malformed.to_pylist()
        values = zip(*(parsed.columns[column].to_pylist() for column in fields.columns), strict=True)
        rows: list[Row] = [reason or row for row, reason in zip(values, reasons, strict=True)]
        grouped = itertools.groupby(zip(message, rows, strict=True), key=lambda pair: pair[0])
        results.append([[row for _, row in pairs] for _, pairs in grouped])
    assert results[0] == results[1]
    return results[0]


def records(*numbers: int) -> list[Record]:
    return [{"deviceId": f"device-{number}", "temperature": number + 0.25} for number in numbers]


def expected(*numbers: int) -> list[Row]:
    return [(f"device-{number}", number + 0.25) for number in numbers]


def is_malformed(rows: Sequence[Row]) -> bool:
    return any(isinstance(row, str) for row in rows)


def test_every_body_format_is_tested_here() -> None:
    assert {type(kind.messages) for kind in PLAIN.values()} == {type(messages_of(format_)) for format_ in BodyFormat}


@each_kind
def test_each_event_of_a_message_is_an_event_in_its_order(kind: Kind) -> None:
    bodies = [kind.write(records(1)), kind.write(records(2, 3, 4)), kind.write(records(5, 6))]
    pickled: Messages = pickle.loads(pickle.dumps(kind.messages))
    assert rows_of(pickled, bodies) == [expected(1), expected(2, 3, 4), expected(5, 6)]


@each_kind
def test_a_message_without_events_is_one_malformed_event(kind: Kind) -> None:
    reason = "not JSON" if kind.write is as_lines else NO_EVENT
    assert rows_of(kind.messages, [kind.write([]), kind.write(records(1))]) == [[reason], expected(1)]


@each_kind
def test_no_messages_have_no_events(kind: Kind) -> None:
    assert rows_of(kind.messages, []) == []


@each_kind
def test_a_message_without_a_body_or_with_an_empty_one_is_malformed(kind: Kind) -> None:
    none, empty, whole = rows_of(kind.messages, [None, b"", kind.write(records(1))])
    assert (none, whole) == (["no body"], expected(1))
    assert is_malformed(empty)
    assert len(empty) == 1


@each_kind
def test_what_a_reader_could_not_read_is_the_reason(kind: Kind) -> None:
    body = kind.write(records(1, 2))
    assert rows_of(kind.messages, [body, body], pa.array(["torn", None])) == [["torn"], expected(1, 2)]


@each_kind
def test_a_message_that_is_cut_is_malformed_unless_the_rest_is_a_message(kind: Kind) -> None:
    body = kind.write(records(1, 2))
    sizes = sorted(set(range(1, len(body))) - kind.cuts(body))
    read = rows_of(kind.messages, [part for size in sizes for part in (body[:size], body)])
    assert [size for size, rows in zip(sizes, read[::2], strict=True) if not is_malformed(rows)] == []
    assert [rows for rows in read[1::2] if rows != expected(1, 2)] == []


@pytest.mark.parametrize("kind", [PLAIN[name] for name in ("JSON array", "JSON lines")], ids=["array", "lines"])
def test_a_json_message_that_is_cut_is_malformed_without_others_that_are(kind: Kind) -> None:
    """Bodies are parsed all at once as long as none is bad. Words are cut at their ends only."""
    body = kind.write(records(1, 2))
    within_words = {match.end() for match in re.finditer(rb"\w(?=\w)", body)}
    for size in sorted(set(range(1, len(body))) - kind.cuts(body) - within_words):
        cut, whole = rows_of(kind.messages, [body[:size], body])
        assert is_malformed(cut), size
        assert whole == expected(1, 2)


@each_kind
def test_a_message_that_is_written_twice_is_malformed_or_has_its_events_twice(kind: Kind) -> None:
    body = kind.write(records(1, 2))
    twice, whole = rows_of(kind.messages, [body + body, body])
    assert is_malformed(twice) or twice == expected(1, 2, 1, 2)
    assert whole == expected(1, 2)


@each_kind
@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_flipped_bit_hides_no_event_and_changes_no_neighbour(kind: Kind, data: st.DataObject) -> None:
    body = bytearray(kind.write(records(1, 2)))
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changed, any_bytes, whole = rows_of(
        kind.messages, [bytes(body), data.draw(st.binary(max_size=20)), kind.write(records(3, 4))]
    )
    assert is_malformed(changed) or len(changed) >= 2
    assert any_bytes
    assert whole == expected(3, 4)


# JSON


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b'\xef\xbb\xbf[{"deviceId": "a"}, {"deviceId": "b"}]', [("a", None), ("b", None)]),
        (b'  [{"deviceId": "a"}]\n', [("a", None)]),
        (b'[{"deviceId": "a"}, 7]', [("a", None), "not a JSON object"]),
        (b'[[{"deviceId": "a"}]]', ["not a JSON object"]),
        (b'[{"deviceId": "a"}', ["not JSON"]),
        (b'{"deviceId":\n "a"\n}', [("a", None)]),
        (b'{"deviceId": "a"}\n\n \r\n{"deviceId": "b"}\n', [("a", None), ("b", None)]),
        (b'{"deviceId": "a"}\n{"deviceId":', [("a", None), "not JSON"]),
        (b'{"deviceId":\n "a"\n', ["not JSON"]),
        (b'{"deviceId": "a"}{"deviceId": "b"}', ["not JSON"]),
        (b"7", ["not a JSON object"]),
    ],
)
def test_a_json_message_is_an_object_an_array_or_lines_of_objects(body: bytes, rows: list[Row]) -> None:
    assert rows_of(JSON, [body, as_array(records(1))]) == [rows, expected(1)]


def test_the_numbers_of_an_array_s_elements_are_exact() -> None:
    fields = Projection([InputColumn(("a",), AsaType.BIGINT), InputColumn(("b",), AsaType.STRING)])
    body = b'[{"a": 9007199254740993, "b": 5.0}, {"a": -9223372036854775808, "b": "5"}]'
    assert rows_of(JSON, [body], fields=fields) == [[(9007199254740993, "5.0"), (-(2**63), "5")]]


# CSV

WITHIN = "stands within a line: lines end in \\n or \\r\\n"


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b"deviceId;temperature\na;1.5\nb;\n", [("a", 1.5), ("b", None)]),
        (b"\xef\xbb\xbfdeviceId;temperature\r\na;1.5\r\n\r\n", [("a", 1.5)]),
        (b"TEMPERATURE;x;DeviceId\n2;y;a", [("a", 2.0)]),
        (b'deviceId;temperature\n"a;""b""";1', [('a;"b"', 1.0)]),
        (b"deviceId;temperature\na;warm", ["temperature is not a float"]),
        (b"deviceId;temperature\na", ["1 fields, the header has 2"]),
        (b"deviceId;temperature\na;1;2\nb;2", ["3 fields, the header has 2", ("b", 2.0)]),
        (b'deviceId;temperature\n"a;1\nb;2', ["a quotation mark is not closed in its line", ("b", 2.0)]),
        (b"deviceId;temperature\na\rb;2\nc;3", [f"a carriage return {WITHIN}", ("c", 3.0)]),
        (b"deviceId;temperature\n\xff;1\nb;2", ["not UTF-8", ("b", 2.0)]),
        (b"deviceId;DEVICEID\na;b", ["its header names deviceid twice"]),
        (b"deviceId;\na;b", ["its header has a field without a name"]),
        (b"deviceId;temperature", [NO_EVENT]),
        (b"\n\n", ["it has neither a header nor an event"]),
    ],
)  # fmt: skip
def test_a_csv_message_is_a_header_and_rows(body: bytes, rows: list[Row]) -> None:
    assert rows_of(CSV, [as_csv(records(1)), body, as_csv(records(2, 3))]) == [expected(1), rows, expected(2, 3)]


def test_only_some_of_the_csv_messages_may_begin_with_a_byte_order_mark() -> None:
    bodies = [b"\xef\xbb\xbf" + as_csv(records(1)), as_csv(records(2)), b"\xef\xbb\xbf"]
    assert rows_of(CSV, bodies) == [expected(1), expected(2), ["it has neither a header nor an event"]]


# Avro


def of_type(type_: Any, value: Any) -> bytes:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": type_}]}
    return as_avro([{"x": value}], schema=schema)


@pytest.mark.parametrize(
    ("type_", "value", "kind", "read"),
    [
        ("int", 7, AsaType.BIGINT, 7),
        ("long", 2**53 + 1, AsaType.BIGINT, 2**53 + 1),
        ("float", 0.5, AsaType.FLOAT, 0.5),
        ("double", 1e300, AsaType.FLOAT, 1e300),
        ("boolean", True, AsaType.BIT, True),
        ("string", 'é"\n', AsaType.STRING, 'é"\n'),
        (["null", "string"], None, AsaType.STRING, None),
        ({"type": "enum", "name": "e", "symbols": ["on", "off"]}, "off", AsaType.STRING, "off"),
        ({"type": "array", "items": "long"}, [1, 2], AsaType.ARRAY, "[1,2]"),
        ({"type": "map", "values": "long"}, {"a": 1}, AsaType.RECORD, '{"a":1}'),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_700_000_000_000, AsaType.BIGINT, 1_700_000_000_000),
    ],
)
def test_values_of_avro_have_the_types_of_asa_s_table(type_: Any, value: Any, kind: AsaType, read: Any) -> None:
    assert rows_of(AVRO, [of_type(type_, value)], fields=Projection([InputColumn(("x",), kind)])) == [[(read,)]]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (of_type("bytes", b"a"), "its Avro schema has bytes in x, which no type of ASA holds"),
        (of_type("double", float("nan")), "a record of its Avro file cannot be read (ValueError)"),
        (as_avro(records(1), codec="bzip2"), "its Avro codec is bzip2: only null and deflate are read"),
        (b'{"deviceId": "a"}', "not an Avro file"),
    ],
)
def test_an_avro_message_that_cannot_be_read_says_why(body: bytes, reason: str) -> None:
    assert rows_of(AVRO, [as_avro(records(1)), body, as_avro(records(2))]) == [expected(1), [reason], expected(2)]


def test_messages_of_several_schemas_may_be_mixed() -> None:
    other = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "unit", "type": "string"}]}
    bodies = [as_avro(records(1)), as_avro([{**records(2)[0], "unit": "C"}], schema=other), as_avro(records(3, 4))]
    assert rows_of(AVRO, bodies) == [expected(1), expected(2), expected(3, 4)]


# Compression


def test_a_body_that_is_not_compressed_or_in_another_way_says_so() -> None:
    messages = messages_of(BodyFormat.JSON, Compression.DEFLATE)
    body = as_array(records(1))
    plain, zipped, whole = rows_of(messages, [body, gzip.compress(body), deflated(body)])
    assert [str(plain[0])[:12], str(zipped[0])[:12]] == ["not Deflate ", "not Deflate "]
    assert whole == expected(1)


def test_a_body_that_inflates_without_end_is_malformed() -> None:
    bomb = gzip.compress(b"[" + b" " * (65 << 20), 1)
    assert rows_of(messages_of(compression=Compression.GZIP), [bomb]) == [["it inflates to more than 64 MiB"]]
