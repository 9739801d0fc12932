"""Compare the rows of a slice before and after a change, as Delta's change data feed does.

A row that is in both, equally often, did not change. Of the others, a row before and a row after are an update if their
times and strings are the same: these stand for the row's window and group. Where they do not tell the changed rows
apart, or a table has no such columns, every changed row is a delete or an insert.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as types

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
ROWS_AT_ONCE = 65_536
_COUNT = '"_commit_version"'
"""Column of how often a row is in the slice after the change, less how often it was before.

A query cannot give a column a name that begins with an underscore.
"""


@contextmanager
def comparisons(scratch: Path) -> Iterator["DuckDBPyConnection"]:
    """Make a connection for `row_changes`, which spills into the folder."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": MEMORY,
        "temp_directory": str(scratch),
    }
    with duckdb.connect(config=settings) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def row_changes(
    connection: "DuckDBPyConnection", before: Iterable[pa.RecordBatch], after: Iterable[pa.RecordBatch], rows: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that differ, with CHANGE_TYPE; in order, an updated row directly before its new version.

    All batches have the schema `rows`. They are read once, one at a time. Equal slices give equal batches.
    """
    connection.register("before", pa.RecordBatchReader.from_batches(rows, before))
    connection.register("after", pa.RecordBatchReader.from_batches(rows, after))
    for batch in connection.sql(_sql(rows)).to_arrow_reader(ROWS_AT_ONCE):
        yield batch.cast(changed_schema(rows))


def changed_schema(rows: pa.Schema) -> pa.Schema:
    """Return the schema of changed rows."""
    return rows.append(pa.field(CHANGE_TYPE, pa.string(), nullable=False))


def identity(rows: pa.Schema) -> list[str]:
    """Return the columns that identify a row: its times and strings, which stand for its window and group."""
    times = [column.name for column in rows if types.is_timestamp(column.type)]
    return times + [column.name for column in rows if types.is_string(column.type)]


def _sql(rows: pa.Schema) -> str:
    columns, keys = ", ".join(map(_quoted, rows.names)), ", ".join(map(_quoted, identity(rows)))
    same_key = f"OVER (PARTITION BY {keys})"
    is_update = f"count(*) {same_key} = 2 AND sum({_COUNT}) {same_key} = 0" if keys else "false"
    order = ", ".join([*filter(None, [keys]), _COUNT, columns])
    return f"""
        WITH counted AS (
            SELECT {columns}, sum({_COUNT})::BIGINT AS {_COUNT}
            FROM (SELECT *, -1 AS {_COUNT} FROM before UNION ALL SELECT *, 1 AS {_COUNT} FROM after)
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
