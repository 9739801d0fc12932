"""JSON: one event per line, or one array of all events, as ASA's own blob input reads it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import IO, ClassVar, Literal

import pyarrow as pa

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.base import BLOB_METADATA, BodiesInput
from recapture.formats.duckdb_sql import duckdb_connection, literal, one_array
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.lines import in_place, lines, plain_text
from recapture.model import InputColumn, InputMetadata, MetadataColumn

_USUAL = 1 << 20
"""Size that an element of an array seldom exceeds, bytes; DuckDB's buffers are a multiple of it."""


class JsonInput(BodiesInput):
    """JSON blobs under a path of folders."""

    metadata: ClassVar[InputMetadata] = InputMetadata("Json", BLOB_METADATA)

    format: Literal["Json"]

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return JsonReader(self.limits)


@dataclass(frozen=True)
class JsonReader:
    """A `Reader` of JSON blobs."""

    limits: Limits = DEFAULT
    numbered = False
    decoder = JsonBodies()
    messages = None

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        plain = plain_text(pinned.blob.name, content, self.limits)
        if not re.match(rb"\s*\[", plain):
            return in_place(pinned, lines(plain), columns)
        with NamedTemporaryFile(suffix=".json") as file:
            file.write(plain)
            file.flush()
            del plain  # reading an array takes several times its size
            return in_place(pinned, _of_array(pinned.blob.name, file), columns)


def _of_array(name: str, file: IO[bytes]) -> pa.Array:
    """Return the elements of a file that is one JSON array, or its lines if the first line is itself an array.

    Raise DamagedBlobError for other files that begin with an array.
    """
    elements = _elements(file)
    if elements is not None:
        return elements
    file.seek(0)
    plain = file.read()
    with NamedTemporaryFile(suffix=".json") as first:
        first.write(plain.lstrip().partition(b"\n")[0])
        first.flush()
        if _elements(first) is None:
            raise DamagedBlobError(name, "it begins with an array but is not one: it is cut off, or not JSON")
    return lines(plain)


def _elements(file: IO[bytes]) -> pa.Array | None:
    """Return the elements of a JSON array, as they stand there; None if the file is not one."""
    import duckdb

    size = file.tell()
    if not _ends_in_bracket(file, size):
        return None
    for longest in (_USUAL, size):
        read = f"""
            SELECT json FROM read_json_objects({literal(file.name)}, format = 'array', compression = 'none',
                maximum_object_size = {longest})
        """
        try:
            elements = duckdb_connection().sql(read).to_arrow_table()
        except duckdb.InvalidInputException as error:
            if "maximum_object_size" not in str(error):
                return None
        else:
            return one_array(elements["json"]).cast(pa.binary())
    raise AssertionError("no element is longer than its array")


def _ends_in_bracket(file: IO[bytes], size: int) -> bool:
    """Return whether the last character is a bracket: DuckDB does not notice an array that is cut off at a comma."""
    end = size
    while end:
        start = max(end - _USUAL, 0)
        file.seek(start)
        if last := file.read(end - start).rstrip():
            return last.endswith(b"]")
        end = start
    return False
