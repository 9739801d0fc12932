"""A Capture blob's bytes to Arrow: whole or not at all (capture format, traps).

DataFusion decodes; it does not notice that a file is cut off, so the container's framing is walked first.
"""

import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from spark_jobs.errors import RunError

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
CODECS = ("null", "deflate")
FIELDS = ("SequenceNumber", "Body")
SCHEMA = pa.schema([("SequenceNumber", pa.int64()), ("Body", pa.binary())])


@dataclass(frozen=True)
class Framing:
    """What the container says of itself."""

    codec: str
    schema: str
    records: int


class DamagedBlobError(RunError):
    """A blob that is not a whole Capture file."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"blob {name} is damaged: {reason}; restore it from a copy or remove it, then plan again"
        )


def decode(name: str, content: bytes) -> pa.Table:
    """The events of one blob, in the file's order: SequenceNumber int64, Body binary.

    Raises DamagedBlobError unless the file is complete and every record that its blocks announce was decoded.
    """
    framing = walk(name, content)
    if not framing.records:
        return SCHEMA.empty_table()
    with tempfile.NamedTemporaryFile(suffix=".avro") as file:
        Path(file.name).write_bytes(content)
        try:
            table = _decoder().read_avro(file.name).select(*(f'"{field}"' for field in FIELDS)).to_arrow_table()
        except Exception as error:  # DataFusion raises bare exceptions
            raise DamagedBlobError(name, f"its records cannot be decoded ({_first_line(error)})") from error
    if table.num_rows != framing.records:
        raise DamagedBlobError(name, f"its blocks announce {framing.records} records, {table.num_rows} were decoded")
    return table.cast(SCHEMA)


def walk(name: str, content: bytes) -> Framing:
    """Walk the container's blocks; they must be intact and end exactly where the file ends."""
    if not content:
        raise DamagedBlobError(name, "it has no bytes")
    if content[: len(MAGIC)] != MAGIC:
        raise DamagedBlobError(name, "it is not an Avro file (its first bytes are not Obj 01)")
    try:
        codec, schema, sync, position = _header(content)
        if codec not in CODECS:
            raise DamagedBlobError(name, f"its codec is {codec!r}, Capture writes null or deflate")
        _require_event_data(name, schema)
        records = 0
        while position < len(content):
            block = position
            count, position = _long(content, position)
            size, position = _long(content, position)
            if count < 0 or size < 0:
                raise DamagedBlobError(name, f"its block at byte {block} announces {count} records in {size} bytes")
            position += size
            if content[position : position + SYNC_SIZE] != sync:
                raise DamagedBlobError(name, f"its block at byte {block} does not end in the file's sync marker")
            position += SYNC_SIZE
            records += count
    except (IndexError, UnicodeDecodeError) as error:
        raise DamagedBlobError(name, "it ends, or turns into something else, in the middle of a header") from error
    return Framing(codec, schema, records)


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
    sync = content[position : position + SYNC_SIZE]
    if len(sync) < SYNC_SIZE:
        raise IndexError
    codec = metadata.get("avro.codec", b"null").decode()
    return codec, metadata.get("avro.schema", b"").decode(), sync, position + SYNC_SIZE


def _require_event_data(name: str, schema: str) -> None:
    try:
        record = json.loads(schema)
        fields = {field["name"] for field in record["fields"]}
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedBlobError(name, "its Avro schema cannot be read") from error
    if str(record.get("name")).split(".")[-1] != "EventData" or not fields.issuperset(FIELDS):
        raise DamagedBlobError(name, f"its records are {record.get('name')!r}, not the EventData of Capture")


def _long(content: bytes, position: int) -> tuple[int, int]:
    """An Avro long (zigzag varint), and the position behind it."""
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise IndexError


def _bytes(content: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(content, position)
    if size < 0 or position + size > len(content):
        raise IndexError
    return content[position : position + size], position + size


@cache
def _decoder() -> SessionContext:
    options = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": "65536"}
    return SessionContext(SessionConfig(options))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
