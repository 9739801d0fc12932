"""Rows of CSV as JSON objects: a header names the fields, and each line is a row.

An empty field is null, and all other values are strings.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, InvalidRow, ParseOptions, ReadOptions, read_csv

from recapture.formats.duckdb_sql import identifier, one_array, select, utf8

Delimiter = Literal[",", ";", "\t", "|", " "]
"""Delimiters that ASA supports."""
MAX_FIELDS = 10_000
"""Largest number of fields of a line. The time for a blob grows with it, whatever the size of the blob."""
NOT_CLOSED = "a quotation mark is not closed in its line"
_FIELDS_AT_ONCE = 200
"""Number of fields that one query of DuckDB reads: its time grows with the square of it."""
_END = b"end"


class HeaderError(ValueError):
    """Raised if a header cannot be used; the message follows "its header"."""


class OpenQuotationError(ValueError):
    """Raised if a quotation mark is not closed in its line, so that the rows cannot be told apart."""


def fields_of_header(line: bytes, delimiter: str) -> list[str]:
    """Return the fields that a header names. Raise HeaderError if it cannot be used."""
    try:
        header = next(csv.reader([line.decode().removesuffix("\r")], delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise HeaderError(f"cannot be read ({error})") from error
    if len(header) > MAX_FIELDS:
        raise HeaderError(f"names {len(header):,} fields, and at most {MAX_FIELDS:,} are read")
    lower = [field.lower() for field in header]
    twice = sorted(field for field, count in Counter(lower).items() if count > 1)
    if "" in lower or twice:
        raise HeaderError("has a field without a name" if "" in lower else f"names {twice[0]} twice")
    return header


def rows_as_json(header: Sequence[str], delimiter: str, rows: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return rows (binary) as JSON objects, and the reason why a row cannot be read (string), or NULL.

    A row that cannot be read keeps its bytes. Raise OpenQuotationError if the rows cannot be told apart.
    """
    is_utf8 = pc.is_valid(utf8(rows)).to_numpy(zero_copy_only=False)
    table, invalid = _parsed(header, delimiter, rows.filter(pa.array(is_utf8)))
    utf8_at, others_at = np.flatnonzero(is_utf8), np.flatnonzero(~is_utf8)
    skipped = np.array([row.number - 1 for row in invalid], np.intp)
    reasons = [f"{row.actual_columns} fields, the header has {row.expected_columns}" for row in invalid]
    reasons += ["not UTF-8"] * len(others_at)
    invalid_rows = pa.array([row.text.encode() for row in invalid], pa.binary())
    bodies = pa.concat_arrays([_bodies(table), invalid_rows, rows.take(pa.array(others_at))])
    unreadable = pa.concat_arrays([pa.nulls(table.num_rows, pa.string()), pa.array(reasons, pa.string())])
    order = pa.array(np.argsort(np.concatenate([np.delete(utf8_at, skipped), utf8_at[skipped], others_at])))
    return bodies.take(order), unreadable.take(order)


def _parsed(header: Sequence[str], delimiter: str, rows: pa.Array) -> tuple[pa.Table, list[InvalidRow]]:
    """Return the rows, and those that do not have as many fields as the header, numbered from 1.

    One more row is read after the last. If it is not the last to come out, or if the rows are fewer than the lines,
    a quotation mark is not closed.
    """
    invalid: list[InvalidRow] = []

    def skip(row: InvalidRow) -> str:
        invalid.append(row)
        return "skip"

    end = _END + delimiter.encode() * (len(header) - 1)
    with_end = pa.concat_arrays([rows, pa.array([end])])
    content = pc.binary_join(pa.ListArray.from_arrays([0, len(with_end)], with_end), b"\n")[0].as_buffer()
    table = read_csv(
        BytesIO(content),
        ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=list(header)),
        ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, null_values=[]),
    )
    ended = table.num_rows and table[0][-1].as_py() == _END.decode()
    if not ended or table.num_rows - 1 + len(invalid) != len(rows):
        raise OpenQuotationError(NOT_CLOSED)
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
