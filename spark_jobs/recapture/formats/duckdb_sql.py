"""DuckDB, which parses bodies and lines: queries on Arrow columns, and the SQL of names and literals."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@cache
def duckdb_connection() -> "DuckDBPyConnection":
    """Return this process's connection. It uses one thread, because Spark gives every task its own core."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    return connection


def select(columns: dict[str, pa.Array], query: str) -> pa.Table:
    """Return the result of a query on the relation `bodies`, which has these columns."""
    connection = duckdb_connection()
    connection.register("bodies", pa.table(columns))  # 2 ms less than a relation's query
    try:
        return connection.sql(query).to_arrow_table()
    finally:
        connection.unregister("bodies")


def utf8(values: pa.Array) -> pa.Array:
    """Return bytes (binary) as strings; NULL if they are not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return one_array(select({"value": values}, "SELECT try(decode(value)) AS value FROM bodies")["value"])


def pointer(path: Sequence[str]) -> str:
    """Return a path as a JSON pointer, as a literal of SQL; a number also steps into arrays."""
    return literal("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path))


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array. A column of one array is not copied."""
    if column.num_chunks == 1:
        return column.chunk(0)
    together = column.combine_chunks()
    return together if isinstance(together, pa.Array) else pa.concat_arrays(together.chunks)


def literal(string: str) -> str:
    """Return a string as a literal of DuckDB's SQL."""
    return "'" + string.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier of DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'
