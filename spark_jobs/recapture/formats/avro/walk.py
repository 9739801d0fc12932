"""Walk the records of an Avro block and note what they hold and where, in compiled code.

Numba compiles this module when it is first used, which takes about ten seconds, and keeps the result.

`nodes` are those of `layout.Layout`. `data` must continue for PADDING bytes after the last block, as a file does with
its sync marker, because a number is read before its end is checked. A string is noted as a view of Arrow, 16 bytes: its
length, then its bytes if there are at most SHORT; otherwise its first four bytes, 0, and its place in `data`.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recapture.process.byte_words import Bytes, are_equal, byte_at
from recapture.process.compilation import compiled, inlined

PADDING = 16
"""Bytes that must follow the last block."""
SHORT = 12
NOWHERE = 1 << 62
"""Position after what cannot be read. It is after the end of every block."""
_FIXED, _LONG, _STRING, _UNION, _RECORD, _ARRAY, _MAP, _ENUM = range(8)
_HAS_PARTS = -1
"""Stands for the position after a value that has parts of its own."""
_MAX_LONG = (1 << 63) - 1
_Nodes: TypeAlias = NDArray[np.int32]


class Blocks(NamedTuple):
    """Blocks of records, without the codec."""

    data: NDArray[np.uint8]
    """Bytes that hold the blocks."""
    starts: NDArray[np.int64]
    """Position of each block in `data`."""
    ends: NDArray[np.int64]
    """Position after each block."""
    counts: NDArray[np.int64]
    """Number of records that each block declares."""


class Fields(NamedTuple):
    """The fields of a record, and which of them are noted."""

    nodes: NDArray[np.int32]
    """The record's types."""
    types: NDArray[np.int32]
    """Node of each field's type. A union that is noted must have one branch apart from null."""
    slots: NDArray[np.int32]
    """Index of the field's column, or -1 for a field that is skipped."""


class Columns(NamedTuple):
    """What is noted of records. All but `shared` have an entry for each column and record."""

    numbers: NDArray[np.int64]
    """The value of a LONG, and the position of a MAP."""
    views: NDArray[np.int32]
    """The view of a STRING; a row for each column and record."""
    nulls: NDArray[np.bool_]
    """Whether the value is null; False at first."""
    shared: NDArray[np.int64]
    """For each column the number of its views so far, and the place and length of its last string.

    If that number is not negative at first, equal strings of successive records share a view, and `numbers` gets its
    index.
    """


class Maps(NamedTuple):
    """Maps that `read_records` has noted."""

    data: NDArray[np.uint8]
    positions: NDArray[np.int64]
    """Position of each map in `data`, or -1."""
    nodes: NDArray[np.int32]
    """The record's types."""
    value: np.int32
    """Node of the type of the maps' values.

    It has the type of `nodes`: with another, `_after` would call itself compiled for two types, which Numba's cache
    cannot load.
    """


class Entries(NamedTuple):
    """What is noted of the entries of maps."""

    keys: NDArray[np.int32]
    """Views of the keys."""
    branches: NDArray[np.int8]
    """Index of the branch of a value that is a union; 0 at first."""
    numbers: NDArray[np.int64]
    """The value of a LONG, or the bytes of a FIXED of at most eight."""
    strings: NDArray[np.int32]
    """Views of the values that are strings."""


@inlined
def read_long(data: bytes | Bytes, position: int) -> tuple[int, int]:
    """Return a number (zigzag varint), and the position after it; NOWHERE if it is longer than a number can be."""
    value = shift = 0
    while True:
        byte = byte_at(data, position)
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & _MAX_LONG) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            return 0, NOWHERE


@inlined
def _after_string(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return the length of a string, and the position after it."""
    size, position = read_long(data, position)
    if position > end or size < 0 or size > end - position:
        return size, NOWHERE
    return size, position + size


@inlined
def _branch(data: Bytes, position: int, end: int, node: np.int32, nodes: _Nodes) -> tuple[np.int32, int]:
    """Return the node of a union's branch, and the position of its value."""
    branch, position = read_long(data, position)
    if position > end or branch < 0 or branch >= nodes[node + 1]:
        return node, NOWHERE
    return nodes[node + 2 + branch], position


@inlined
def _items(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number of items of a block of a map or an array, and the position after it."""
    count, position = read_long(data, position)
    if count < 0 and position <= end:
        count = -count
        _, position = read_long(data, position)
    if position > end or count < 0 or count > end - position:
        return 0, NOWHERE
    return count, position


@inlined
def _after_leaf(data: Bytes, position: int, end: int, node: np.int32, nodes: _Nodes) -> int:
    """Return the position after a value that has no parts, or is a union of such; _HAS_PARTS for any other value."""
    kind = nodes[node]
    if kind == _UNION:
        node, position = _branch(data, position, end, node, nodes)
        if position > end:
            return position
        kind = nodes[node]
    if kind == _FIXED:
        return position + nodes[node + 1]
    if kind in (_LONG, _ENUM):
        return read_long(data, position)[1]
    if kind == _STRING:
        return _after_string(data, position, end)[1]
    return _HAS_PARTS


@compiled
def _after(data: Bytes, position: int, end: int, node: np.int32, nodes: _Nodes) -> int:
    """Return the position after a value."""
    after = _after_leaf(data, position, end, node, nodes)
    if after != _HAS_PARTS:
        return after
    if nodes[node] == _UNION:
        node, position = _branch(data, position, end, node, nodes)
    if nodes[node] == _RECORD:
        for child in range(node + 2, node + 2 + nodes[node + 1]):
            position = _after(data, position, end, nodes[child], nodes)
            if position > end:
                return position
        return position
    while True:
        count, position = _items(data, position, end)
        if count == 0:
            return position
        item = nodes[node + 2]
        if nodes[node] == _ARRAY and nodes[item] == _FIXED and nodes[item + 1] == 0:
            continue  # items without bytes
        for _ in range(count):
            if nodes[node] == _MAP:
                position = _after_string(data, position, end)[1]
                if position > end:
                    return position
            after = _after_leaf(data, position, end, item, nodes)
            if after == _HAS_PARTS:
                after = _after(data, position, end, item, nodes)
            if after > end:
                return after
            position = after


@inlined
def _note(data: Bytes, position: int, size: int, views: NDArray[np.int32], row: int) -> None:
    """Write the view of a string."""
    views[row, 0] = size
    if size > SHORT:
        views[row, 1] = (
            np.uint32(byte_at(data, position))
            | np.uint32(byte_at(data, position + 1)) << np.uint32(8)
            | np.uint32(byte_at(data, position + 2)) << np.uint32(16)
            | np.uint32(byte_at(data, position + 3)) << np.uint32(24)
        )
        views[row, 2] = 0
        views[row, 3] = position
        return
    for part in range(3):
        word = np.uint32(0)
        for index in range(4 * part, min(size, 4 * part + 4)):
            word |= np.uint32(byte_at(data, position + index)) << np.uint32(8 * (index - 4 * part))
        views[row, part + 1] = word


@compiled
def read_records(blocks: Blocks, fields: Fields, columns: Columns) -> int:
    """Read the records of blocks; return the index of the first block that does not hold exactly its records, or -1."""
    data, nodes = blocks.data, fields.nodes
    numbers, views, nulls, shared = columns
    record, records = 0, numbers.shape[1]
    for block in range(len(blocks.starts)):
        position, end = blocks.starts[block], blocks.ends[block]
        for _ in range(blocks.counts[block]):
            for field in range(len(fields.types)):
                node, slot = fields.types[field], fields.slots[field]
                if slot < 0:
                    after = _after_leaf(data, position, end, node, nodes)
                    position = _after(data, position, end, node, nodes) if after == _HAS_PARTS else after
                    if position > end:
                        return block
                    continue
                if nodes[node] == _UNION:
                    node, position = _branch(data, position, end, node, nodes)
                    if position > end:
                        return block
                if nodes[node] == _LONG:
                    numbers[slot, record], position = read_long(data, position)
                elif nodes[node] == _STRING:
                    size, position = _after_string(data, position, end)
                    if position <= end and shared[slot, 0] < 0:
                        _note(data, position - size, size, views, slot * records + record)
                    elif position <= end:
                        start, view = position - size, shared[slot, 0]
                        if view == 0 or size != shared[slot, 2] or not are_equal(data, start, shared[slot, 1], size):
                            _note(data, start, size, views, slot * records + view)
                            shared[slot, 0], shared[slot, 1], shared[slot, 2] = view + 1, start, size
                        numbers[slot, record] = shared[slot, 0] - 1
                elif nodes[node] == _MAP:
                    numbers[slot, record] = position
                    position = _after(data, position, end, node, nodes)
                else:
                    nulls[slot, record] = True
                    _note(data, position, 0, views, slot * records + record)
                if position > end:
                    return block
            record += 1
        if position != end:
            return block
    return -1


@compiled
def count_entries(maps: Maps, counts: NDArray[np.int64]) -> None:
    """Count the entries of each map."""
    data, nodes, end = maps.data, maps.nodes, len(maps.data)
    for index in range(len(maps.positions)):
        counts[index] = 0
        position = maps.positions[index]
        while position >= 0:
            count, position = _items(data, position, end)
            if count == 0:
                break
            counts[index] += count
            for _ in range(count):
                position = _after_string(data, position, end)[1]
                position = _after(data, position, end, maps.value, nodes)


@compiled
def read_entries(maps: Maps, entries: Entries) -> None:
    """Read the entries of maps that `count_entries` has counted."""
    data, nodes, end = maps.data, maps.nodes, len(maps.data)
    keys, branches, numbers, strings = entries
    entry = 0
    for index in range(len(maps.positions)):
        position = maps.positions[index]
        while position >= 0:
            count, position = _items(data, position, end)
            if count == 0:
                break
            for _ in range(count):
                size, position = _after_string(data, position, end)
                _note(data, position - size, size, keys, entry)
                node = maps.value
                if nodes[node] == _UNION:
                    branches[entry] = read_long(data, position)[0]
                    node, position = _branch(data, position, end, node, nodes)
                _note(data, position, 0, strings, entry)
                numbers[entry] = 0
                if nodes[node] == _LONG:
                    numbers[entry], position = read_long(data, position)
                elif nodes[node] == _STRING:
                    size, position = _after_string(data, position, end)
                    _note(data, position - size, size, strings, entry)
                else:
                    word = np.uint64(0)
                    for byte in range(nodes[node + 1]):
                        word |= np.uint64(data[position + byte]) << np.uint64(8 * byte)
                    numbers[entry] = np.int64(word)
                    position += nodes[node + 1]
                entry += 1
