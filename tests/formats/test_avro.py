"""A Capture blob is read whole or not at all."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Literal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DamagedBlobError, RunError
from recapture.formats.avro import decode, has_block, header, read_framing
from recapture.formats.duckdb_sql import one_array
from recapture.formats.event_hubs import EVENT_DATA
from recapture.tools.sample.capture_file import SampleEvent, capture_file, capture_schema
from tests.draws import examples
from tests.paths import CAPTURE_FILES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CODECS: list[Literal["null", "deflate"]] = ["null", "deflate"]


def events(*numbers: int) -> list[SampleEvent]:
    return [
        SampleEvent(n, str(n * 96), NOON, b'{"n":%d}' % n, f"key-{n}", {"a": n, "b": None} if n % 2 else {})
        for n in numbers
    ]


def in_blocks(*blocks: list[SampleEvent], codec: str = "null") -> bytes:
    """Return a file of several blocks, written by fastavro."""
    schema = fastavro.parse_schema(json.loads(capture_schema()))
    out = BytesIO()
    writer: Any = fastavro.write.Writer(out, schema, codec=codec)
    for block in blocks:
        for event in block:
            writer.write(record(event))
        writer.dump()
    return out.getvalue()


def record(event: SampleEvent) -> dict[str, Any]:
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.offset,
        "EnqueuedTimeUtc": "3/1/2026 12:00:00 PM",
        "SystemProperties": {"x-opt-partition-key": event.partition_key},
        "Properties": dict(event.properties),
        "Body": event.body,
    }


def sequence(content: bytes) -> list[int]:
    numbers: list[int] = decode("b", content, EVENT_DATA)["SequenceNumber"].to_pylist()
    return numbers


def complaint(content: bytes) -> str:
    """Return the reason why the content is damaged, from a line that names the blob and says what to do."""
    with pytest.raises(DamagedBlobError) as caught:
        decode("contoso/telemetry/0/b.avro", content, EVENT_DATA)
    message = str(caught.value)
    match = re.fullmatch(
        r"blob contoso/telemetry/0/b\.avro is damaged: (.+); restore it from a backup or remove it, then plan again, "
        r"or quarantine it with input\.on_damaged_blob: quarantine",
        message,
    )
    assert match, message
    return match[1]


def flipped(content: bytes, position: int, mask: int = 0xFF) -> bytes:
    changed = bytearray(content)
    changed[position] ^= mask
    return bytes(changed)


def real(name: str) -> bytes:
    path = CAPTURE_FILES / name
    if not path.exists():
        pytest.skip(f"shared/capture-files/{name} is not next to this repository")
    return path.read_bytes()


@pytest.mark.parametrize("name", ["2016-no-extension-05", "p9--2022-12-09--16-50-12.avro"])
def test_a_real_file_gives_its_events_byte_for_byte(name: str) -> None:
    content = real(name)
    table = decode(name, content, EVENT_DATA)
    expected: list[Any] = list(fastavro.reader(BytesIO(content)))
    assert table.schema == EVENT_DATA.always
    assert expected
    assert table.to_pylist() == [{key: row[key] for key in ("SequenceNumber", "Body")} for row in expected]


def test_a_real_empty_file_gives_no_events() -> None:
    assert decode("empty.avro", real("empty.avro"), EVENT_DATA).equals(EVENT_DATA.always.empty_table())


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("properties_with_null", [True, False])
def test_events_are_in_the_order_of_the_file(codec: Literal["null", "deflate"], properties_with_null: bool) -> None:
    content = capture_file(events(5, 3, 4), codec=codec, properties_with_null=properties_with_null)
    table = decode("b", content, EVENT_DATA)
    assert table.to_pylist() == [{"SequenceNumber": n, "Body": b'{"n":%d}' % n} for n in (5, 3, 4)]
    assert read_framing("b", content, EVENT_DATA).codec == codec


def test_bodies_stay_where_they_are_in_the_blob() -> None:
    content = capture_file(events(*range(20_000)))
    before = pa.total_allocated_bytes()
    body = decode("b", content, EVENT_DATA)["Body"]
    assert pa.total_allocated_bytes() - before < len(content) / 10
    assert body.to_pylist() == [b'{"n":%d}' % n for n in range(20_000)]


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_file_is_a_heartbeat(codec: Literal["null", "deflate"]) -> None:
    assert decode("b", capture_file([], codec=codec), EVENT_DATA).equals(EVENT_DATA.always.empty_table())


@pytest.mark.parametrize("codec", CODECS)
def test_every_block_is_read(codec: str) -> None:
    content = in_blocks(events(0, 1), events(2), events(3, 4, 5), codec=codec)
    assert len(read_framing("b", content, EVENT_DATA).blocks) == 3
    assert sequence(content) == [0, 1, 2, 3, 4, 5]


def test_an_empty_block_between_two_blocks_changes_nothing() -> None:
    content = in_blocks(events(0), events(1))
    blocks = read_framing("b", content, EVENT_DATA).blocks
    second = blocks[0].stop + 16
    assert sequence(content[:second] + b"\0\0" + content[second - 16 : second] + content[second:]) == [0, 1]


def test_a_body_may_be_null_empty_or_any_bytes() -> None:
    bodies = [None, b"", bytes(range(256)), b"x" * 100_000]
    schema = fastavro.parse_schema(json.loads(capture_schema()))
    out = BytesIO()
    fastavro.writer(
        out, schema, [record(event) | {"Body": body} for event, body in zip(events(0, 1, 2, 3), bodies, strict=True)]
    )
    assert decode("b", out.getvalue(), EVENT_DATA)["Body"].to_pylist() == bodies


@pytest.mark.parametrize("codec", CODECS)
def test_equal_strings_of_successive_events_are_read_once(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recapture.formats.avro.records.PART_BYTES", 100)
    texts = ["", "a", "a", "ab", "aa", "a", "a longer text", "a longer text", "a longer texu", "a longer text"] * 2
    schema = fastavro.parse_schema(json.loads(capture_schema()))
    out = BytesIO()
    writer: Any = fastavro.write.Writer(out, schema, codec=codec)
    for index, text in enumerate(texts):
        writer.write(record(events(0)[0]) | {"EnqueuedTimeUtc": text})
        if index % 4 == 3:
            writer.dump()
    writer.dump()
    column = decode("b", out.getvalue(), EVENT_DATA, ["EnqueuedTimeUtc"])["EnqueuedTimeUtc"]
    assert column.to_pylist() == texts
    assert sum(len(chunk.dictionary) for chunk in column.chunks) < len(texts)
    assert one_array(column).to_pylist() == texts


def test_more_events_than_any_buffer_holds_are_read() -> None:
    assert sequence(capture_file(events(*range(70_000)))) == list(range(70_000))


def test_an_event_that_looks_like_the_end_is_an_event() -> None:
    content = capture_file([SampleEvent(-1, "", NOON, b"the end of the block's records")])
    assert sequence(content) == [-1]


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_that_is_cut_off_anywhere_is_reported_as_cut_off(codec: Literal["null", "deflate"]) -> None:
    content = capture_file(events(0, 1, 2), codec=codec)
    header = read_framing("b", content, EVENT_DATA).blocks[0].start - 3
    for size in {*range(1, len(content))} - {header}:
        assert complaint(content[:size]).startswith("it is cut off: "), size
    assert complaint(content[: len(content) // 2 - 100]).endswith(f"longer than its {len(content) // 2 - 100} bytes")


def test_the_block_in_which_a_file_is_cut_off_is_named() -> None:
    content = in_blocks(events(0, 1), events(2))
    second = read_framing("b", content, EVENT_DATA).blocks[0].stop + 16
    for size in range(second + 1, len(content)):
        assert complaint(content[:size]).startswith(f"it is cut off: its block at byte {second} "), size


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_with_only_a_header_has_no_events(codec: str) -> None:
    """fastavro, Spark and others write such a file for no records; Capture writes a block of no records."""
    out = BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(capture_schema())), [], codec=codec)
    assert not has_block("b", out.getvalue(), EVENT_DATA)
    assert has_block("b", capture_file([], codec=codec), EVENT_DATA)  # type: ignore[arg-type]
    assert decode("b", out.getvalue(), EVENT_DATA).equals(EVENT_DATA.always.empty_table())
    assert decode("b", out.getvalue(), EVENT_DATA, ALL).num_rows == 0
    assert complaint(out.getvalue()[:-1]).startswith("it is cut off: its header is longer than its ")


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_byte_never_loses_an_event(codec: Literal["null", "deflate"]) -> None:
    """Neither codec has a checksum: a value may change, but either all events are there or the file is refused."""
    content = capture_file(events(0, 1, 2), codec=codec)
    header = read_framing("b", content, EVENT_DATA).blocks[0].start - 2
    survived = 0
    for position in range(len(content)):
        for mask in (0x02, 0xFF) if position >= header else (0x01,):
            with contextlib.suppress(DamagedBlobError):
                assert decode("b", flipped(content, position, mask), EVENT_DATA).num_rows == 3, (position, mask)
                survived += 1
    assert 0 < survived < len(content)


@pytest.mark.parametrize("declared", [0, 1, 2, 4, 5, 1 << 40])
@pytest.mark.parametrize("codec", CODECS)
def test_a_block_that_declares_another_number_of_records_is_refused(
    declared: int, codec: Literal["null", "deflate"]
) -> None:
    content = capture_file(events(0, 1, 2), codec=codec)
    count = content.index(b"\x06", read_framing("b", content, EVENT_DATA).blocks[0].start - 4)
    number = BytesIO()
    fastavro.schemaless_writer(number, "long", declared)
    reason = complaint(content[:count] + number.getvalue() + content[count + 1 :])
    records = "1 record" if declared == 1 else f"{declared:,} records"
    assert reason == f"its block 0 declares {records}, but does not hold exactly these"


def test_bytes_in_a_block_that_are_not_a_record_are_refused() -> None:
    content = capture_file([])
    sync = content[-16:]
    assert "records" in complaint(content[:-18] + b"\0\x06abc" + sync)


def test_a_file_of_no_bytes_is_refused() -> None:
    assert complaint(b"") == "it has no bytes"


@pytest.mark.parametrize("content", [b"{}", b"PAR1", b"Obj\x02" + b"\0" * 600, b"\0" * 600])
def test_a_file_that_is_not_avro_is_refused(content: bytes) -> None:
    assert complaint(content) == "it is not an Avro file (its first bytes are not Obj 01)"


def test_zeros_in_place_of_the_end_are_refused() -> None:
    content = capture_file(events(0, 1, 2))
    for start in range(4, len(content) - 64, 16):
        complaint(content[:start] + bytes(len(content) - start))


def test_bytes_after_the_end_are_refused() -> None:
    content = capture_file(events(0))
    assert complaint(content + b"\0" * 40) == f"its block at byte {len(content)} does not end in the file's sync marker"


def test_another_sync_marker_is_refused() -> None:
    content = capture_file(events(0))
    assert complaint(flipped(content, len(content) - 1)).endswith("does not end in the file's sync marker")


@pytest.mark.parametrize("codec", ["snappy", "bzip2", "zstandard"])
def test_a_codec_that_capture_does_not_write_is_named(codec: str) -> None:
    content = capture_file(events(0)).replace(b"\x14avro.codec\x08null", b"\x14avro.codec" + coded(codec))
    assert complaint(content) == f"its codec is {codec!r}; Capture writes null or deflate"


def coded(text: str) -> bytes:
    return bytes([2 * len(text)]) + text.encode()


def test_a_file_without_a_codec_is_not_compressed() -> None:
    content = capture_file(events(0, 1))
    assert content.startswith(b"Obj\x01\x04\x14avro.codec\x08null")
    assert sequence(b"Obj\x01\x02" + content[5 + 16 :]) == [0, 1]


def test_a_block_that_cannot_be_inflated_is_refused() -> None:
    content = capture_file([], codec="deflate")
    bad = b"not deflate at all"
    assert "cannot be inflated" in complaint(content[:-17] + bytes([2 * len(bad)]) + bad + content[-16:])


def avro(schema: dict[str, Any], *records: dict[str, Any]) -> bytes:
    out = BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records)
    return out.getvalue()


def test_a_record_of_another_type_is_named() -> None:
    message = {"type": "record", "name": "Message", "namespace": "Microsoft.Azure.Devices", "fields": []}
    schema = message | {"fields": [{"name": "EnqueuedTimeUtc", "type": "string"}]}
    assert complaint(avro(schema, {"EnqueuedTimeUtc": "x"})).endswith("not the EventData of Capture")
    assert "Message'" in complaint(avro(schema, {"EnqueuedTimeUtc": "x"}))


def test_event_data_without_a_body_is_a_record_of_another_type() -> None:
    schema = {"type": "record", "name": "EventData", "fields": [{"name": "SequenceNumber", "type": "long"}]}
    assert complaint(avro(schema, {"SequenceNumber": 1})) == "its records are 'EventData', not the EventData of Capture"


@pytest.mark.parametrize("kind", ["string", ["null", "long"], {"type": "enum", "name": "E", "symbols": ["A"]}])
def test_sequence_numbers_of_another_type_are_refused(kind: Any) -> None:
    schema = {
        "type": "record",
        "name": "EventData",
        "fields": [{"name": "SequenceNumber", "type": kind}, {"name": "Body", "type": "bytes"}],
    }
    if isinstance(kind, list):
        assert sequence(avro(schema, {"SequenceNumber": 7, "Body": b""})) == [7]
    else:
        reason = complaint(avro(schema, {"SequenceNumber": "A", "Body": b""}))
        assert reason == "its SequenceNumber is not an integer"


@pytest.mark.parametrize("schema", [b"", b"{}", b"[]", b"null", b"{", b'{"fields":[1]}'])
def test_a_schema_that_cannot_be_read_is_refused(schema: bytes) -> None:
    content = capture_file(events(0))
    written = capture_schema().encode()
    start = content.index(written)
    size = 2 * len(schema)
    assert complaint(content[: start - 2] + bytes([size]) + schema + content[start + len(written) :]) == (
        "its Avro schema cannot be read"
    )


def nested(depth: int) -> bytes:
    """Return an empty file whose schema has lists within lists, this many levels deep."""
    end = capture_file([])[-18:]
    schema = b'{"fields":' + b"[" * depth + b"]" * depth + b"}"
    size = BytesIO()
    fastavro.schemaless_writer(size, "long", len(schema))
    return b"Obj\x01\x02\x16avro.schema" + size.getvalue() + schema + b"\0" + end[2:] + end


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    assert complaint(nested(20_000)) == "its Avro schema cannot be read"


# More fields than the usual two

ALL = ("Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties")
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3)
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "SequenceNumber": st.integers(0, 2**62),
            "Offset": st.text(max_size=3),
            "EnqueuedTimeUtc": st.text(max_size=3),
            "SystemProperties": st.dictionaries(st.text(max_size=2), VALUES, max_size=3),
            "Properties": st.dictionaries(st.text(max_size=2), st.one_of(st.none(), VALUES), max_size=3),
            "Body": st.one_of(st.none(), st.binary(max_size=3)),
        }
    ),
    max_size=8,
)


def as_records(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        row.update({name: dict(row[name]) for name in ("SystemProperties", "Properties") if name in row})
    return rows


@pytest.mark.parametrize("name", ["2016-no-extension-05", "p9--2022-12-09--16-50-12.avro", "empty.avro"])
def test_every_field_of_a_real_file_can_be_read(name: str) -> None:
    content = real(name)
    assert as_records(decode(name, content, EVENT_DATA, ALL)) == list(fastavro.reader(BytesIO(content)))


@settings(max_examples=examples(60))
@given(blocks=st.lists(RECORDS, max_size=3), codec=st.sampled_from(CODECS), more=st.sets(st.sampled_from(ALL)))
def test_the_fields_asked_for_are_those_of_a_naive_reader(
    blocks: list[list[dict[str, Any]]], codec: str, more: set[str]
) -> None:
    out = BytesIO()
    writer: Any = fastavro.write.Writer(out, fastavro.parse_schema(json.loads(capture_schema())), codec=codec)
    for block in blocks:
        for event in block:
            writer.write(event)
        writer.dump()
    content = out.getvalue() if any(blocks) else capture_file([])
    table = decode("b", content, EVENT_DATA, sorted(more))
    assert table.column_names == ["SequenceNumber", "Body", *sorted(more)]
    expected = [event for block in blocks for event in block]
    assert as_records(table) == [{name: event[name] for name in table.column_names} for event in expected]


def test_properties_of_many_events_are_read() -> None:
    sent = events(*range(20_000))
    table = decode("b", capture_file(sent), EVENT_DATA, ALL)
    assert [dict(pairs) for pairs in table["Properties"].to_pylist()] == [dict(event.properties) for event in sent]
    keys = [dict(pairs)["x-opt-partition-key"] for pairs in table["SystemProperties"].to_pylist()]
    assert keys == [event.partition_key for event in sent]


@pytest.mark.parametrize("more", [(), ALL], ids=["two fields", "all fields"])
@pytest.mark.parametrize("codec", CODECS)
def test_with_any_fields_a_flipped_byte_never_loses_an_event(
    more: tuple[str, ...], codec: Literal["null", "deflate"]
) -> None:
    content = capture_file(events(0, 1, 2), codec=codec)
    header = read_framing("b", content, EVENT_DATA).blocks[0].start - 2
    survived = 0
    for position in range(header, len(content)):
        with contextlib.suppress(DamagedBlobError):
            assert decode("b", flipped(content, position), EVENT_DATA, more).num_rows == 3, position
            survived += 1
    assert codec == "deflate" or survived > 0


@pytest.mark.parametrize("declared", [1, 2, 4])
def test_with_all_fields_the_declared_number_of_records_must_be_there(declared: int) -> None:
    content = capture_file(events(0, 1, 2))
    count = content.index(b"\x06", read_framing("b", content, EVENT_DATA).blocks[0].start - 4)
    with pytest.raises(DamagedBlobError):
        decode("b", content[:count] + bytes([2 * declared]) + content[count + 1 :], EVENT_DATA, ALL)


PRIMITIVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.just(0.5)),
    ("double", st.just(-0.25)),
    ("bytes", st.binary(max_size=5)),
    ("string", st.text(max_size=5)),
    ({"type": "enum", "symbols": ["A", "B"]}, st.sampled_from("AB")),
    ({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "long", "logicalType": "timestamp-millis"}, st.just(NOON)),
]


def larger(
    parts: st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]],
) -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    return st.one_of(
        parts.map(lambda part: ({"type": "array", "items": part[0]}, st.lists(part[1].filter(bool), max_size=3))),
        parts.map(lambda part: ({"type": "map", "values": part[0]}, st.dictionaries(st.text(max_size=2), part[1]))),
        parts.map(lambda part: (["null", part[0]], st.none() | part[1])).filter(
            lambda part: part[0][1] != "null" and not isinstance(part[0][1], list)
        ),
        st.lists(parts, max_size=3).map(
            lambda fields: (
                {"type": "record", "fields": [{"name": f"f{i}", "type": kind} for i, (kind, _) in enumerate(fields)]},
                st.fixed_dictionaries({f"f{i}": values for i, (_, values) in enumerate(fields)}),
            )
        ),
    )


TYPES = st.recursive(st.sampled_from(PRIMITIVES), larger, max_leaves=5)


def renamed(kind: Any, names: Iterator[int]) -> Any:
    """Return a type in which each type that has a name has one of its own."""
    if isinstance(kind, list):
        return [renamed(branch, names) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    kind = {key: renamed(value, names) if key in ("items", "values", "type") else value for key, value in kind.items()}
    if "fields" in kind:
        kind["fields"] = [part | {"type": renamed(part["type"], names)} for part in kind["fields"]]
    return kind | ({"name": f"N{next(names)}"} if kind["type"] in ("record", "enum", "fixed") else {})


@settings(max_examples=examples(150))
@given(st.data(), st.lists(TYPES, max_size=3), st.lists(st.integers(0, 2**40), max_size=4), st.sampled_from(CODECS))
def test_fields_that_are_not_read_may_have_any_type(
    data: st.DataObject, types: list[tuple[Any, st.SearchStrategy[Any]]], numbers: list[int], codec: str
) -> None:
    """A type is a pair: its schema, and a strategy for its values."""
    names = itertools.count()
    extra = [{"name": f"x{index}", "type": renamed(kind, names)} for index, (kind, _) in enumerate(types)]
    usual = [{"name": "Body", "type": ["null", "bytes"]}, {"name": "SequenceNumber", "type": "long"}]
    schema = {"type": "record", "name": "EventData", "fields": [*extra, *usual]}
    rows = [
        {"SequenceNumber": number, "Body": b"x" * (number % 40)}
        | {f"x{index}": data.draw(values) for index, (_, values) in enumerate(types)}
        for number in numbers
    ]
    out = BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=codec)
    expected = [{"SequenceNumber": row["SequenceNumber"], "Body": row["Body"]} for row in rows]
    assert decode("b", out.getvalue(), EVENT_DATA).to_pylist() == expected
    if codec == "null" and rows:
        content = out.getvalue()
        position = data.draw(st.integers(read_framing("b", content, EVENT_DATA).blocks[0].start, len(content) - 17))
        with contextlib.suppress(DamagedBlobError):
            assert decode("b", flipped(content, position), EVENT_DATA).num_rows == len(rows)


def with_schema(schema: dict[str, Any], block: bytes) -> bytes:
    """Return a file of one block that declares one record."""
    sync = bytes(range(16))
    start = header({"avro.schema": json.dumps(schema).encode()}) + sync
    return start + coded_long(1) + coded_long(len(block)) + block + sync


def coded_long(number: int) -> bytes:
    """Return a long as Avro writes it."""
    out = BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    return out.getvalue()


def with_field(kind: Any) -> dict[str, Any]:
    usual = [{"name": "SequenceNumber", "type": "long"}, {"name": "Body", "type": "bytes"}]
    return {"type": "record", "name": "EventData", "fields": [{"name": "x", "type": kind}, *usual]}


def test_a_type_that_contains_itself_is_refused() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    content = with_schema(with_field(node), b"\x02" * 50 + b"\0\0\0")
    assert complaint(content) == "its Avro schema cannot be used (Node contains itself)"


def test_a_union_within_a_union_is_refused() -> None:
    content = with_schema(with_field(["null", ["null", "long"]]), b"\0\0\0")
    assert complaint(content) == "its Avro schema cannot be used (a union is a branch of a union)"


@pytest.mark.parametrize("size", [-1, 1 << 40])
def test_a_fixed_of_an_impossible_size_is_refused(size: int) -> None:
    content = with_schema(with_field({"type": "fixed", "name": "F", "size": size}), b"\0\0")
    assert complaint(content).startswith("its Avro schema cannot be used (")


@pytest.mark.parametrize("kind", [{"type": "array", "items": "null"}, {"type": "map", "values": "null"}])
def test_more_items_than_bytes_are_refused_at_once(kind: Any) -> None:
    content = with_schema(with_field(kind), coded_long(1 << 60) + b"\0\0\0")
    assert complaint(content) == "its block 0 declares 1 record, but does not hold exactly these"


EMPTY: list[Any] = [
    "null",
    {"type": "fixed", "name": "F", "size": 0},
    {"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "null"} for number in range(1000)]},
]


@pytest.mark.parametrize("empty", EMPTY, ids=["null", "fixed", "record"])
def test_values_without_bytes_cost_nothing_however_many_there_are(empty: Any) -> None:
    kind = {"type": "array", "items": {"type": "array", "items": empty}}
    million = coded_long(1_000_000)
    lists = million + 1_000_000 * (million + b"\0") + b"\0"
    body = bytes(1_000_000)
    assert sequence(with_schema(with_field(kind), lists + coded_long(7) + million + body)) == [7]


def test_fields_without_bytes_cost_nothing_however_many_there_are() -> None:
    nothing = [{"name": f"n{number}", "type": "null"} for number in range(20_000)]
    fields = [*nothing, {"name": "b", "type": "boolean"}]
    kind = {"type": "array", "items": {"type": "record", "name": "R", "fields": fields}}
    items = coded_long(10_000_000) + bytes(10_000_000) + b"\0"
    assert sequence(with_schema(with_field(kind), items + coded_long(7) + b"\0")) == [7]


def test_a_field_that_the_file_does_not_have_is_named() -> None:
    schema = json.loads(capture_schema())
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in ("Offset", "Properties")]
    content = avro(schema, record(events(0)[0]))
    assert sequence(content) == [0]
    with pytest.raises(DamagedBlobError, match="its records have no Offset and no Properties;"):
        decode("b", content, EVENT_DATA, ALL)


def test_properties_that_are_not_a_map_as_capture_writes_it_are_refused() -> None:
    schema = json.loads(capture_schema())
    schema["fields"][4]["type"] = {"type": "map", "values": "string"}
    content = avro(schema, record(events(0)[0]))
    with pytest.raises(DamagedBlobError, match="Properties is not a map of properties"):
        decode("b", content, EVENT_DATA, ["Properties"])


def test_a_damaged_blob_fails_the_run() -> None:
    assert issubclass(DamagedBlobError, RunError)
