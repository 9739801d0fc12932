"""CSV, as ASA's own blob input reads it: a header that names the fields, then one event per line."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.csv import ConvertOptions, InvalidRow, ParseOptions, ReadOptions, read_csv

from recapture.archive.manifest import CaptureBlob
from recapture.errors import DamagedBlobError
from recapture.formats.base import BLOB_METADATA, BodiesInput
from recapture.formats.bodies import select, utf8, whole
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.lines import in_place, lines, text
from recapture.model import InputColumn, InputMetadata, MetadataColumn

_END = b"end"


class CsvInput(BodiesInput):
    """CSV blobs under a path of folders."""

    metadata: ClassVar[InputMetadata] = InputMetadata("Csv", BLOB_METADATA)

    format: Literal["Csv"]
    delimiter: Literal[",", ";", "\t", "|", " "] = ","

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        fields = tuple(sorted({column.path[0].lower() for column in columns if column.path}))
        return CsvReader(self.delimiter, fields, self.limits)


@dataclass(frozen=True)
class CsvReader:
    """CSV. A `Reader`; an event's body is its row as JSON, in which an empty field is null and every other a text."""

    delimiter: str
    fields: tuple[str, ...]
    """The fields that the query reads, sorted, in lower case; a header must have some of them."""
    limits: Limits = DEFAULT
    numbered = False

    def read(self, pinned: CaptureBlob, content: bytes, columns: Sequence[MetadataColumn]) -> Events:
        name = pinned.blob.name
        every = lines(text(name, content, self.limits), blank=r"^\r?$")
        if not len(every):
            return in_place(pinned, every, columns)
        if pc.any(pc.match_substring_regex(every, r"\r.")).as_py():
            raise DamagedBlobError(name, "a carriage return stands within a line: lines end in \\n or \\r\\n")
        header = self._header(name, every[0].as_py())
        rows = every.slice(1)
        legible = pc.is_valid(utf8(rows))
        table, invalid = self._rows(name, header, rows.filter(legible))
        body = pa.concat_arrays([_bodies(table), *(pa.array([row.text.encode()], pa.binary()) for row in invalid)])
        told = [f"{row.actual_columns} fields, the header has {row.expected_columns}" for row in invalid]
        unreadable = pa.concat_arrays([pa.nulls(table.num_rows, pa.string()), pa.array(told, pa.string())])
        turns = _turns(len(body), [row.number - 1 for row in invalid])
        body, unreadable = body.take(turns), unreadable.take(turns)
        if len(body) < len(rows):
            illegible = np.flatnonzero(~legible.to_numpy(zero_copy_only=False))
            turns = _turns(len(rows), illegible)
            body = pa.concat_arrays([body, rows.take(pa.array(illegible))]).take(turns)
            unreadable = pa.concat_arrays([unreadable, pa.array(["not UTF-8"] * len(illegible))]).take(turns)
        return in_place(pinned, body, columns, unreadable)

    def _header(self, name: str, line: bytes) -> list[str]:
        try:
            header = next(csv.reader([line.decode().removesuffix("\r")], delimiter=self.delimiter))
        except (UnicodeDecodeError, csv.Error) as error:
            raise DamagedBlobError(name, f"its header cannot be read ({error})") from error
        lower = [field.lower() for field in header]
        twice = sorted({field for field in lower if lower.count(field) > 1})
        if "" in lower or twice:
            which = "has a field without a name" if "" in lower else f"names {twice[0]} twice"
            raise DamagedBlobError(name, f"its header {which}")
        if self.fields and not set(self.fields).intersection(lower):
            raise DamagedBlobError(
                name,
                f"its first line names {', '.join(header[:5])} and none of the fields that the query reads "
                f"({', '.join(self.fields[:5])}): a CSV blob begins with its header",
            )
        return header

    def _rows(self, name: str, header: list[str], rows: pa.Array) -> tuple[pa.Table, list[InvalidRow]]:
        """The rows, and those that have another number of fields than the header, numbered from 1.

        A row more is put behind the last: where it does not come out last, or not each line is a row, a quotation mark
        was opened and not closed.
        """
        invalid: list[InvalidRow] = []

        def skip(row: InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        end = _END + self.delimiter.encode() * (len(header) - 1)
        behind = pa.concat_arrays([rows, pa.array([end])])
        content = pc.binary_join(pa.ListArray.from_arrays([0, len(behind)], behind), b"\n")[0].as_buffer()
        table = read_csv(
            io.BytesIO(content),
            ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=header),
            ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip),
            ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, null_values=[]),
        )
        ended = table.num_rows and table[0][-1].as_py() == _END.decode()
        found = table.num_rows + len(invalid) - bool(ended)
        if not ended or found != len(rows):
            raise DamagedBlobError(name, "a quotation mark is not closed in its line")
        return table.slice(0, table.num_rows - 1), invalid


def _bodies(table: pa.Table) -> pa.Array:
    """The rows as JSON."""
    fields = ", ".join(f"{_name(field)} := nullif(c{place}, '')" for place, field in enumerate(table.column_names))
    columns = {f"c{place}": whole(column) for place, column in enumerate(table.columns)}
    query = f"SELECT encode(to_json(struct_pack({fields}))::VARCHAR) AS body FROM bodies"
    return whole(select(columns, query)["body"])


def _turns(count: int, later: Sequence[int] | NDArray[np.intp]) -> pa.Array:
    """Where each of `count` rows is to be taken from, when those of the places in `later` stand behind the others."""
    behind = np.zeros(count, bool)
    behind[np.asarray(later, np.intp)] = True
    turns = np.empty(count, np.int64)
    turns[~behind], turns[behind] = np.arange(count - len(later)), np.arange(count - len(later), count)
    return pa.array(turns)


def _name(field: str) -> str:
    """A name for DuckDB."""
    return '"' + field.replace('"', '""') + '"'
