"""Avro messages: each body is an Avro file with its own schema, and one event per record.

ASA's table of types ("Data Types (Azure Stream Analytics)") says what becomes of a value: int and long are bigints,
float and double floats, a boolean is a bit, and records and arrays keep their structure. A map is read as a record, and
a symbol of an enum as a string. The table has no bytes, so a schema with bytes cannot be read. The logical type of a
number does not matter: a timestamp-millis is a bigint.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.formats.messages import NO_EVENT, EventBodies
from recapture.formats.views import copied

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_MAX_BLOCK = 64 << 20
"""Largest inflated size of a block, bytes."""
_UNREADABLE = ("bytes", "fixed")
ReadRecord = Callable[[BytesIO], Any]


class _BodyError(ValueError):
    """Raised if a body cannot be read; the message is the reason."""


@dataclass(frozen=True)
class AvroMessages:
    """Avro `Messages`."""

    only_strings = False

    def unpack(self, bodies: pa.Array, unreadable: pa.Array | None) -> EventBodies:
        reasons: list[str | None] = [None] * len(bodies) if unreadable is None else unreadable.to_pylist()
        message: list[int] = []
        events: list[bytes | None] = []
        unread: list[str | None] = []
        reader = _FileReader()
        for index, body in enumerate(copied(bodies).to_pylist()):
            reason = reasons[index] or (None if body is not None else "no body")
            records: list[bytes] = []
            if reason is None:
                try:
                    records = list(reader.records(body))
                except _BodyError as error:
                    reason = str(error)
            reason = reason or (None if records else NO_EVENT)
            values = records if reason is None else [body]
            message += [index] * len(values)
            events += values
            unread += [reason] * len(values)
        return EventBodies(np.array(message, np.intp), pa.array(events, pa.binary()), pa.array(unread, pa.string()))

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        return None


@dataclass
class _FileReader:
    """Reads Avro files. The header of a file is read once if the next files begin with the same bytes."""

    _header: bytes = b"\0"
    """Header of the last file, without the sync marker, which differs from file to file."""
    _codec: str = "null"
    _read_record: ReadRecord = field(default=BytesIO.read)

    def records(self, body: bytes) -> Iterator[bytes]:
        """Yield the records as JSON. Raise _BodyError unless the whole file can be read."""
        if not body.startswith(self._header):
            self._read_header(body)
        position = len(self._header) + _SYNC_SIZE
        sync = body[position - _SYNC_SIZE : position]
        if len(sync) < _SYNC_SIZE:
            raise _BodyError("its Avro file is cut off")
        while position < len(body):
            count, position = _long(body, position)
            size, position = _long(body, position)
            end = position + size
            if size < 0 or count < 0 or body[end : end + _SYNC_SIZE] != sync:
                raise _BodyError("a block of its Avro file is cut off or damaged")
            yield from self._records_of_block(body[position:end], count)
            position = end + _SYNC_SIZE

    def _read_header(self, body: bytes) -> None:
        if not body.startswith(_MAGIC[: len(body)]) or not body:
            raise _BodyError("not an Avro file")
        self._header = b"\0"
        metadata: dict[bytes, bytes] = {}
        position = len(_MAGIC)
        while entries := (read := _long(body, position))[0]:
            position = read[1]
            if entries < 0:
                _, position = _long(body, position)
            for _ in range(abs(entries)):
                key, position = _bytes(body, position)
                metadata[key], position = _bytes(body, position)
        self._codec = metadata.get(b"avro.codec", b"null").decode(errors="replace")
        if self._codec not in ("null", "deflate"):
            raise _BodyError(f"its Avro codec is {self._codec}: only null and deflate are read")
        self._read_record = _record_reader(metadata.get(b"avro.schema", b""))
        self._header = body[: read[1]]

    def _records_of_block(self, block: bytes, count: int) -> Iterator[bytes]:
        if self._codec == "deflate":
            block = _inflated(block)
        if count > max(len(block), 1):
            raise _BodyError("a block of its Avro file declares more records than it has bytes")
        stream = BytesIO(block)
        for _ in range(count):
            try:
                record = self._read_record(stream)
                yield json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
            except Exception as error:  # fastavro raises whatever the bytes made it stumble over
                raise _BodyError(f"a record of its Avro file cannot be read ({type(error).__name__})") from error
        if stream.tell() != len(block):
            raise _BodyError("a block of its Avro file has more bytes than its records")


@lru_cache(64)
def _record_reader(schema: bytes) -> ReadRecord:
    """Return a function that reads a record of a schema. Raise _BodyError if the schema cannot be used."""
    import fastavro

    try:
        parsed = fastavro.parse_schema(_plain(json.loads(schema)))
    except _BodyError:
        raise
    except Exception as error:  # fastavro raises whatever the schema made it stumble over
        raise _BodyError("its Avro schema cannot be read") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise _BodyError("its Avro schema is not that of a record")
    return lambda stream: fastavro.schemaless_reader(stream, parsed, None)


def _plain(schema: Any, where: str = "record") -> Any:
    """Return a schema without logical types. Raise _BodyError if it has a type that ASA does not read."""
    if isinstance(schema, list):
        return [_plain(member, where) for member in schema]
    if isinstance(schema, dict):
        where = str(schema.get("name", where))
        members = ("type", "items", "values", "fields")
        return {
            key: _plain(value, where) if key in members else value
            for key, value in schema.items()
            if key not in ("logicalType", "default")
        }
    if schema in _UNREADABLE:
        raise _BodyError(f"its Avro schema has {schema} in {where}, which no type of ASA holds")
    return schema


def _inflated(block: bytes) -> bytes:
    from isal import isal_zlib

    inflater = isal_zlib.decompressobj(wbits=-15)
    try:
        plain: bytes = inflater.decompress(block, _MAX_BLOCK)
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub has no class
        raise _BodyError("a block of its Avro file cannot be inflated") from error
    if not inflater.eof:
        raise _BodyError("a block of its Avro file is cut off, or inflates to more than 64 MiB")
    return plain


def _long(content: bytes, position: int) -> tuple[int, int]:
    """Return a number and the position after it. Raise _BodyError at the end of the content."""
    number = shift = 0
    while True:
        if position >= len(content) or shift > 63:
            raise _BodyError("its Avro file is cut off")
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position


def _bytes(content: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(content, position)
    if size < 0 or position + size > len(content):
        raise _BodyError("its Avro file is cut off")
    return content[position : position + size], position + size
