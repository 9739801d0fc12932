"""The records of an Avro blob as Arrow: all of them, or DamagedBlobError.

A record is only walked (`walk`): its strings stay where they are in the blob, and Arrow gets views of them. So a
blob needs its own size in memory, and 16 bytes for each string that is read.
"""

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.errors import DamagedBlobError
from recapture.formats.avro import walk
from recapture.formats.avro.framing import MAP_FIELDS, Framing, Record, read_framing
from recapture.formats.avro.layout import Kind, Layout, layout_of
from recapture.formats.avro.walk import PADDING, Blocks, Columns, Entries, Fields, Maps
from recapture.formats.inflate import DEFAULT, Limits, inflated
from recapture.process.wording import counted

_Bytes: TypeAlias = NDArray[np.uint8]
_Numbers: TypeAlias = NDArray[np.int64]
_Views: TypeAlias = NDArray[np.int32]
_Mask: TypeAlias = NDArray[np.bool_]

PART_BYTES = 8 << 20
"""Size of inflated blocks that are walked together, bytes, unless one block is larger."""
_LARGEST = np.iinfo(np.int32).max
"""Largest place of a string in its view."""
_PROPERTIES = {
    "null": pa.null(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""Types of the values of properties, by their names in Avro."""
_KINDS = {Kind.LONG: "an integer", Kind.STRING: "a string", Kind.MAP: "a map of properties"}


def decode(name: str, content: bytes, record: Record, more: Collection[str] = (), limits: Limits = DEFAULT) -> pa.Table:
    """Return the records of a blob, in the file's order: the fields that are always read, and those named in `more`.

    The latter are strings, or dictionaries of strings if the service repeats them; SystemProperties and Properties are
    maps from string to a dense union with the members of the file's own schema, or to string. Views of bodies keep the
    content in memory, or what it inflates to.

    Raise DamagedBlobError if the file is incomplete, if one of its blocks holds more or fewer records than it declares,
    or if they inflate beyond the limits. A file that was cut off between two blocks looks complete: only its listed
    size differs.
    """
    framing = read_framing(name, content, record, more)
    reading = _Reading.of(name, framing.schema, record, more)
    inflate = framing.codec == "deflate" and framing.blocks
    parts = _inflated(name, content, framing, limits) if inflate else [_part(content, framing)]
    return pa.concat_tables(map(reading.table, parts))


def load() -> None:
    """Load the compiled code, or compile it, which takes ten seconds; reading no records does it."""
    nothing, none, nodes = np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int32)
    nothing.flags.writeable = False
    columns = Columns(
        np.empty((0, 0), np.int64), np.empty((0, 4), np.int32), np.empty((0, 0), np.bool_), np.empty((0, 3), np.int64)
    )
    walk.read_records(Blocks(nothing, none, none, none), Fields(nodes, nodes, nodes), columns)


@dataclass(frozen=True)
class _Part:
    """Blocks of records without the codec."""

    data: bytes | bytearray
    bounds: NDArray[np.int64]
    """Start and end of each block in `data`, a row each."""
    counts: NDArray[np.int64]
    """Number of records that each block declares."""
    first: int
    """Index of the first block in the file."""


def _part(content: bytes, framing: Framing) -> _Part:
    bounds = [(block.start, block.stop) for block in framing.blocks]
    return _Part(content, np.array(bounds, np.int64).reshape(-1, 2), np.array(framing.counts, np.int64), 0)


def _inflated(name: str, content: bytes, framing: Framing, limits: Limits) -> Iterator[_Part]:
    """Yield the blocks of a deflated file; small ones together."""
    compressed = [memoryview(content)[block] for block in framing.blocks]
    data, ends = bytearray(), [0]
    for number, block in enumerate(inflated(name, compressed, limits), 1):
        if data:
            data += block
        else:
            data = block
        ends.append(len(data))
        if len(data) >= PART_BYTES or number == len(compressed):
            data += bytes(PADDING)
            first = number - len(ends) + 1
            bounds = np.array(list(itertools.pairwise(ends)), np.int64)
            yield _Part(data, bounds, np.array(framing.counts[first:number], np.int64), first)
            data, ends = bytearray(), [0]


@dataclass(frozen=True)
class _Reading:
    """What is read of the records of a blob."""

    name: str
    """Name of the blob."""
    layout: Layout
    schema: pa.Schema

    @classmethod
    def of(cls, name: str, schema: str, record: Record, more: Collection[str]) -> "_Reading":
        """Raise DamagedBlobError unless the schema can be used, and the fields have the types of the service."""
        try:
            layout = layout_of(schema)
        except (MemoryError, ImportError):
            raise
        except Exception as error:  # fastavro raises whatever the schema made it stumble over
            raise DamagedBlobError(name, f"its Avro schema cannot be used ({_first_line(error)})") from error
        types = {column.name: column.type for column in record.always}
        types |= {column: _type(layout, column, record) for column in more}
        for column, type_ in types.items():
            expected = Kind.LONG if type_ == pa.int64() else Kind.MAP if column in MAP_FIELDS else Kind.STRING
            if type_ is None or {layout.kind(node) for node in layout.branches(layout.fields[column])} != {expected}:
                raise DamagedBlobError(name, f"its {column} is not {_KINDS[expected]}")
        return cls(name, layout, pa.schema(types))

    def table(self, part: _Part) -> pa.Table:
        """Return the records of some blocks. Raise DamagedBlobError if a block does not hold exactly its records."""
        if len(part.data) > _LARGEST:
            raise DamagedBlobError(self.name, f"it has more than {_LARGEST >> 20:,} MiB, the most that is read")
        starts, ends = part.bounds.T
        too_many = np.flatnonzero(part.counts > ends - starts)
        if len(too_many):
            raise self._miscounted(part, int(too_many[0]))
        layout, data = self.layout, np.frombuffer(part.data, np.uint8)
        data.flags.writeable = False
        written = layout.written
        slots = [self.schema.get_field_index(field) for field in written]
        shape = len(self.schema), int(part.counts.sum())
        numbers, views, nulls = np.empty(shape, np.int64), np.empty((*shape, 4), np.int32), np.zeros(shape, np.bool_)
        shared = np.array([(0 if pa.types.is_dictionary(field.type) else -1, 0, 0) for field in self.schema], np.int64)
        wrong = walk.read_records(
            Blocks(data, np.ascontiguousarray(starts), np.ascontiguousarray(ends), part.counts),
            Fields(layout.nodes, np.array(list(written.values()), np.int32), np.array(slots, np.int32)),
            Columns(numbers, views.reshape(-1, 4), nulls, shared),
        )
        if wrong >= 0:
            raise self._miscounted(part, wrong)
        view_counts = np.where(shared[:, 0] < 0, shape[1], shared[:, 0])
        columns = [
            self._column(field, data, numbers[slot], views[slot, :count], nulls[slot])
            for slot, (field, count) in enumerate(zip(self.schema, view_counts, strict=True))
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _column(self, field: pa.Field, data: _Bytes, numbers: _Numbers, views: _Views, nulls: _Mask) -> pa.Array:
        if field.type == pa.int64():
            if nulls.any():
                raise DamagedBlobError(self.name, f"its record {int(np.flatnonzero(nulls)[0])} has no {field.name}")
            return pa.array(numbers)
        if pa.types.is_dictionary(field.type):
            indices = pa.array(numbers, mask=nulls if nulls.any() else None)
            dictionary = self._strings(field.name, data, views, field.type.value_type)
            return pa.DictionaryArray.from_arrays(indices, dictionary)
        if not pa.types.is_map(field.type):
            return self._strings(field.name, data, views, field.type, nulls)
        return self._maps(field, data, np.where(nulls, -1, numbers))

    def _strings(
        self, field: str, data: _Bytes, views: _Views, type_: pa.DataType, nulls: _Mask | None = None
    ) -> pa.Array:
        validity = None if nulls is None or not nulls.any() else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
        buffers = [validity, pa.py_buffer(views), pa.py_buffer(data)]
        try:
            return pa.Array.from_buffers(pa.binary_view(), len(views), buffers).cast(type_)
        except pa.ArrowInvalid:
            raise DamagedBlobError(self.name, f"a text in its {field} is not UTF-8") from None

    def _maps(self, field: pa.Field, data: _Bytes, positions: _Numbers) -> pa.Array:
        layout = self.layout
        (node,) = layout.branches(layout.fields[field.name])
        (value,) = layout.children(node)
        maps = Maps(data, positions, layout.nodes, np.int32(value))
        counts = np.empty(len(positions), np.int64)
        walk.count_entries(maps, counts)
        entries = int(counts.sum())
        keys, strings = np.empty((2, entries, 4), np.int32)
        branches, numbers = np.zeros(entries, np.int8), np.empty(entries, np.int64)
        walk.read_entries(maps, Entries(keys, branches, numbers, strings))
        if pa.types.is_union(field.type.item_type):
            values = [
                self._properties(member.type, data, numbers, np.where((branches == branch)[:, np.newaxis], strings, 0))
                for branch, member in enumerate(field.type.item_type)
            ]
            places = pa.array(np.arange(entries, dtype=np.int32))
            items = pa.UnionArray.from_dense(pa.array(branches), places, values, [m.name for m in field.type.item_type])
        else:
            items = self._strings(field.name, data, strings, pa.string())
        offsets = np.zeros(len(positions) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        missing = np.append(positions < 0, False)
        return pa.MapArray.from_arrays(
            pa.array(offsets, mask=missing if missing.any() else None),
            self._strings(field.name, data, keys, pa.string()),
            items,
        )

    def _properties(self, type_: pa.DataType, data: _Bytes, numbers: _Numbers, strings: _Views) -> pa.Array:
        """Return one member of the values of properties, with an entry for each property of any member."""
        if type_ in (pa.string(), pa.binary()):
            return self._strings("properties", data, strings, type_)
        if type_ == pa.null():
            return pa.nulls(len(numbers))
        if type_ == pa.bool_():
            return pa.array(numbers != 0)
        if type_ == pa.float32():
            return pa.array(numbers.astype(np.uint32).view(np.float32))
        return pa.array(numbers.view(np.float64) if type_ == pa.float64() else numbers)

    def _miscounted(self, part: _Part, block: int) -> DamagedBlobError:
        declared = counted(int(part.counts[block]), "record")
        reason = f"its block {part.first + block} declares {declared}, but does not hold exactly these"
        return DamagedBlobError(self.name, reason)


def _type(layout: Layout, field: str, record: Record) -> pa.DataType | None:
    """Return the type to read a field as; None if it should be a map of properties and is not."""
    if field not in MAP_FIELDS:
        return pa.dictionary(pa.int64(), pa.string()) if field in record.repeated else pa.string()
    maps = [node for node in layout.branches(layout.fields[field]) if layout.kind(node) is Kind.MAP]
    if len(maps) != 1:
        return None
    (value,) = layout.children(maps[0])
    if not record.typed:
        return pa.map_(pa.string(), pa.string()) if layout.kind(value) is Kind.STRING else None
    members = [layout.names[member] for member in layout.children(value)]
    if layout.kind(value) is not Kind.UNION or not set(members) <= _PROPERTIES.keys():
        return None
    return pa.map_(pa.string(), pa.dense_union([pa.field(member, _PROPERTIES[member]) for member in members]))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
