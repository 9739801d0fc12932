"""Operations on Arrow's views of strings and bytes that Arrow lacks.

A view has 16 bytes: the length of a value, then the value itself if it has at most 12 bytes; otherwise its first four
bytes, a buffer and an offset (source: "Arrow Columnar Format", Variable-size Binary View Layout).
"""

import itertools
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.process.compilation import read_only

_COPIED = {pa.binary_view(): pa.binary(), pa.string_view(): pa.string()}
"""Type of the copies of each type of views."""
_HELD = 12
"""Largest size of a value that its view holds, in bytes."""
_FIRST = 4
"""Index of a value's first byte in its view; that byte is 0 if the value is empty."""


def is_view(type_: pa.DataType) -> bool:
    """Return whether values of a type are views."""
    return type_ in _COPIED


def taken(values: pa.Array, rows: NDArray[np.intp]) -> pa.Array:
    """Return the values at some rows; those of views are not copied."""
    if not is_view(values.type):
        return values.take(pa.array(rows))
    validity = np.packbits(_is_valid(values)[rows], bitorder="little") if values.null_count else None
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(_views(values)[rows])]
    return pa.Array.from_buffers(values.type, len(rows), buffers + values.buffers()[2:])


def copied(values: pa.Array) -> pa.Array:
    """Return the values, those of views as copies (binary or string)."""
    return values.cast(_COPIED[values.type]) if is_view(values.type) else values


def copies(values: pa.Array, rows: NDArray[np.intp]) -> pa.Array:
    """Return the values at some rows, those of views as copies."""
    return copied(taken(values, rows))


def lengths(values: pa.Array) -> NDArray[np.int64]:
    """Return the lengths of views in bytes; 0 for NULL."""
    sizes = _views(values).view(np.int32)[:, 0].astype(np.int64)
    return np.where(_is_valid(values), sizes, 0) if values.null_count else sizes


class Located(NamedTuple):
    """Where values lie in buffers."""

    buffers: tuple[NDArray[np.uint8], ...]
    runs: tuple[tuple[int, int, int], ...]
    """A buffer, the first row whose value lies in it, and the row after the last one that does."""
    places: NDArray[np.int64]
    """Place of each value in its buffer."""
    sizes: NDArray[np.int64]
    """Size of each value in bytes; 0 for NULL, and for a value that its view holds."""

    def first(self, rows: int) -> "Located":
        """Return where the first values lie; all if `rows` is not fewer."""
        runs = tuple((buffer, begin, min(end, rows)) for buffer, begin, end in self.runs if begin < rows)
        return Located(self.buffers, runs, self.places[:rows], self.sizes[:rows])


def located(values: pa.Array) -> Located:
    """Return where values (string, binary, or views) lie in buffers."""
    if not is_view(values.type):
        _, offsets, data = values.buffers()
        bounds = read_only(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        sizes = np.where(_is_valid(values), np.diff(bounds), 0)
        return Located((read_only(data, np.uint8),), ((0, 0, len(values)),), bounds[:-1], sizes)
    size, _, buffer, place = np.ascontiguousarray(_views(values).view(np.int32).T, np.int64)
    sizes = np.where(_is_valid(values) & (size > _HELD), size, 0)
    buffer[sizes == 0] = -1
    bounds = np.flatnonzero(np.diff(buffer, prepend=-2, append=-2))
    runs = tuple((int(buffer[begin]), int(begin), int(end)) for begin, end in itertools.pairwise(bounds))
    buffers = tuple(read_only(data, np.uint8) for data in values.buffers()[2:])
    return Located(buffers, tuple(run for run in runs if run[0] >= 0), place, sizes)


def starts_with(values: pa.Array, character: str) -> pa.Array:
    """Return which values (string, binary, or views) start with an ASCII character; NULL for NULL."""
    if not is_view(values.type):
        return pc.starts_with(values, character)
    first = _views(values)[:, _FIRST]
    return pa.array(first == ord(character), mask=~_is_valid(values))


def _views(values: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of each view."""
    views = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, 16)
    return views[values.offset : values.offset + len(values)]


def _is_valid(values: pa.Array) -> NDArray[np.bool_]:
    valid: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return valid
