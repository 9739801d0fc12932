"""CSV blobs, as ASA's own blob input reads them: a header that names the fields, then an event a line."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.csv import ConvertOptions, InvalidRow, ParseOptions, ReadOptions, read_csv

from spark_jobs.capture.bodies import select, utf8, whole
from spark_jobs.capture.events import Events
from spark_jobs.capture.manifest import CaptureBlob
from spark_jobs.cousins.lines import in_place, lines, text
from spark_jobs.errors import DamagedBlobError
from spark_jobs.query.model import MetadataColumn

_END = b"the end of the rows"


@dataclass(frozen=True)
class CsvReader:
    """CSV. A `Reader`; an event's body is its row as JSON, in which an empty field is null and every other a text."""

    delimiter: str
    fields: frozenset[str]
    """Some of which a header must have, in lower case: those that the query reads."""
    numbered = False

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        name, plain = pinned.blob.name, text(pinned.blob.name, content).lstrip(b"\r\n")
        if not plain.strip():
            return in_place(pinned, pa.nulls(0, pa.binary()), wanted)
        header = self._header(name, plain)
        table, invalid = self._rows(name, plain, header)
        place = np.array([row.number - 2 for row in invalid], np.int64)
        body, unreadable = self._bodies(table)
        if len(invalid):
            told = [f"{row.actual_columns} fields, the header has {row.expected_columns}" for row in invalid]
            order = _turns(len(body) + len(invalid), place)
            body = pa.concat_arrays([body, pa.array([row.text.encode() for row in invalid], pa.binary())]).take(order)
            unreadable = pa.concat_arrays([unreadable, pa.array(told, pa.string())]).take(order)
        return in_place(pinned, body, wanted, unreadable)

    def _header(self, name: str, plain: bytes) -> list[str]:
        try:
            header = next(
                csv.reader(io.TextIOWrapper(io.BytesIO(plain), "utf-8", newline=""), delimiter=self.delimiter)
            )
        except (UnicodeDecodeError, csv.Error) as error:
            raise DamagedBlobError(name, f"its header cannot be read ({error})") from error
        lower = [field.lower() for field in header]
        twice = sorted({field for field in lower if lower.count(field) > 1})
        if "" in lower or twice:
            which = f"names {twice[0]} twice" if twice else "has a field without a name"
            raise DamagedBlobError(name, f"its header {which}")
        if self.fields and not self.fields.intersection(lower):
            raise DamagedBlobError(
                name,
                f"its first line names {', '.join(header[:5])} and none of the fields that the query reads "
                f"({', '.join(sorted(self.fields)[:5])}): a CSV blob begins with its header",
            )
        return header

    def _rows(self, name: str, plain: bytes, header: list[str]) -> tuple[pa.Table, list[InvalidRow]]:
        """The rows, and those that have another number of fields than the header.

        A row more is put behind the last: where it does not come out last, or not each line is a row, a quotation mark
        was opened and not closed.
        """
        invalid: list[InvalidRow] = []

        def skip(row: InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        end = b"\n" + _END + self.delimiter.encode() * (len(header) - 1) + b"\n"
        table = read_csv(
            io.BytesIO(plain + end),
            ReadOptions(use_threads=False, block_size=len(plain) + len(end) + 1, column_names=header, skip_rows=1),
            ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip),
            ConvertOptions(
                column_types=dict.fromkeys(header, pa.binary()),
                strings_can_be_null=False,
                null_values=[],
                check_utf8=False,
            ),
        )
        found = table.num_rows + len(invalid)
        expected = len(lines(plain, blank=r"^\r?$"))
        if found != expected or table[0][-1].as_py() != _END:
            raise DamagedBlobError(
                name,
                f"its {expected} lines give {found} rows: a quotation mark is not closed in its line",
            )
        return table.slice(0, table.num_rows - 1), invalid

    def _bodies(self, table: pa.Table) -> tuple[pa.Array, pa.Array]:
        """The rows as JSON, and why one cannot be; in its place stands the row without its quotation marks."""
        columns = [whole(column) for column in table.columns]
        texts = {f"c{place}": utf8(column) for place, column in enumerate(columns)}
        fields = ", ".join(f"{_name(field)} := nullif(c{place}, '')" for place, field in enumerate(table.column_names))
        body = whole(
            select(texts, f"SELECT encode(to_json(struct_pack({fields}))::VARCHAR) AS body FROM bodies")["body"]
        )
        broken = [
            pc.and_(pc.is_null(text), pc.is_valid(column)) for text, column in zip(texts.values(), columns, strict=True)
        ]
        wrong = broken[0]
        for each in broken[1:]:
            wrong = pc.or_(wrong, each)
        raw = pc.binary_join_element_wise(*columns, self.delimiter.encode())
        return pc.if_else(wrong, raw, body), pc.if_else(wrong, "not UTF-8", pa.scalar(None, pa.string()))


def _turns(count: int, later: NDArray[np.int64]) -> pa.Array:
    """Where each of `count` rows is to be taken from, when those of the places in `later` stand behind the others."""
    behind = np.zeros(count, bool)
    behind[later] = True
    turns = np.empty(count, np.int64)
    turns[~behind], turns[behind] = np.arange(count - len(later)), np.arange(count - len(later), count)
    return pa.array(turns)


def _name(field: str) -> str:
    """A name for DuckDB."""
    return '"' + field.replace('"', '""') + '"'
