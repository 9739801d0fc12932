"""Compare the rows of a slice before and after a change, as Delta's change data feed does.

A row that is in both, equally often, did not change. Of the others, a row before and a row after are an update if their
times and strings are the same: these stand for the row's window and group. Where they do not tell the changed rows
apart, or a table has no such columns, every changed row is a delete or an insert.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as types

from recapture.storage import scratch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class RowChange(StrEnum):
    """How a row changed."""

    INSERT = "insert"
    DELETE = "delete"
    PREIMAGE = "update_preimage"
    """The row before an update."""
    POSTIMAGE = "update_postimage"
    """The row after an update."""


CHANGE_TYPE = "_change_type"
"""Column that says how a row changed."""
MEMORY = "256MB"
"""Memory in which rows are compared. What does not fit is spilled to files."""
ROWS_OF_A_PART = 8_000_000
"""Number of rows, before and after together, that are compared in this memory, even if all of them changed."""
ROWS_AT_ONCE = 65_536
COUNT = '"_commit_version"'
"""Column of how often a row is in the slice after the change, less how often it was before.

A query cannot give a column a name that begins with an underscore.
"""
IS_UPDATE = '"_is_update"'
"""Column that says whether a row that differs was updated."""


@dataclass(frozen=True)
class Rows:
    """Rows of a slice."""

    columns: pa.Schema
    count: int
    """Number of the rows."""
    read: Callable[[], Iterable[pa.RecordBatch]]
    """Function that returns the rows, in batches with these columns; it may be called again."""


@contextmanager
def comparisons(name: str) -> Iterator["DuckDBPyConnection"]:
    """Make a connection for `row_changes`, which spills into a temporary folder of this name."""
    import duckdb

    scratch.remove_abandoned(name)
    with scratch.scratch_folder(name) as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": MEMORY,
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
        }
        with duckdb.connect(config=settings) as connection:
            connection.execute("SET enable_progress_bar = false")
            yield connection


def row_changes(connection: "DuckDBPyConnection", before: Rows, after: Rows) -> Iterator[pa.RecordBatch]:
    """Yield the rows that differ, with CHANGE_TYPE; an updated row comes directly before its new version.

    Both have the same columns. Large slices are compared in parts, and read once for each of them. Equal slices give
    equal batches.
    """
    columns = before.columns
    parts = parts_of(before.count + after.count)
    for part in range(parts):
        for name, rows in (("before", before), ("after", after)):
            connection.register(name, pa.RecordBatchReader.from_batches(columns, rows.read()))
        for batch in connection.sql(_sql(columns, part, parts)).to_arrow_reader(ROWS_AT_ONCE):
            yield batch.cast(changed_schema(columns))


def changed_schema(rows: pa.Schema) -> pa.Schema:
    """Return the schema of changed rows."""
    return rows.append(pa.field(CHANGE_TYPE, pa.string(), nullable=False))


def identity(rows: pa.Schema) -> list[str]:
    """Return the columns that identify a row: its times and strings, which stand for its window and group."""
    times = [column.name for column in rows if types.is_timestamp(column.type)]
    return times + [column.name for column in rows if types.is_string(column.type)]


def differing_rows(columns: Sequence[str], keys: Sequence[str], part: int, parts: int) -> str:
    """Return the query of a part of the rows that differ between the views `before` and `after`.

    Its columns are `columns`, then COUNT, -1 for a row of `before` and 1 for one of `after`, and IS_UPDATE: whether the
    row and another one are the only differing rows with these `keys`, one before and one after. All rows with the same
    keys are in one part.
    """
    selected, key_list = (", ".join(map(quoted, names)) for names in (columns, keys))
    same_key = f"OVER (PARTITION BY {key_list})"
    is_update = f"count(*) {same_key} = 2 AND sum({COUNT}) {same_key} = 0" if keys else "false"
    is_in_part = f"hash({key_list or selected}) % {parts} = {part}" if parts > 1 else "true"
    return f"""
        WITH counted AS (
            SELECT {selected}, sum({COUNT})::BIGINT AS {COUNT}
            FROM (SELECT *, -1 AS {COUNT} FROM before UNION ALL SELECT *, 1 AS {COUNT} FROM after)
            WHERE {is_in_part}
            GROUP BY {selected}
            HAVING sum({COUNT}) <> 0
        ), changed AS (
            SELECT {selected}, sign({COUNT}) AS {COUNT}
            FROM (SELECT *, unnest(range(abs({COUNT}))) FROM counted)
        )
        SELECT {selected}, {COUNT}, {is_update} AS {IS_UPDATE} FROM changed
    """


def parts_of(rows: int) -> int:
    """Return the number of parts in which so many rows, before and after together, are compared."""
    return -(-rows // ROWS_OF_A_PART)


def quoted(name: str) -> str:
    """Return a name as SQL of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def _sql(rows: pa.Schema, part: int, parts: int) -> str:
    """Return the query of the changed rows in a part of a slice."""
    keys = identity(rows)
    columns = ", ".join(map(quoted, rows.names))
    order = ", ".join([*map(quoted, keys), COUNT, columns])
    return f"""
        SELECT {columns}, CASE
            WHEN {IS_UPDATE} THEN if({COUNT} < 0, '{RowChange.PREIMAGE}', '{RowChange.POSTIMAGE}')
            ELSE if({COUNT} < 0, '{RowChange.DELETE}', '{RowChange.INSERT}')
        END AS {CHANGE_TYPE}
        FROM ({differing_rows(rows.names, keys, part, parts)})
        ORDER BY {order}
    """
