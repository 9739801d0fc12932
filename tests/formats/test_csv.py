"""CSV blobs: a header, then one event per line."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DamagedBlobError
from recapture.formats.csv import CsvReader
from tests.formats.blobs import bodies, read, reasons

CSV = CsvReader(",", ("a",))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=6)
DELIMITERS = (",", ";", "\t", "|", " ")


@given(st.sampled_from(DELIMITERS), st.lists(st.lists(TEXT, min_size=1, max_size=4), max_size=8), st.booleans())
def test_rows_are_those_of_a_naive_reader(delimiter: str, rows: list[list[str]], zipped: bool) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        [["a", "B c", 'd"'], *rows]
    )
    content = out.getvalue().encode()
    events = read(CsvReader(delimiter, ("a",)), gzip.compress(content, mtime=0) if zipped else content)
    assert events.number.tolist() == list(range(len(rows)))
    for row, body, reason in zip(rows, bodies(events), reasons(events), strict=True):
        assert body is not None
        if len(row) == 3:
            assert reason is None
            assert json.loads(body) == {
                name: value or None for name, value in zip(["a", "B c", 'd"'], row, strict=True)
            }
        else:
            assert reason == f"{len(row)} fields, the header has 3"


def test_unquoted_fields_and_any_line_end_are_read() -> None:
    events = read(CSV, b"\xef\xbb\xbfa,b\r\n1,x y\r\n\r\n2,\n,\xc3\xa9")
    assert list(map(json.loads, bodies(events))) == [  # type: ignore[arg-type]
        {"a": "1", "b": "x y"},
        {"a": "2", "b": None},
        {"a": None, "b": "é"},
    ]


def test_rows_that_cannot_be_used_keep_their_places_and_their_bytes() -> None:
    events = read(CSV, b'a,b\n1,2\n{"a": 1}\n3,4,5\n6,\xff\n7,8\n')
    assert bodies(events) == [b'{"a":"1","b":"2"}', b'{"a": 1}', b"3,4,5", b"6,\xff", b'{"a":"7","b":"8"}']
    assert reasons(events) == [None, "1 fields, the header has 2", "3 fields, the header has 2", "not UTF-8", None]


def test_a_line_may_have_thousands_of_fields() -> None:
    header, values = [f"a{number}" if number else "a" for number in range(1001)], [*map(str, range(1000)), '"x,""y}"']
    events = read(CSV, ",".join(header).encode() + b"\n" + ",".join(values).encode() + b"\n")
    assert [json.loads(body or b"") for body in bodies(events)] == [
        dict(zip(header, [*values[:1000], 'x,"y}'], strict=True))
    ]


@pytest.mark.parametrize("content", [b"\n", b"a,b", b"a,b\n\n"])
def test_a_blob_without_rows_has_no_event(content: bytes) -> None:
    assert bodies(read(CSV, content)) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'a,b\n1,"x\n2,y\n', "a quotation mark is not closed in its line"),
        (b'a,b\n1,"x\n2,y"\n3,z\n', "a quotation mark is not closed in its line"),
        (b'a,b\n1,2\n3,"x\n', "a quotation mark is not closed in its line"),
        (b'a,b\n1,2\r3,4\n"x,y\nz,w",k\n5,6\n', "a carriage return stands within a line"),
        (b"a,b\r1,2\r", "a carriage return stands within a line"),
        (b"", "it has no bytes"),
        (b"1,2\n3,4\n", "its first line names 1, 2 and none of the fields that the query reads (a)"),
        (b"a,A\n1,2\n", "its header names a twice"),
        (b"a,,b\n1,2,3\n", "its header has a field without a name"),
        (b"a,\xff\n1,2\n", "its header cannot be read"),
        (b"a" + b",a" * 1_000_000 + b"\n", "its header names 1,000,001 fields, and at most 10,000 are read"),
    ],
)
def test_a_blob_that_cannot_be_split_into_rows_is_damaged(content: bytes, reason: str) -> None:
    with pytest.raises(DamagedBlobError) as caught:
        read(CSV, content)
    assert reason in str(caught.value)


@given(st.binary(max_size=40))
def test_no_line_of_any_bytes_is_lost(tail: bytes) -> None:
    content = b"a,b\n1,2\n" + tail
    try:
        events = read(CSV, content)
    except DamagedBlobError:
        return
    lines = [line for line in content.split(b"\n")[1:] if line.removesuffix(b"\r")]
    assert len(events.number) == len(lines)
