"""Text blobs of one event a line, as ASA's own blob input reads JSON."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import IO

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.manifest import CaptureBlob
from recapture.errors import DamagedBlobError
from recapture.formats.bodies import duckdb_connection, literal, whole
from recapture.formats.events import UNKNOWN, Events, metadata_of
from recapture.formats.inflate import DEFAULT, Limits, unzipped
from recapture.model import Metadata, MetadataColumn

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_USUAL = 1 << 20
"""Bytes that an element of an array seldom exceeds; DuckDB's buffers are as many times as large."""


@dataclass(frozen=True)
class JsonReader:
    """JSON, an event a line, or all events of a blob in one array. A `Reader`."""

    limits: Limits = DEFAULT
    numbered = False

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        plain = text(pinned.blob.name, content, self.limits)
        if not re.match(rb"\s*\[", plain):
            return in_place(pinned, lines(plain), wanted)
        with NamedTemporaryFile(suffix=".json") as file:
            file.write(plain)
            file.flush()
            del plain  # an array takes several times its size, so nothing holds it a second time
            return in_place(pinned, _of_array(pinned.blob.name, file), wanted)


def in_place(
    pinned: CaptureBlob, body: pa.Array, wanted: Sequence[MetadataColumn], unreadable: pa.Array | None = None
) -> Events:
    """Events of which a blob tells nothing but their bodies and their order."""
    count = len(body)
    metadata = metadata_of(wanted, pinned, count, nothing_more)
    return Events(np.arange(count), np.full(count, UNKNOWN), body, metadata, unreadable=unreadable)


def nothing_more(metadata: Metadata, key: str) -> pa.Array | None:
    """What events tell of themselves that tell nothing but their bodies."""
    return None


def text(name: str, content: bytes, limits: Limits) -> bytes:
    """A text blob's bytes, unpacked where it is gzip, without a byte order mark.

    Raises DamagedBlobError where there are none, where they cannot be unpacked whole, and where they are no text.
    """
    if not content:
        raise DamagedBlobError(name, "it has no bytes")
    if content.startswith(_GZIP):
        content = unzipped(name, content, limits)
    zero = content.find(b"\0")
    if zero >= 0:
        raise DamagedBlobError(name, f"it is no text in UTF-8: byte {zero} is zero")
    return content.removeprefix(_BYTE_ORDER_MARK)


def lines(content: bytes, blank: str = r"^[ \t\r]*$") -> pa.Array:
    """The lines of a text (binary) but for those that are blank, which is a pattern."""
    offsets = pa.py_buffer(np.array([0, len(content)], np.int64))
    whole_text = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(content)])
    every = pc.split_pattern(whole_text, pattern="\n").flatten()
    filled = pc.invert(pc.match_substring_regex(every, blank))
    return (every if pc.all(filled).as_py() else every.filter(filled)).cast(pa.binary())


def _of_array(name: str, file: IO[bytes]) -> pa.Array:
    """Return the elements of a text that is one JSON array, or its lines if the first of them is an array of its own.

    Raises DamagedBlobError for other texts that begin with an array.
    """
    elements = _elements(file)
    if elements is not None:
        return elements
    file.seek(0)
    plain = file.read()
    with NamedTemporaryFile(suffix=".json") as first:
        first.write(plain.lstrip().partition(b"\n")[0])
        first.flush()
        if _elements(first) is None:
            raise DamagedBlobError(name, "it begins with an array and is none: it is cut off, or not JSON")
    return lines(plain)


def _elements(file: IO[bytes]) -> pa.Array | None:
    """Return the elements of a JSON array, as they stand there; None if the file is not one."""
    size = file.tell()
    if not _ends_in_bracket(file, size):
        return None
    for longest in (_USUAL, size):
        read = f"""
            SELECT json FROM read_json_objects({literal(file.name)}, format = 'array', compression = 'none',
                maximum_object_size = {longest})
        """
        try:
            elements = duckdb_connection().sql(read).to_arrow_table()
        except duckdb.InvalidInputException as error:
            if "maximum_object_size" not in str(error):
                return None
        else:
            return whole(elements["json"]).cast(pa.binary())
    raise AssertionError("no element is longer than its array")


def _ends_in_bracket(file: IO[bytes], size: int) -> bool:
    """Return whether the last character is a bracket: DuckDB does not notice an array that is cut off at a comma."""
    end = size
    while end:
        start = max(end - _USUAL, 0)
        file.seek(start)
        if last := file.read(end - start).rstrip():
            return last.endswith(b"]")
        end = start
    return False
