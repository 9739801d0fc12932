"""The DuckDB query that reads columns of JSON bodies."""

import contextlib
import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from recapture.formats.duckdb_sql import literal, pointer, select
from recapture.formats.json_bodies.kinds import asa_kind
from recapture.model import AsaType, InputColumn

DUCKDB_TYPES = {
    AsaType.BIGINT: "VARCHAR",
    AsaType.FLOAT: "DOUBLE",
    AsaType.STRING: "VARCHAR",
    AsaType.DATETIME: "VARCHAR",
    AsaType.BIT: "JSON",
    AsaType.RECORD: "JSON",
    AsaType.ARRAY: "JSON",
}
"""Type as which DuckDB reads a column that is not strict."""
_READ_AS_JSON = (AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING)
"""Types of strict columns that are read as JSON, because DuckDB converts to them."""


def read_columns(documents: pa.Array, columns: tuple[InputColumn, ...], strict: frozenset[InputColumn]) -> pa.Table:
    """Return c0, c1, … and `valid` (whether a body is JSON), all bodies at once if none of them is bad.

    A string is not converted to the type of a `strict` column.
    """
    import duckdb

    if any(not column.is_kind for column in columns):
        # DuckDB's message quotes the start of a bad body. If that ends within a character, Python cannot decode it.
        with contextlib.suppress(duckdb.InvalidInputException, UnicodeDecodeError):
            return select({"body": documents}, _reading(columns, strict, "body"))
    return select({"body": documents}, _reading(columns, strict, "CASE WHEN json_valid(body) THEN body END"))


@lru_cache(256)
def _reading(columns: tuple[InputColumn, ...], strict: frozenset[InputColumn], json_body: str) -> str:
    """Return the SQL that reads c0, c1, … and `valid` (whether `json_body` is not NULL) from `body`.

    A number is read as a string if it is not strict. A strict number or string is read as JSON, with its quotation
    marks.
    """
    groups = list(_without_clashes(column for column in columns if not column.is_kind))
    transforms = "".join(
        f", json_transform(json, {literal(json.dumps(_structure(group, strict)))}) AS g{index}"
        for index, group in enumerate(groups)
    )
    fields = {
        column: "".join(["struct_extract("] * len(column.path))
        + f"g{index}"
        + "".join(f", {literal(step)})" for step in column.path)
        for index, group in enumerate(groups)
        for column in group
    }
    fields |= {
        column: f"try_cast({field}::VARCHAR AS DOUBLE)"
        for column, field in fields.items()
        if column in strict and column.type is AsaType.FLOAT
    }
    fields |= {column: asa_kind(f"json_type(json, {pointer(column.path)})") for column in columns if column.is_kind}
    selected = "".join(f", {fields[column]} AS c{index}" for index, column in enumerate(columns))
    read = f"SELECT json{transforms} FROM (SELECT {json_body} AS json FROM bodies)"
    return f"SELECT json IS NOT NULL AS valid{selected} FROM ({read})"


def _without_clashes(columns: Iterable[InputColumn]) -> Iterable[list[InputColumn]]:
    """Return the columns in groups. In a group no column is part of another, and no two differ only in case."""
    groups: list[list[InputColumn]] = []
    for column in columns:
        group = next((group for group in groups if not any(_clash(column, other) for other in group)), None)
        if group is None:
            groups.append([column])
        else:
            group.append(column)
    return groups


def _clash(left: InputColumn, right: InputColumn) -> bool:
    for left_step, right_step in zip(left.path, right.path, strict=False):
        if left_step != right_step:
            return left_step.casefold() == right_step.casefold()
    return True


def _structure(columns: list[InputColumn], strict: Collection[InputColumn]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for column in columns:
        record = root
        for step in column.path[:-1]:
            record = record.setdefault(step, {})
        is_json = column in strict and column.type in _READ_AS_JSON
        record[column.path[-1]] = "JSON" if is_json else DUCKDB_TYPES[column.type]
    return root
