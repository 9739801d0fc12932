"""An Avro blob's bytes to Arrow, as Capture and IoT Hub write them: whole or not at all (capture format, traps).

DataFusion decodes. It does not notice that a file is cut off, and it never ends where a block holds more than the
records it announces. So the container's framing is walked first, and DataFusion gets the records as one block with
one more or a few after them, which fill its last batch: only where these are the last to be read did the others fill
their blocks exactly.
Where maps of properties are read, that block must be one batch, too: DataFusion keeps a union's place from one batch to
the next and then fails ("Offsets must be non-negative").
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from tempfile import NamedTemporaryFile
from typing import Any

import fastavro
import pyarrow as pa

from recapture.errors import DamagedBlobError
from recapture.formats.inflate import DEFAULT, Limits, inflated

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
CODECS = ("null", "deflate")
MAP_FIELDS = ("SystemProperties", "Properties")
SCHEMA = pa.schema([("SequenceNumber", pa.int64()), ("Body", pa.binary())])
"""What is always read of Capture's records."""


@dataclass(frozen=True)
class Record:
    """The records that a service writes."""

    writer: str
    name: str
    always: pa.Schema
    """What is always read."""
    end: tuple[tuple[str, object], ...]
    """Its values in the record that is put after the last."""
    typed: bool
    """Whether the values of its maps have one of several types; else they are text."""


_MARK = b"the end of the block's records"
EVENT_DATA = Record("Capture", "EventData", SCHEMA, (("SequenceNumber", -1), ("Body", _MARK)), typed=True)
MESSAGE = Record(
    "IoT Hub",
    "Message",
    pa.schema([("EnqueuedTimeUtc", pa.string()), ("Body", pa.binary())]),
    (("EnqueuedTimeUtc", ""), ("Body", _MARK)),
    typed=False,
)
_SMALL = 1 << 20
"""Bytes of records that are decoded as one batch."""
_BATCHES = 16
"""In which more are decoded: a batch that grows is copied, and so takes several times its size."""
_LONG = 5
"""Bytes of the numbers in front of a block, which are known after it was written."""
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
    """What the container says of itself."""

    codec: str
    schema: str
    records: int
    blocks: tuple[slice, ...]
    """Where each block's records lie in the file, as the codec left them."""


def decode(
    name: str, content: bytes, more: Collection[str] = (), record: Record = EVENT_DATA, limits: Limits = DEFAULT
) -> pa.Table:
    """The events of one blob, in the file's order: what is always read, and the fields named in `more`.

    Those are strings; SystemProperties and Properties are maps from string to a dense union, whose members are those of
    the file's own schema, or to string.

    Raises DamagedBlobError unless the file is complete and the records that its blocks announce are all that they hold,
    and where they inflate beyond the limits. A file that was cut off between two blocks is complete in itself: the
    size that was listed tells.
    """
    framing = walk(name, content, more, record)
    blocks = [memoryview(content)[block] for block in framing.blocks]
    pieces = inflated(name, blocks, limits) if framing.codec == "deflate" else iter(blocks)
    maps = bool(set(more) & set(MAP_FIELDS))
    first = next(pieces, b"")
    if not framing.records and not len(first) and not maps:
        return pa.schema([*record.always, *(pa.field(name, pa.string()) for name in more)]).empty_table()
    header, end = _header_and_end(name, framing.schema, record)
    with NamedTemporaryFile(suffix=".avro") as file:
        file.write(header + bytes(2 * _LONG))
        size = file.write(first) + sum(map(file.write, pieces))
        if framing.records > size:
            raise DamagedBlobError(name, f"its blocks announce {framing.records} records in {size} bytes")
        batches = 1 if maps or size < _SMALL else _BATCHES
        batch = -(-(framing.records + 1) // batches)
        count = batch * batches
        ends = count - framing.records
        file.writelines([end * ends, bytes(SYNC_SIZE)])
        file.seek(len(header))
        file.writelines([_to_long(count, _LONG), _to_long(size + len(end) * ends, _LONG)])
        file.flush()
        try:
            table = _read(file.name, count, batch, [*record.always.names, *more], record)
        except Exception as error:  # DataFusion raises bare exceptions
            raise DamagedBlobError(name, f"its records cannot be decoded ({_first_line(error)})") from error
    after = table.slice(framing.records).select(record.always.names).to_pylist()
    if after != [dict(record.end)] * ends:
        raise DamagedBlobError(name, f"its blocks announce {framing.records} records, but do not hold exactly these")
    return table.slice(0, framing.records)


def walk(name: str, content: bytes, more: Collection[str] = (), record: Record = EVENT_DATA) -> Framing:
    """Walk the container's blocks; they must be intact and end exactly where the file ends.

    Its records must be those of the service and have the fields that are always read, and those named in `more`.
    """
    if not content:
        raise DamagedBlobError(name, "it has no bytes")
    if not content.startswith(MAGIC[: len(content)]):
        raise DamagedBlobError(name, "it is not an Avro file (its first bytes are not Obj 01)")
    try:
        codec, schema, sync, position = _header(content)
    except IndexError:
        raise DamagedBlobError(name, f"it is cut off: its header goes on after its {len(content)} bytes") from None
    except ValueError as error:
        raise DamagedBlobError(name, "its header cannot be read") from error
    if codec not in CODECS:
        raise DamagedBlobError(name, f"its codec is {codec!r}, {record.writer} writes null or deflate")
    _require_record(name, schema, more, record)
    records = 0
    blocks = []
    while position < len(content):
        count, block = _block(name, content, position, sync)
        records += count
        blocks.append(block)
        position = block.stop + SYNC_SIZE
    return Framing(codec, schema, records, tuple(blocks))


def has_block(name: str, content: bytes, record: Record = EVENT_DATA) -> bool:
    """Whether a whole file has a block: Capture always writes one, others write none where there are no records."""
    return bool(walk(name, content, (), record).blocks)


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
    """How many records a block announces, and where they lie."""
    try:
        count, start = _long(content, position)
        size, start = _long(content, start)
    except IndexError:
        raise DamagedBlobError(name, f"it is cut off: its block at byte {position} has only begun") from None
    except ValueError as error:
        raise DamagedBlobError(name, f"its block at byte {position} cannot be read") from error
    if count < 0 or size < 0:
        raise DamagedBlobError(name, f"its block at byte {position} announces {count} records in {size} bytes")
    end = start + size
    if end + SYNC_SIZE > len(content):
        raise DamagedBlobError(
            name, f"it is cut off: its block at byte {position} ends at {end + SYNC_SIZE}, the file at {len(content)}"
        )
    if content[end : end + SYNC_SIZE] != sync:
        raise DamagedBlobError(name, f"its block at byte {position} does not end in the file's sync marker")
    return count, slice(start, end)


def _require_record(name: str, schema: str, more: Collection[str], wanted: Record) -> None:
    try:
        record = json.loads(schema)
        fields = {field["name"] for field in record["fields"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedBlobError(name, "its Avro schema cannot be read") from error
    if str(record.get("name")).split(".")[-1] != wanted.name or not fields.issuperset(wanted.always.names):
        found = f"its records are {record.get('name')!r}, not the {wanted.name} of {wanted.writer}"
        raise DamagedBlobError(name, found)
    if not fields.issuperset(more):
        raise DamagedBlobError(name, f"its records have no {' and no '.join(sorted({*more} - fields))}")


def _header_and_end(name: str, schema: str, record: Record) -> tuple[bytes, bytes]:
    try:
        return _header_of(schema), _end_of(schema, record.end)
    except Exception as error:  # fastavro raises whatever the schema made it stumble over
        raise DamagedBlobError(name, f"its Avro schema cannot be used ({_first_line(error)})") from error


def _header_of(schema: str) -> bytes:
    metadata = b"".join(_to_long(len(part)) + part for part in (b"avro.schema", schema.encode()))
    return b"".join([MAGIC, _to_long(1), metadata, _to_long(0), bytes(SYNC_SIZE)])


@cache
def _end_of(schema: str, values: tuple[tuple[str, object], ...]) -> bytes:
    """The record after the last, in the file's own schema."""
    record = json.loads(schema)
    blank = {field["name"]: _blank(field["type"]) for field in record["fields"]}
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(record), blank | dict(values))
    return out.getvalue()


def _blank(kind: Any) -> object:
    if isinstance(kind, list):
        return None if "null" in kind else _blank(kind[0])
    return _BLANKS[kind["type"] if isinstance(kind, dict) else kind]


def _read(path: str, count: int, batch: int, fields: Collection[str], record: Record) -> pa.Table:
    """Decode in full batches as many records as the block announces, and ask for no more: so it ends in any case."""
    from datafusion import SessionConfig, SessionContext

    options = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": str(batch)}
    frame = SessionContext(SessionConfig(options)).read_avro(path)
    table = frame.select(*(f'"{field}"' for field in fields)).limit(count).to_arrow_table()
    return table.cast(pa.schema([pa.field(field.name, _type(field, record)) for field in table.schema]))


def _type(field: pa.Field, record: Record) -> pa.DataType:
    """What a field is read as; a map of Capture's stays as it is. Raises TypeError for what is no such map."""
    if field.name in record.always.names:
        return record.always.field(field.name).type
    if field.name not in MAP_FIELDS:
        return pa.string()
    if not pa.types.is_map(field.type) or pa.types.is_union(field.type.item_type) != record.typed:
        raise TypeError(f"{field.name} is no map of properties")
    return field.type if record.typed else pa.map_(pa.string(), pa.string())


def _long(content: bytes, position: int) -> tuple[int, int]:
    """An Avro long (zigzag varint), and the position after it. IndexError where the content ends before it does."""
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


def _to_long(value: int, size: int = 1) -> bytes:
    """A number that is not negative as an Avro long of at least so many bytes."""
    out = bytearray()
    value <<= 1
    while value >= 0x80 or len(out) < size - 1:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(content: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(content, position)
    if size < 0:
        raise ValueError("bytes of a negative length")
    if position + size > len(content):
        raise IndexError
    return content[position : position + size], position + size


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
