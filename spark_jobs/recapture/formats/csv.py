"""CSV, as ASA's own blob input reads it: a header that names the fields, then one event per line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow.compute as pc

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.base import BLOB_METADATA, BodiesInput
from recapture.formats.csv_rows import (
    Delimiter,
    HeaderError,
    OpenQuotationError,
    fields_of_header,
    rows_as_json,
)
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.lines import in_place, lines, plain_text
from recapture.model import InputColumn, InputMetadata, MetadataColumn


class CsvInput(BodiesInput):
    """CSV blobs under a path of folders."""

    metadata: ClassVar[InputMetadata] = InputMetadata("Csv", BLOB_METADATA)

    format: Literal["Csv"]
    delimiter: Delimiter = ","

    @property
    def only_strings(self) -> bool:
        """Whether bodies have no other values than strings and null."""
        return True

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return CsvReader(self.delimiter, column_names(columns), self.limits)


def column_names(columns: Iterable[InputColumn]) -> tuple[str, ...]:
    """Return the fields of a line that columns are read from, sorted, in lower case."""
    return tuple(sorted({column.path[0].lower() for column in columns if column.path}))


@dataclass(frozen=True)
class CsvReader:
    """A `Reader` of CSV blobs. An event's body is its row as JSON: an empty field is null, all others are strings."""

    delimiter: str
    fields: tuple[str, ...]
    """Fields that the query reads, sorted, in lower case; a header must name one of them."""
    limits: Limits = DEFAULT
    numbered = False
    decoder = JsonBodies(only_strings=True)
    messages = None

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        name = pinned.blob.name
        all_lines = lines(plain_text(name, content, self.limits), blank=r"^\r?$")
        if not len(all_lines):
            return in_place(pinned, all_lines, columns)
        if pc.any(pc.match_substring_regex(all_lines, r"\r.")).as_py():
            raise DamagedBlobError(name, "a carriage return stands within a line: lines end in \\n or \\r\\n")
        header = self._header(name, all_lines[0].as_py())
        try:
            bodies, unreadable = rows_as_json(header, self.delimiter, all_lines.slice(1))
        except OpenQuotationError as error:
            raise DamagedBlobError(name, str(error)) from error
        return in_place(pinned, bodies, columns, unreadable)

    def _header(self, name: str, line: bytes) -> list[str]:
        try:
            header = fields_of_header(line, self.delimiter)
        except HeaderError as error:
            raise DamagedBlobError(name, f"its header {error}") from error
        if self.fields and not set(self.fields).intersection(field.lower() for field in header):
            names, fields = ", ".join(header[:5]), ", ".join(self.fields[:5])
            reason = f"its first line names {names} and none of the fields that the query reads ({fields})"
            raise DamagedBlobError(name, f"{reason}: a CSV blob begins with its header")
        return header
