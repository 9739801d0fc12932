"""The records of an Avro blob as Arrow: all of them, or DamagedBlobError.

DataFusion decodes. It does not detect truncation, and it loops forever if a block holds more records than its header
declares. So the framing of the file is checked first, and DataFusion gets all records as one block. Sentinels, records
that the blob does not have, fill the block's last batch: if anything else comes out in their place, the blob does not
hold the records that its blocks declare.
A block whose maps of properties are read must be one batch, because DataFusion keeps a union's offset from one batch to
the next and then fails ("Offsets must be non-negative").
"""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from tempfile import NamedTemporaryFile
from typing import IO, Any

import fastavro
import pyarrow as pa

from recapture.errors import DamagedBlobError
from recapture.formats.inflate import DEFAULT, Limits, inflated

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
CODECS = ("null", "deflate")
MAP_FIELDS = ("SystemProperties", "Properties")
_METADATA = fastavro.parse_schema({"type": "map", "values": "bytes"})


@dataclass(frozen=True)
class Record:
    """The records that a service writes."""

    writer: str
    """Name of the service."""
    name: str
    """Name of the record in the schema, without its namespace."""
    always: pa.Schema
    """Fields that are always read."""
    end: tuple[tuple[str, object], ...]
    """Values of these fields in the sentinels."""
    typed: bool
    """Whether the values of its maps are unions of several types; otherwise they are texts."""


END_BODY = b"the end of the block's records"
"""A body for `Record.end`."""
_SMALL = 1 << 20
"""Size below which records are decoded as one batch, bytes."""
_BATCHES = 16
"""Least number of batches of larger blobs: a batch that grows is copied, and takes several times its size."""
_BATCH_BYTES = 4 << 20
"""Size of the records of a batch of the largest blobs, bytes."""
_MAPPED_FROM = 32 << 20
"""Size above which records are decoded to a mapped file, bytes."""
_LONG = 6
"""Bytes of each number before the block. They are written last and can count to 2**41, more than any limit allows."""
_BLANKS: dict[str, object] = {
    **dict.fromkeys(("int", "long"), 0),
    **dict.fromkeys(("float", "double"), 0.0),
    "boolean": False,
    "string": "",
    "bytes": b"",
    "map": {},
    "array": [],
    "null": None,
}


@dataclass(frozen=True)
class Framing:
    """The framing of an Avro file."""

    codec: str
    schema: str
    records: int
    blocks: tuple[slice, ...]
    """Bytes of the records of each block, as the codec wrote them."""


@dataclass(frozen=True)
class Block:
    """The one block that DataFusion decodes."""

    records: int
    """Number of the blob's own records."""
    size: int
    """Size of the blob's own records, bytes."""
    count: int
    """Number of all records, the sentinels included: a multiple of `batch`."""
    batch: int
    """Number of records that are decoded at once."""


def decode(
    name: str, content: BytesIO, record: Record, more: Collection[str] = (), limits: Limits = DEFAULT
) -> pa.Table:
    """Return the records of a blob, in the file's order: the fields that are always read, and those named in `more`.

    The latter are strings; SystemProperties and Properties are maps from string to a dense union with the members of
    the file's own schema, or to string. If there are records, `content` is closed to free its memory for decoding.
    Large columns are in a file that is mapped into memory, unless maps make all records one batch.

    Raise DamagedBlobError if the file is incomplete, if the blocks together hold more or fewer records than they
    declare, or if they inflate beyond the limits. A file that was cut off between two blocks looks complete: only its
    listed size differs.
    """
    with NamedTemporaryFile(suffix=".avro") as file:
        block = _write_as_one_block(file, name, content.getvalue(), record, more, limits)
        if block is None:
            return pa.schema([*record.always, *(pa.field(name, pa.string()) for name in more)]).empty_table()
        if block.records:
            content.close()
        batches = _decoded(name, file.name, block, [*record.always.names, *more], record)
        in_batches = block.batch < block.count
        table = _mapped(batches) if in_batches and block.size > _MAPPED_FROM else pa.Table.from_batches(batches)
    after = table.slice(block.records).select(record.always.names).to_pylist()
    if after != [dict(record.end)] * (block.count - block.records):
        raise DamagedBlobError(name, f"its blocks declare {block.records} records, but do not hold exactly these")
    return table.slice(0, block.records)


def _write_as_one_block(
    file: IO[bytes], name: str, content: bytes, record: Record, more: Collection[str], limits: Limits
) -> Block | None:
    """Write the records of a blob and the sentinels as one block; return None if there are no records.

    Without records, maps still need a block, because their types are those of the file.
    """
    framing = walk(name, content, record, more)
    pieces = unpacked(name, content, framing, limits)
    maps = bool(set(more) & set(MAP_FIELDS))
    first = next(pieces, b"")
    if not framing.records and not len(first) and not maps:
        return None
    start, end = _header_and_end(name, framing.schema, record)
    file.write(start + bytes(2 * _LONG))
    size = file.write(first) + sum(map(file.write, pieces))
    if framing.records > size:
        raise DamagedBlobError(name, f"its blocks declare {framing.records} records in {size} bytes")
    batches = 1 if maps or size < _SMALL else max(_BATCHES, size // _BATCH_BYTES)
    batch = -(-(framing.records + 1) // batches)
    count = batch * batches
    ends = count - framing.records
    file.writelines([end * ends, bytes(SYNC_SIZE)])
    file.seek(len(start))
    file.writelines([_padded_long(count), _padded_long(size + len(end) * ends)])
    file.flush()
    return Block(framing.records, size, count, batch)


def walk(name: str, content: bytes, record: Record, more: Collection[str] = ()) -> Framing:
    """Return the framing of a file.

    Raise DamagedBlobError unless all blocks are intact and the last ends where the file ends, and unless its records
    are those of the service, with the fields that are always read and those named in `more`.
    """
    if not content:
        raise DamagedBlobError(name, "it has no bytes")
    if not content.startswith(MAGIC[: len(content)]):
        raise DamagedBlobError(name, "it is not an Avro file (its first bytes are not Obj 01)")
    try:
        codec, schema, sync, position = _header(content)
    except IndexError:
        raise DamagedBlobError(name, f"it is cut off: its header is longer than its {len(content)} bytes") from None
    except ValueError as error:
        raise DamagedBlobError(name, "its header cannot be read") from error
    if codec not in CODECS:
        raise DamagedBlobError(name, f"its codec is {codec!r}; {record.writer} writes null or deflate")
    _require_record(name, schema, more, record)
    records = 0
    blocks = []
    while position < len(content):
        count, block = _block(name, content, position, sync)
        records += count
        blocks.append(block)
        position = block.stop + SYNC_SIZE
    return Framing(codec, schema, records, tuple(blocks))


def unpacked(name: str, content: bytes, framing: Framing, limits: Limits = DEFAULT) -> Iterator[bytes | memoryview]:
    """Return the records of a file in pieces, as they are without the codec. The errors are those of `inflated`."""
    blocks = [memoryview(content)[block] for block in framing.blocks]
    return inflated(name, blocks, limits) if framing.codec == "deflate" else iter(blocks)


def has_block(name: str, content: bytes, record: Record) -> bool:
    """Return whether an intact file has a block: Capture always writes one, other writers none without records."""
    return bool(walk(name, content, record).blocks)


def header(metadata: Mapping[str, bytes]) -> bytes:
    """Return the beginning of an Avro file, up to its first sync marker."""
    out = BytesIO(MAGIC)
    out.seek(len(MAGIC))
    fastavro.schemaless_writer(out, _METADATA, dict(metadata))
    return out.getvalue()


def _header(content: bytes) -> tuple[str, str, bytes, int]:
    position = len(MAGIC)
    metadata: dict[str, bytes] = {}
    while True:
        entries, position = _long(content, position)
        if entries == 0:
            break
        if entries < 0:
            entries = -entries
            _, position = _long(content, position)
        for _ in range(entries):
            key, position = _bytes(content, position)
            metadata[key.decode()], position = _bytes(content, position)
    end = position + SYNC_SIZE
    if end > len(content):
        raise IndexError
    codec = metadata.get("avro.codec", b"null").decode()
    return codec, metadata.get("avro.schema", b"").decode(), content[position:end], end


def _block(name: str, content: bytes, position: int, sync: bytes) -> tuple[int, slice]:
    """Return the number of records that a block declares, and their bytes."""
    try:
        count, start = _long(content, position)
        size, start = _long(content, start)
    except IndexError:
        raise DamagedBlobError(name, f"it is cut off: its block at byte {position} is incomplete") from None
    except ValueError as error:
        raise DamagedBlobError(name, f"its block at byte {position} cannot be read") from error
    if count < 0 or size < 0:
        raise DamagedBlobError(name, f"its block at byte {position} declares {count} records in {size} bytes")
    end = start + size
    if end + SYNC_SIZE > len(content):
        raise DamagedBlobError(
            name, f"it is cut off: its block at byte {position} ends at {end + SYNC_SIZE}, the file at {len(content)}"
        )
    if content[end : end + SYNC_SIZE] != sync:
        raise DamagedBlobError(name, f"its block at byte {position} does not end in the file's sync marker")
    return count, slice(start, end)


def _require_record(name: str, schema: str, more: Collection[str], record: Record) -> None:
    try:
        written = json.loads(schema)
        fields = {field["name"] for field in written["fields"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedBlobError(name, "its Avro schema cannot be read") from error
    if str(written.get("name")).split(".")[-1] != record.name or not fields.issuperset(record.always.names):
        raise DamagedBlobError(
            name, f"its records are {written.get('name')!r}, not the {record.name} of {record.writer}"
        )
    if not fields.issuperset(more):
        raise DamagedBlobError(name, f"its records have no {' and no '.join(sorted({*more} - fields))}")


def _header_and_end(name: str, schema: str, record: Record) -> tuple[bytes, bytes]:
    try:
        return header({"avro.schema": schema.encode()}) + bytes(SYNC_SIZE), _end_of(schema, record.end)
    except Exception as error:  # fastavro raises whatever the schema made it stumble over
        raise DamagedBlobError(name, f"its Avro schema cannot be used ({_first_line(error)})") from error


@cache
def _end_of(schema: str, values: tuple[tuple[str, object], ...]) -> bytes:
    """Return a sentinel in the file's own schema."""
    record = json.loads(schema)
    blank = {field["name"]: _blank(field["type"]) for field in record["fields"]}
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(record), blank | dict(values))
    return out.getvalue()


def _blank(kind: Any) -> object:
    if isinstance(kind, list):
        return None if "null" in kind else _blank(kind[0])
    return _BLANKS[kind["type"] if isinstance(kind, dict) else kind]


def _decoded(name: str, path: str, block: Block, fields: Collection[str], record: Record) -> Iterator[pa.RecordBatch]:
    """Decode, in full batches, as many records as the block declares, and no more: so it always ends."""
    from datafusion import SessionConfig, SessionContext

    options = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": str(block.batch)}
    try:
        frame = SessionContext(SessionConfig(options)).read_avro(path)
        records = frame.select(*(f'"{field}"' for field in fields)).limit(block.count)
        reader = pa.RecordBatchReader.from_stream(records)
        schema = pa.schema([pa.field(field.name, _type(field, record)) for field in reader.schema])
        yield from reader.cast(schema)
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # DataFusion raises bare exceptions
        raise DamagedBlobError(name, f"its records cannot be decoded ({_first_line(error)})") from error


def _mapped(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """Return the batches as a table in a file that is mapped into memory, so that they need none of their own."""
    first = next(batches)
    with NamedTemporaryFile(suffix=".arrow") as file:
        with pa.ipc.new_file(file, first.schema) as writer:
            for batch in itertools.chain([first], batches):
                writer.write_batch(batch)
        file.flush()
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()


def _type(field: pa.Field, record: Record) -> pa.DataType:
    """Return the type to read a field as. Raise TypeError if a field of properties is not a map of the service."""
    if field.name in record.always.names:
        return record.always.field(field.name).type
    if field.name not in MAP_FIELDS:
        return pa.string()
    if not pa.types.is_map(field.type) or pa.types.is_union(field.type.item_type) != record.typed:
        raise TypeError(f"{field.name} is not a map of properties")
    return field.type if record.typed else pa.map_(pa.string(), pa.string())


def _long(content: bytes, position: int) -> tuple[int, int]:
    """Return an Avro long (zigzag varint) and the position after it. Raise IndexError at the end of the content."""
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("no long has so many bytes")


def _padded_long(value: int) -> bytes:
    """Return a number that is not negative as an Avro long of `_LONG` bytes; the last ones may be zero."""
    groups = [value << 1 >> shift & 0x7F for shift in range(0, 7 * _LONG, 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _bytes(content: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(content, position)
    if size < 0:
        raise ValueError("bytes of a negative length")
    if position + size > len(content):
        raise IndexError
    return content[position : position + size], position + size


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
