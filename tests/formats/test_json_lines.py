"""Text blobs: one event per line, or an array of events; also as gzip."""

import gzip
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DamagedBlobError
from recapture.formats.json_lines import JsonReader
from recapture.model import Metadata
from recapture.time_model.ticks import from_datetime
from tests.formats.blobs import NAME, TEN, bodies, column, pinned, read, reasons, values

JSON = JsonReader()
LINES = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from([b"", b" \t", b"\r", b'{"a": 1.10}', b'{"a": 1}\r', "é".encode(), b"[1]"]),
    ).filter(lambda line: b"\n" not in line and b"\0" not in line)
)


@given(LINES, st.booleans())
def test_every_line_that_is_not_blank_is_an_event_in_its_place(lines: list[bytes], zipped: bool) -> None:
    content = b"\n".join([b'{"first": 1}', *lines])
    events = read(JSON, gzip.compress(content, mtime=0) if zipped else content)
    expected = [line for line in content.split(b"\n") if line.strip(b" \t\r")]
    assert bodies(events) == expected
    assert events.number.tolist() == list(range(len(expected)))
    assert reasons(events) == [None] * len(expected)


def test_a_blob_of_no_bytes_is_damaged() -> None:
    with pytest.raises(DamagedBlobError, match="it has no bytes"):
        read(JSON, b"")


@pytest.mark.parametrize("content", [b"\n\n", b" \r\n", gzip.compress(b"", mtime=0)])
def test_a_blob_without_a_line_has_no_event(content: bytes) -> None:
    assert bodies(read(JSON, content)) == []


def test_a_byte_order_mark_is_not_part_of_the_first_event() -> None:
    assert bodies(read(JSON, b'\xef\xbb\xbf{"a": 1}\n')) == [b'{"a": 1}']


def test_an_array_holds_its_elements_over_any_number_of_lines() -> None:
    elements = bodies(read(JSON, json.dumps([{"a": 1}, {"b": [2, "é"]}, 3], indent=2).encode()))
    assert [json.loads(body or b"") for body in elements] == [{"a": 1}, {"b": [2, "é"]}, 3]


def test_an_element_keeps_its_text_however_long_it_is_and_whatever_blanks_follow() -> None:
    elements = [b'{"a" : 1.50}', b'"\\u00e9"', b'"' + b"x" * (2 << 20) + b'"', b"[ 1, 2 ]", b"null"]
    content = b"\n [" + b" ,\n".join(elements) + b"]" + b" \n" * (1 << 20)
    assert bodies(read(JSON, content)) == elements


@pytest.mark.parametrize(
    "content",
    [b'[\n {"a": 1},\n {"b": 2},', b'[{"a": 1}, {"b"', b'[{"a": 1}', b"[[1], [2]", b"[[1],]", b"[1][2]", b"["]
    + [f'[{{"a":{"b" * size}{"é" * 200}}}]'.encode() for size in range(4)],
)
def test_an_incomplete_array_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedBlobError, match="it begins with an array but is not one: it is cut off, or not JSON"):
        read(JSON, content)


def test_arrays_on_lines_of_their_own_are_events() -> None:
    assert bodies(read(JSON, b"[1]\n[2]\n")) == [b"[1]", b"[2]"]


def test_gzip_of_several_members_is_read_to_the_last_member() -> None:
    members = gzip.compress(b"{}\n", mtime=0) + gzip.compress(b"{ }", mtime=0)
    assert bodies(read(JSON, members)) == [b"{}", b"{ }"]


@given(st.data())
def test_gzip_that_was_cut_or_changed_is_refused_or_read_whole(data: st.DataObject) -> None:
    content = b'{"a": 1}\n' * 5
    zipped = gzip.compress(content, mtime=0)
    place = data.draw(st.integers(2, len(zipped) - 1))
    flipped = bytearray(zipped)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (zipped[:place], bytes(flipped)):
        try:
            assert bodies(read(JSON, damaged)) == [b'{"a": 1}'] * 5
        except DamagedBlobError:
            continue


@pytest.mark.parametrize("content", [b"Obj\x01\x04\x14avro.codec\x00", '{"a": 1}'.encode("utf-16")])
def test_content_that_is_not_text_is_a_damaged_blob(content: bytes) -> None:
    with pytest.raises(DamagedBlobError) as caught:
        read(JSON, content)
    assert f"blob {NAME} is damaged: it is not text in UTF-8: byte " in str(caught.value)


def test_the_metadata_is_that_of_the_blob() -> None:
    columns = [
        column(Metadata.PARTITION_ID),
        column(Metadata.BLOB_NAME),
        column(Metadata.BLOB_LAST_MODIFIED),
        column(Metadata.EVENT_PROCESSED),
    ]
    events = read(JSON, b"{}\n{}", *columns, blob=pinned(TEN + timedelta(seconds=7)))
    written = from_datetime(TEN + timedelta(seconds=7))
    assert [values(events, metadata) for metadata in columns] == [[3] * 2, [NAME] * 2, [written] * 2, [written] * 2]
