"""DuckDB, which parses bodies and lines: queries on Arrow columns, and the SQL of names and literals."""

import atexit
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Statement

_FEW = 64
"""Largest number of rows that run with a plan that is kept. Their results become Python objects, then Arrow's."""


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
    return _query(query, table.schema).result(table)


class _Bodies:
    """The rows of the relation `bodies`, other ones for every run of a query."""

    table: pa.Table | None = None

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)


class _Query:
    """A query and what it reads. DuckDB takes half the time if it prepares them once, and not for every run.

    Planning a query takes longer than running it on few rows. From the second run on, the plan for few rows is kept.
    """

    schema: pa.Schema | None = None
    """Schema of the results, once it is known."""
    execute: "Statement | None" = None
    """Statement that runs the plan, if it is kept."""

    def __init__(self, query: str, schema: pa.Schema) -> None:
        self.query, self.bodies = query, _Bodies(schema)
        self.relation = _relation(query, self.bodies)

    def result(self, table: pa.Table) -> pa.Table:
        """Return the result for these rows."""
        self.bodies.table = table
        try:
            if self.schema is not None and len(table) <= _FEW:
                return self._result_of_few(self.schema)
            result: pa.Table = self.relation.to_arrow_table()
        finally:
            self.bodies.table = None
        self.schema = result.schema
        return result

    def _result_of_few(self, schema: pa.Schema) -> pa.Table:
        self.execute = self.execute or self._prepared(self.bodies)
        rows = duckdb_connection().execute(self.execute).fetchall()
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _prepared(self, bodies: _Bodies) -> "Statement":
        """Let DuckDB plan the query, which finds `bodies` by this name, and return what runs the plan."""
        connection = duckdb_connection()
        connection.execute(f"PREPARE {self._name} AS {self.query}")
        (execute,) = connection.extract_statements(f"EXECUTE {self._name}")
        return execute

    @property
    def _name(self) -> str:
        return f"query_{id(self)}"

    def __del__(self) -> None:
        if self.execute is not None:
            duckdb_connection().execute(f"DEALLOCATE {self._name}")


def _relation(query: str, bodies: _Bodies) -> "DuckDBPyRelation":
    """Give DuckDB a query, which finds `bodies` by this name."""
    relation = duckdb_connection().sql(query)
    assert relation is not None
    return relation


_query = lru_cache(256)(_Query)
atexit.register(_query.cache_clear)  # DuckDB complains of objects that are left


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
