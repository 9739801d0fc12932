"""Compare the rows of a slice before and after a change, as Delta's change data feed does.

A row that is in both, equally often, did not change. Of the others, a row before and a row after are an update if their
times and strings are the same: these stand for the row's window and group. Where they do not tell the changed rows
apart, or a table has no such columns, every changed row is a delete or an insert.
"""

from collections.abc import Callable, Iterable, Iterator
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
_COUNT = '"_commit_version"'
"""Column of how often a row is in the slice after the change, less how often it was before.

A query cannot give a column a name that begins with an underscore.
"""


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
    parts = -(-(before.count + after.count) // ROWS_OF_A_PART)
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


def _sql(rows: pa.Schema, part: int, parts: int) -> str:
    """Return the query of the changed rows in a part of a slice. All rows with the same identity are in one part."""
    columns, keys = ", ".join(map(_quoted, rows.names)), ", ".join(map(_quoted, identity(rows)))
    same_key = f"OVER (PARTITION BY {keys})"
    is_update = f"count(*) {same_key} = 2 AND sum({_COUNT}) {same_key} = 0" if keys else "false"
    order = ", ".join([*filter(None, [keys]), _COUNT, columns])
    is_in_part = f"hash({keys or columns}) % {parts} = {part}" if parts > 1 else "true"
    return f"""
        WITH counted AS (
            SELECT {columns}, sum({_COUNT})::BIGINT AS {_COUNT}
            FROM (SELECT *, -1 AS {_COUNT} FROM before UNION ALL SELECT *, 1 AS {_COUNT} FROM after)
            WHERE {is_in_part}
            GROUP BY {columns}
            HAVING sum({_COUNT}) <> 0
        ), changed AS (
            SELECT {columns}, sign({_COUNT}) AS {_COUNT}
            FROM (SELECT *, unnest(range(abs({_COUNT}))) FROM counted)
        )
        SELECT {columns}, CASE
            WHEN {is_update} THEN if({_COUNT} < 0, '{RowChange.PREIMAGE}', '{RowChange.POSTIMAGE}')
            ELSE if({_COUNT} < 0, '{RowChange.DELETE}', '{RowChange.INSERT}')
        END AS {CHANGE_TYPE}
        FROM changed
        ORDER BY {order}
    """


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
