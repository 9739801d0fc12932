"""Text blobs of one event per line: their bytes, their lines and their events."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.events import UNKNOWN, Events, metadata_of
from recapture.formats.inflate import Limits, unzipped
from recapture.model import MetadataColumn

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def in_place(
    pinned: PinnedBlob, body: pa.Array, columns: Sequence[MetadataColumn], unreadable: pa.Array | None = None
) -> Events:
    """Return the events of a blob that contains nothing but bodies, in their order."""
    count = len(body)
    metadata = metadata_of(columns, pinned, count, {})
    return Events(np.arange(count), np.full(count, UNKNOWN), pa.chunked_array([body]), metadata, unreadable=unreadable)


def plain_text(name: str, content: bytes, limits: Limits) -> bytes:
    """Return the bytes of a text blob, inflated if it is a gzip file, without a byte order mark.

    Raise DamagedBlobError if the blob is empty, cannot be inflated, or is not text.
    """
    if not content:
        raise DamagedBlobError(name, "it has no bytes")
    plain = unzipped(name, content, limits) if content.startswith(_GZIP) else content
    zero = plain.find(b"\0")
    if zero >= 0:
        raise DamagedBlobError(name, f"it is not text in UTF-8: byte {zero} is zero")
    return plain.removeprefix(_BYTE_ORDER_MARK)


def lines(content: bytes, blank: str = r"^[ \t\r]*$") -> pa.Array:
    """Return the lines of plain text (binary), without those that match the pattern `blank`."""
    offsets = pa.py_buffer(np.array([0, len(content)], np.int64))
    whole = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(content)])
    all_lines = pc.split_pattern(whole, pattern="\n").flatten()
    filled = pc.invert(pc.match_substring_regex(all_lines, blank))
    return (all_lines if pc.all(filled).as_py() else all_lines.filter(filled)).cast(pa.binary())
