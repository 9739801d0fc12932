"""DuckDB, which parses bodies and lines: queries on Arrow columns, and the SQL of names and literals."""

import atexit
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


@cache
def duckdb_connection() -> "DuckDBPyConnection":
    """Return this process's connection. It uses one thread, because Spark gives every task its own core."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    return connection


def select(columns: dict[str, pa.Array], query: str) -> pa.Table:
    """Return the result of a query on the relation `bodies`, which has these columns.

    One thread of a process may call it at a time.
    """
    table = pa.table(columns)
    bodies, relation = _relation(query, table.schema)
    bodies.table = table
    try:
        return relation.to_arrow_table()
    finally:
        bodies.table = None


class _Bodies:
    """The rows of the relation `bodies`, other ones for every run of a query."""

    table: pa.Table | None = None

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)


@lru_cache(256)
def _relation(query: str, schema: pa.Schema) -> "tuple[_Bodies, DuckDBPyRelation]":
    """Return a query and what it reads. DuckDB takes half the time if it gets them once, and not for every run."""
    bodies = _Bodies(schema)  # DuckDB finds it by its name
    relation = duckdb_connection().sql(query)
    assert relation is not None
    return bodies, relation


atexit.register(_relation.cache_clear)  # DuckDB complains of objects that are left


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
