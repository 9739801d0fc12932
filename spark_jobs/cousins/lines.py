"""Text blobs of one event a line, as ASA's own blob input reads JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.capture.bodies import select, utf8, whole
from spark_jobs.capture.events import UNKNOWN, Events, metadata_of
from spark_jobs.capture.inflate import DEFAULT, Limits, unzipped
from spark_jobs.capture.manifest import CaptureBlob
from spark_jobs.errors import DamagedBlobError
from spark_jobs.query.model import Metadata, MetadataColumn

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_ELEMENTS = """
    SELECT CASE WHEN json_type(body) = 'ARRAY' THEN json_extract(body, '$[*]')::VARCHAR[] END AS elements
    FROM (SELECT CASE WHEN json_valid(body) THEN body END AS body FROM bodies)
"""


@dataclass(frozen=True)
class JsonReader:
    """JSON, an event a line, or all events of a blob in one array. A `Reader`."""

    limits: Limits = DEFAULT
    numbered = False

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        plain = text(pinned.blob.name, content, self.limits)
        elements = _of_array(pinned.blob.name, plain)
        return in_place(pinned, lines(plain) if elements is None else elements, wanted)


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


def _of_array(name: str, content: bytes) -> pa.Array | None:
    """The elements of a text that is one JSON array; None where each line stands for itself.

    Raises DamagedBlobError where it begins with an array that does not end.
    """
    content = content.lstrip()
    if not content.startswith(b"["):
        return None
    elements = _elements(content)
    if elements is None and _elements(content.partition(b"\n")[0]) is None:
        raise DamagedBlobError(name, "it begins with an array and is none: it is cut off, or not JSON")
    return elements


def _elements(content: bytes) -> pa.Array | None:
    """None where the text is no JSON array."""
    document = utf8(pa.array([content], pa.binary()))
    found = whole(select({"body": document}, _ELEMENTS)["elements"])
    return found.flatten().cast(pa.binary()) if found[0].is_valid else None
