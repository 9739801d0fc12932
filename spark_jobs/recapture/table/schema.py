"""Decide which columns a Delta table gains, so that a query's rows can be published to it.

A table gains the columns that are new, and keeps those that the rows no longer have. Readers of Delta show NULL for a
column that a file lacks. Nothing else about a table changes: Delta renames and drops columns only in tables that map
them, and widens types only with the table feature typeWidening, which delta-rs and many readers do not know.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from recapture.errors import DefinitionError

SLICE_COLUMN = "slice_start"
"""Name of the partition column."""
_GENERATED = "delta.generationExpression"
_WAYS_OUT = (
    "give a changed column another name in the query, publish to another table (output.table), or start the "
    "pipeline's tables anew (docs/changes.md, What is refused)"
)


def partition_values(slice_start: str) -> dict[str, str]:
    """Return the values of a slice's partition columns, as Delta writes them: a timestamp is 2026-03-01 10:00:00."""
    return {SLICE_COLUMN: slice_start.replace("T", " ").removesuffix("Z")}


def schema_of(rows: pa.Schema) -> Schema:
    """Return the schema of a new table for rows with these columns: they may all be NULL, and slice_start is last."""
    nullable = [column.with_nullable(True) for column in rows]
    return Schema.from_arrow(pa.schema([*nullable, pa.field(SLICE_COLUMN, pa.timestamp("us", tz="UTC"))]))


def new_columns(delta: DeltaTable, rows: pa.Schema, url: str) -> list[Field]:
    """Return the columns that a table has to gain before rows are published to it, in the order of the rows.

    `rows` are the columns without slice_start. Raise DefinitionError, which lists every obstacle, if Delta cannot hold
    them next to what the table holds.
    """
    metadata = delta.metadata()
    is_mapped = metadata.configuration.get("delta.columnMapping.mode", "none").lower() != "none"
    problems = [*obstacles(delta.schema(), metadata.partition_columns, rows, is_mapped=is_mapped)]
    if problems:
        raise DefinitionError(f"the rows do not fit the columns of table {url}: {'; '.join(problems)}: {_WAYS_OUT}")
    return added(delta.schema(), rows)


def added(table: Schema, rows: pa.Schema) -> list[Field]:
    """Return the columns of rows that a table lacks."""
    names = {column.name for column in table.fields}
    return [column for column in schema_of(rows).fields if column.name not in names]


def obstacles(table: Schema, partition: Sequence[str], rows: pa.Schema, *, is_mapped: bool = False) -> Iterator[str]:
    """Yield why a table cannot gain the columns of rows or hold NULL in its others; nothing if it can.

    `partition` are the table's partition columns. `is_mapped` says whether the table maps columns to other names in the
    files.
    """
    if [*partition] != [SLICE_COLUMN]:
        yield f"the table is partitioned by {', '.join(partition) or 'nothing'}, not by {SLICE_COLUMN}"
    present = {column.name: column for column in table.fields}
    spelt = {name.lower(): name for name in present}
    expected = schema_of(rows).fields
    for column in expected:
        other = spelt.get(column.name.lower(), column.name)
        if other != column.name:
            yield f"{column.name} is {other} in the table, and Delta ignores letter case: write {other} in the query"
        elif column.name in present and _type(present[column.name]) != _type(column):
            yield f"{column.name} is {_type(present[column.name])} in the table and {_type(column)} in the rows"
    names = {column.name for column in expected}
    for column in table.fields:
        if not column.nullable and column.name != SLICE_COLUMN:
            yield f"{column.name} is NOT NULL in the table, but rows may have no value: drop this constraint"
        if column.name not in names and _GENERATED in column.metadata:
            yield f"{column.name} is generated from other columns, but the rows have no such column"
    if is_mapped and (missing := added(table, rows)):
        names_missing = ", ".join(column.name for column in missing)
        yield f"the table maps its columns (delta.columnMapping.mode), so Recapture cannot add {names_missing}"


def _type(column: Field) -> str:
    return column.type.type if isinstance(column.type, PrimitiveType) else str(column.type)
