"""Parts of strings between places, which count the code points of a string from 0."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.process.compilation import compiled

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def parts(strings: pa.Array, first: Int64s, last: Int64s) -> pa.Array:
    """Return the characters from place `first` to before `last` of each string; NULL for NULL.

    Places outside of a string have no characters: "abc", -1, 2 => "ab"
    """
    if not len(strings):
        return strings
    offsets, data = bytes_of(strings)
    starts, ends = np.empty(len(strings), np.int64), np.empty(len(strings), np.int64)
    spans(data, offsets, np.ascontiguousarray(first), np.ascontiguousarray(last), starts, ends)
    written = np.empty(int((ends - starts).sum()), np.uint8)
    new_offsets = np.zeros(len(strings) + 1, np.int32)
    gather(data, starts, ends, new_offsets, written)
    valid = None
    if strings.null_count:
        is_valid = strings.is_valid().to_numpy(zero_copy_only=False)
        valid = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(strings), pa.py_buffer(new_offsets), pa.py_buffer(written), valid)


def bytes_of(strings: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    """Return where the strings of a column start and end, and the bytes of the column."""
    _, offsets, data = strings.buffers()
    starts = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return starts, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)


def is_ascii(column: pa.Array) -> bool:
    """Return whether all strings of a column have ASCII characters only."""
    return bool(pc.all(pc.string_is_ascii(column), min_count=0).as_py() is not False)


@compiled
def spans(data: Bytes, offsets: NDArray[np.int32], first: Int64s, last: Int64s, starts: Int64s, ends: Int64s) -> None:
    """Write in which bytes the characters between two places of each string are."""
    for row in range(len(first)):
        index, end = offsets[row], offsets[row + 1]
        place = 0
        # A byte 10xxxxxx continues a character.
        while index < end and place < first[row]:
            index += 1
            while index < end and data[index] & 192 == 128:
                index += 1
            place += 1
        starts[row] = index
        while index < end and place < last[row]:
            index += 1
            while index < end and data[index] & 192 == 128:
                index += 1
            place += 1
        ends[row] = index


@compiled
def gather(data: Bytes, starts: Int64s, ends: Int64s, offsets: NDArray[np.int32], written: Bytes) -> None:
    """Write the bytes between starts and ends, one after another, and where each ends."""
    place = 0
    for row in range(len(starts)):
        for index in range(starts[row], ends[row]):
            written[place] = data[index]
            place += 1
        offsets[row + 1] = place
