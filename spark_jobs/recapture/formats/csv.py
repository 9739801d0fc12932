"""CSV, as ASA's own blob input reads it: a header that names the fields, then one event per line."""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, InvalidRow, ParseOptions, ReadOptions, read_csv

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.base import BLOB_METADATA, BodiesInput
from recapture.formats.duckdb_sql import identifier, one_array, select, utf8
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.lines import in_place, lines, plain_text
from recapture.model import InputColumn, InputMetadata, MetadataColumn

MAX_FIELDS = 10_000
"""Largest number of fields of a line. The time for a blob grows with it, whatever the size of the blob."""
_FIELDS_AT_ONCE = 200
"""Number of fields that one query of DuckDB reads: its time grows with the square of it."""
_END = b"end"


class CsvInput(BodiesInput):
    """CSV blobs under a path of folders."""

    metadata: ClassVar[InputMetadata] = InputMetadata("Csv", BLOB_METADATA)

    format: Literal["Csv"]
    delimiter: Literal[",", ";", "\t", "|", " "] = ","

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

    def read(self, pinned: PinnedBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        name = pinned.blob.name
        all_lines = lines(plain_text(name, content, self.limits), blank=r"^\r?$")
        if not len(all_lines):
            return in_place(pinned, all_lines, columns)
        if pc.any(pc.match_substring_regex(all_lines, r"\r.")).as_py():
            raise DamagedBlobError(name, "a carriage return stands within a line: lines end in \\n or \\r\\n")
        header = self._header(name, all_lines[0].as_py())
        rows = all_lines.slice(1)
        is_utf8 = pc.is_valid(utf8(rows)).to_numpy(zero_copy_only=False)
        table, invalid = self._rows(name, header, rows.filter(pa.array(is_utf8)))
        utf8_at, others_at = np.flatnonzero(is_utf8), np.flatnonzero(~is_utf8)
        skipped = np.array([row.number - 1 for row in invalid], np.intp)
        reasons = [f"{row.actual_columns} fields, the header has {row.expected_columns}" for row in invalid]
        reasons += ["not UTF-8"] * len(others_at)
        invalid_lines = pa.array([row.text.encode() for row in invalid], pa.binary())
        bodies = pa.concat_arrays([_bodies(table), invalid_lines, rows.take(pa.array(others_at))])
        unreadable = pa.concat_arrays([pa.nulls(table.num_rows, pa.string()), pa.array(reasons, pa.string())])
        order = pa.array(np.argsort(np.concatenate([np.delete(utf8_at, skipped), utf8_at[skipped], others_at])))
        return in_place(pinned, bodies.take(order), columns, unreadable.take(order))

    def _header(self, name: str, line: bytes) -> list[str]:
        try:
            header = next(csv.reader([line.decode().removesuffix("\r")], delimiter=self.delimiter))
        except (UnicodeDecodeError, csv.Error) as error:
            raise DamagedBlobError(name, f"its header cannot be read ({error})") from error
        if len(header) > MAX_FIELDS:
            message = f"its header names {len(header):,} fields, and at most {MAX_FIELDS:,} are read"
            raise DamagedBlobError(name, message)
        lower = [field.lower() for field in header]
        twice = sorted(field for field, count in Counter(lower).items() if count > 1)
        if "" in lower or twice:
            which = "has a field without a name" if "" in lower else f"names {twice[0]} twice"
            raise DamagedBlobError(name, f"its header {which}")
        if self.fields and not set(self.fields).intersection(lower):
            names, fields = ", ".join(header[:5]), ", ".join(self.fields[:5])
            reason = f"its first line names {names} and none of the fields that the query reads ({fields})"
            raise DamagedBlobError(name, f"{reason}: a CSV blob begins with its header")
        return header

    def _rows(self, name: str, header: list[str], rows: pa.Array) -> tuple[pa.Table, list[InvalidRow]]:
        """Return the rows, and those that do not have as many fields as the header, numbered from 1.

        One more row is read after the last. If it is not the last to come out, or if the rows are fewer than the lines,
        a quotation mark is not closed.
        """
        invalid: list[InvalidRow] = []

        def skip(row: InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        end = _END + self.delimiter.encode() * (len(header) - 1)
        with_end = pa.concat_arrays([rows, pa.array([end])])
        content = pc.binary_join(pa.ListArray.from_arrays([0, len(with_end)], with_end), b"\n")[0].as_buffer()
        table = read_csv(
            BytesIO(content),
            ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=header),
            ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip),
            ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, null_values=[]),
        )
        ended = table.num_rows and table[0][-1].as_py() == _END.decode()
        if not ended or table.num_rows - 1 + len(invalid) != len(rows):
            raise DamagedBlobError(name, "a quotation mark is not closed in its line")
        return table.slice(0, table.num_rows - 1), invalid


def _bodies(table: pa.Table) -> pa.Array:
    """Return the rows as JSON (binary)."""
    starts = range(0, table.num_columns, _FIELDS_AT_ONCE)
    parts = [_objects(table.select(range(start, min(start + _FIELDS_AT_ONCE, table.num_columns)))) for start in starts]
    if len(parts) == 1:
        return parts[0]
    members = pc.binary_join_element_wise(*(pc.binary_slice(part, 1, -1) for part in parts), b",")
    return pc.binary_join_element_wise(b"{", members, b"}", b"")


def _objects(table: pa.Table) -> pa.Array:
    """Return the fields of each row as a JSON object (binary)."""
    fields = ", ".join(f"{identifier(field)} := nullif(c{index}, '')" for index, field in enumerate(table.column_names))
    columns = {f"c{index}": one_array(column) for index, column in enumerate(table.columns)}
    query = f"SELECT encode(to_json(struct_pack({fields}))::VARCHAR) AS body FROM bodies"
    return one_array(select(columns, query)["body"])
