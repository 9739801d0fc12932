"""JSON arrays, written in one pass from elements that are JSON already."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.ordering.row_order import MOST_STRING_BYTES
from recapture.process.compilation import compiled, read_only

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
_OPEN, _COMMA, _CLOSE = b"[,]"


def json_arrays(elements: pa.Array, rows: Int64s, starts: Int64s) -> pa.StringArray:
    """Return JSON arrays: array i has the elements in rows[starts[i] : starts[i + 1]].

    No element in `rows` is NULL: JSON has `null` for it. Raise ArrowCapacityError if the arrays have more than 2 GB.
    """
    assert not elements.null_count or elements.is_valid().to_numpy(zero_copy_only=False)[rows].all()
    _, offsets, content = elements.buffers()
    integer: Any = np.int64 if pa.types.is_large_string(elements.type) else np.int32
    places = read_only(offsets, integer)
    places = places[elements.offset : elements.offset + len(elements) + 1]
    count = len(starts) - 1
    size = 2 * count + int((places[rows + 1] - places[rows]).sum()) + int(np.maximum(np.diff(starts) - 1, 0).sum())
    if size > MOST_STRING_BYTES:
        raise pa.ArrowCapacityError(
            f"what windows collect has {size} bytes; at most {MOST_STRING_BYTES} are possible: use shorter windows"
        )
    bounds, written = np.zeros(count + 1, np.int32), np.empty(size, np.uint8)
    write_arrays(read_only(content, np.uint8), places, rows, starts, bounds, written)
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), pa.py_buffer(written))


@compiled
def write_arrays(
    content: Bytes, places: Int64s, rows: Int64s, starts: Int64s, bounds: NDArray[np.int32], written: Bytes
) -> None:
    """Write the arrays, and where each ends. `places` says where each element starts in the content."""
    at = np.uint64(0)
    one = np.uint64(1)
    for number in range(len(bounds) - 1):
        written[at] = _OPEN
        at += one
        for place in range(starts[number], starts[number + 1]):
            if place > starts[number]:
                written[at] = _COMMA
                at += one
            first = np.uint64(places[rows[place]])
            size = np.uint64(places[rows[place] + 1]) - first
            for byte in range(size):
                written[at + np.uint64(byte)] = content[first + np.uint64(byte)]
            at += size
        written[at] = _CLOSE
        at += one
        bounds[number + 1] = at
