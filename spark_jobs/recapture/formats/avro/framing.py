"""The framing of Avro files: their header, and their blocks, which must be whole."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO

import fastavro
import pyarrow as pa

from recapture.errors import DamagedBlobError
from recapture.formats.avro.walk import NOWHERE, read_long

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
CODECS = ("null", "deflate")
MAP_FIELDS = ("SystemProperties", "Properties")
_METADATA = fastavro.parse_schema({"type": "map", "values": "bytes"})


@dataclass(frozen=True)
class Record:
    """The records that a service writes."""

    writer: str
    name: str
    """Name of the record in the schema, without its namespace."""
    always: pa.Schema
    typed: bool
    """Whether the values of its maps are unions of several types; otherwise they are strings."""
    repeated: frozenset[str] = frozenset()
    """Fields whose strings are often those of the record before; they are read as dictionaries."""


@dataclass(frozen=True)
class Framing:
    """The framing of an Avro file."""

    codec: str
    schema: str
    blocks: tuple[slice, ...]
    """Bytes of the records of each block, as the codec wrote them."""
    counts: tuple[int, ...]
    """Number of records that each block declares."""

    @property
    def records(self) -> int:
        """Number of records that all blocks declare."""
        return sum(self.counts)


def read_framing(name: str, content: bytes, record: Record, more: Collection[str] = ()) -> Framing:
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
    blocks, counts = [], []
    while position < len(content):
        count, block = _block(name, content, position, sync)
        blocks.append(block)
        counts.append(count)
        position = block.stop + SYNC_SIZE
    return Framing(codec, schema, tuple(blocks), tuple(counts))


def has_block(name: str, content: bytes, record: Record) -> bool:
    """Return whether an intact file has a block: Capture always writes one, other writers none without records."""
    return bool(read_framing(name, content, record).blocks)


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
        message = f"it is cut off: its block at byte {position} ends at {end + SYNC_SIZE}, the file at {len(content)}"
        raise DamagedBlobError(name, message)
    if content[end : end + SYNC_SIZE] != sync:
        raise DamagedBlobError(name, f"its block at byte {position} does not end in the file's sync marker")
    return count, slice(start, end)


def _require_record(name: str, schema: str, more: Collection[str], record: Record) -> None:
    try:
        written, fields = _names(schema)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedBlobError(name, "its Avro schema cannot be read") from error
    if str(written).split(".")[-1] != record.name or not fields.issuperset(record.always.names):
        raise DamagedBlobError(name, f"its records are {written!r}, not the {record.name} of {record.writer}")
    if not fields.issuperset(more):
        raise DamagedBlobError(name, f"its records have no {' and no '.join(sorted({*more} - fields))}")


@lru_cache(64)
def _names(schema: str) -> tuple[object, frozenset[str]]:
    """Return the name of a record and those of its fields. Raise what an unusual schema makes Python raise."""
    written = json.loads(schema)
    fields = frozenset(field["name"] for field in written["fields"])
    return written.get("name"), fields


def _long(content: bytes, position: int) -> tuple[int, int]:
    """Return a number and the position after it. Raise IndexError at the end of the content."""
    number, position = read_long(content, position)
    if position == NOWHERE:
        raise ValueError("no long has so many bytes")
    return number, position


def _bytes(content: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(content, position)
    if size < 0:
        raise ValueError("bytes of a negative length")
    if position + size > len(content):
        raise IndexError
    return content[position : position + size], position + size
