"""JSON bodies as typed columns, as far as the query reads them; a bad body does not affect the others.

DuckDB parses them: it is the fastest of the parsers measured (benchmarks/), and gives NULL for a value that it cannot
read instead of failing the column. A second look finds the values that are NULL but are not null in the body: the
event is malformed, because ASA drops an event if a field cannot be converted on input.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.model import TYPES, AsaType, InputColumn
from recapture.time_model import timestamps

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Bodies:
    """The columns of some bodies; every array has one entry per body."""

    columns: dict[InputColumn, pa.Array]
    """Values of the columns, in the types of the view."""
    texts: dict[InputColumn, pa.Array]
    """Text of the fields that the policies judge; NULL if a body lacks the field."""
    malformed: pa.Array
    """Reason why a body cannot be used (string), or NULL."""


def parse(bodies: pa.Array, columns: Collection[InputColumn], judged: Collection[InputColumn] = ()) -> Bodies:
    """Read `columns`, and the texts of `judged`, from JSON bodies (binary).

    A value in `judged` does not make a body malformed: the policies decide about it.
    """
    text, malformed = _text(bodies)
    inner = tuple(column for column in dict.fromkeys([*columns, *judged]) if column.path)
    read = select({"body": text}, _reading(inner))

    kind = whole(read["kind"])
    malformed = _first(malformed, pc.if_else(pc.is_valid(kind), None, "not JSON"))
    malformed = _first(malformed, pc.if_else(pc.equal(kind, "OBJECT"), None, "not a JSON object"))
    raw = {column: whole(read[f"c{index}"]) for index, column in enumerate(inner)}
    converted: dict[InputColumn, pa.Array] = {}
    for column in columns:
        if not column.path:
            converted[column] = pc.if_else(pc.is_null(malformed), text, None)
            continue
        values = converted[column] = _convert(raw[column], column.type)
        if column.type is not AsaType.TEXT and column not in judged:
            malformed = _first(malformed, _unconverted(text, values, column))
    return Bodies(converted, {column: raw[column] for column in judged}, malformed)


@cache
def duckdb_connection() -> "DuckDBPyConnection":
    """Return this process's connection. It uses one thread, because Spark gives every task its own core."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    return connection


def select(columns: dict[str, pa.Array], query: str) -> pa.Table:
    """Return the result of a query on the relation `bodies`, which has these columns."""
    relation = duckdb_connection().from_arrow(pa.table(columns)).query("bodies", query)
    assert relation is not None
    return relation.to_arrow_table()


def _text(bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the bodies as text, and the reasons why some are not; NULL is not text."""
    malformed = pc.if_else(pc.is_valid(bodies), pa.scalar(None, pa.string()), "no body")
    text = utf8(bodies)
    return text, _first(malformed, pc.if_else(pc.is_valid(text), None, "not UTF-8"))


def utf8(values: pa.Array) -> pa.Array:
    """Return bytes (binary) as text; NULL if they are not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return whole(select({"value": values}, "SELECT try(decode(value)) AS value FROM bodies")["value"])


@cache
def _reading(columns: tuple[InputColumn, ...]) -> str:
    """Return the SQL that reads c0, c1, … and `kind` (the JSON type; NULL if it is not JSON) from `body`."""
    groups = list(_without_clashes(columns))
    transforms = ", ".join(
        f"json_transform(json, {literal(json.dumps(_structure(group)))}) AS g{index}"
        for index, group in enumerate(groups)
    )
    fields = {
        column: "".join(["struct_extract("] * len(column.path))
        + f"g{index}"
        + "".join(f", {literal(step)})" for step in column.path)
        for index, group in enumerate(groups)
        for column in group
    }
    selected = "".join(f", {fields[column]} AS c{index}" for index, column in enumerate(columns))
    checked = "SELECT CASE WHEN json_valid(body) THEN body END AS json FROM bodies"
    read = f"SELECT json_type(json) AS kind{', ' if transforms else ''}{transforms} FROM ({checked})"
    return f"SELECT kind{selected} FROM ({read})"


def _without_clashes(columns: Iterable[InputColumn]) -> Iterable[list[InputColumn]]:
    """Return the columns in groups. In a group no column is part of another, and no two differ only in letter case."""
    groups: list[list[InputColumn]] = []
    for column in columns:
        group = next((group for group in groups if not any(_clash(column, other) for other in group)), None)
        if group is None:
            groups.append([column])
        else:
            group.append(column)
    return groups


def _clash(one: InputColumn, other: InputColumn) -> bool:
    for step, other_step in zip(one.path, other.path, strict=False):
        if step != other_step:
            return step.casefold() == other_step.casefold()
    return True


def _structure(columns: list[InputColumn]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for column in columns:
        record = root
        for step in column.path[:-1]:
            record = record.setdefault(step, {})
        record[column.path[-1]] = TYPES[column.type].duckdb
    return root


def _convert(values: pa.Array, to: AsaType) -> pa.Array:
    """Return the values in a type; NULL if a value is not of that type."""
    match to:
        case AsaType.BIGINT:
            whole = pc.if_else(pc.match_substring_regex(values, r"^-?\d{1,18}$"), values, None)
            exact = whole.cast(pa.int64())
            longer = pc.and_(pc.is_null(exact), pc.match_substring_regex(values, r"^-?\d{19}$"))
            return _long_integers(values, exact) if pc.any(longer).as_py() else exact
        case AsaType.FLOAT:
            return pc.if_else(pc.is_finite(values), values, None)
        case AsaType.DATETIME:
            ticks, valid = timestamps.parse(values)
            return pa.array(ticks, mask=~valid)
        case AsaType.RECORD | AsaType.ARRAY:
            opening = "{" if to is AsaType.RECORD else "["
            return pc.if_else(pc.starts_with(values, opening), values, None).cast(pa.string())
    return values


def _long_integers(values: pa.Array, exact: pa.Array) -> pa.Array:
    integer = "CASE WHEN regexp_full_match(value, '-?[0-9]+') THEN try_cast(value AS BIGINT) END"
    return pc.coalesce(exact, whole(select({"value": values}, f"SELECT {integer} AS value FROM bodies")["value"]))


def _unconverted(text: pa.Array, values: pa.Array, column: InputColumn) -> pa.Array:
    """Return `COLUMN is not a TYPE` if the body has a value that is not null and the column has none; else NULL."""
    suspects = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(text)))
    reasons = pa.nulls(len(values), pa.string())
    if not len(suspects):
        return reasons
    records = [column.path[:depth] for depth in range(1, len(column.path))]
    steps = (f"json_type(body, {pointer(record)}) = 'OBJECT'" for record in records)
    readable = " AND ".join(["json_valid(body)", *steps])
    kind = f"CASE WHEN {readable} THEN json_type(body, {pointer(column.path)}) END"
    kinds = select({"body": text.take(suspects)}, f"SELECT {kind} AS kind FROM bodies")["kind"]
    present = pc.fill_null(pc.not_equal(whole(kinds), "NULL"), False)
    wrong = suspects.filter(present)
    if not len(wrong):
        return reasons
    mask = pc.is_in(pa.array(range(len(values)), pa.uint64()), value_set=wrong.cast(pa.uint64()))
    article = "an" if column.type is AsaType.ARRAY else "a"
    return pc.if_else(mask, f"{column.name} is not {article} {column.type}", reasons)


def pointer(path: Sequence[str]) -> str:
    """Return a path as a JSON pointer, as a literal of SQL; a number also steps into arrays."""
    return literal("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path))


def _first(reasons: pa.Array, later: pa.Array) -> pa.Array:
    """Return the first reason of every body."""
    return pc.coalesce(reasons, later.cast(pa.string()))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    together = column.combine_chunks()
    return together if isinstance(together, pa.Array) else pa.concat_arrays(together.chunks)


def literal(text: str) -> str:
    """Return a text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier of DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'
