"""How two sets of rows differ, found by DuckDB: rows on one side only, changed rows, and columns.

Rows that are equal in every column that both sides have cancel each other out, as often as they are on both sides. NULL
equals NULL, NaN equals NaN, and 0.0 equals -0.0. Of the rows that remain, a row on either side is one changed row if no
others have its key (`table.row_changes`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recapture.table.row_changes import COUNT, IS_UPDATE, differing_rows, parts_of, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row = Mapping[str, Any]
"""Values of a row by column."""
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_NUMBERS = (*_INTEGERS, "FLOAT", "DOUBLE")
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class ColumnTypes:
    """A column that only one side has, or that has other types on the two sides."""

    name: str
    before: str | None
    """Type before; None if only the rows after have the column."""
    after: str | None
    """Type after; None if only the rows before have the column."""
    compared: bool
    """Whether its values are compared: both types are numbers."""


@dataclass
class ColumnChanges:
    """How the values of a column changed. A number that is not finite has no difference, and is in no sum."""

    changed: int = 0
    """Changed rows that have another value in this column."""
    measured: int = 0
    """Changed values whose difference is a number."""
    largest: float | None = None
    """Largest difference, without its sign; seconds for times."""
    total: float = 0
    """Sum of the differences, without their signs."""
    sum_before: float | None = None
    """Sum of the values of all rows before; None if they are not numbers, or if it is not finite."""
    sum_after: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean difference of the changed values, without its sign; seconds for times; None if there is none."""
        mean = self.total / self.measured if self.measured else None
        return mean if _is_number(mean) else None

    def add(self, other: "ColumnChanges") -> None:
        """Add the changes in other rows."""
        self.changed += other.changed
        self.measured += other.measured
        self.total += other.total
        self.largest = max((value for value in (self.largest, other.largest) if value is not None), default=None)
        self.sum_before = _added(self.sum_before, other.sum_before)
        self.sum_after = _added(self.sum_after, other.sum_after)


@dataclass
class RowDifference:
    """How the rows of two sides differ."""

    before: int
    """Number of the rows before."""
    after: int
    """Number of the rows after."""
    only_before: int = 0
    only_after: int = 0
    changed: int = 0
    """Number of pairs of a row before and a row after with the same key and other values."""
    types: list[ColumnTypes] = field(default_factory=list)
    columns: dict[str, ColumnChanges] = field(default_factory=dict)
    """Changes of the compared columns, without those of the key; empty if no row differs."""
    pairs: list[tuple[Row, Row]] = field(default_factory=list)
    """The first changed rows, before and after."""
    unpaired: list[tuple[Row | None, Row | None]] = field(default_factory=list)
    """The first rows that only one side has: None for the other side."""

    @property
    def is_empty(self) -> bool:
        """Whether the rows are equal and have the same columns."""
        return not (self.only_before or self.only_after or self.changed or self.types)


@dataclass(frozen=True)
class _Column:
    """A column that is compared."""

    name: str
    type: str
    """Type in which both sides are compared."""

    @property
    def is_integer(self) -> bool:
        return self.type in _INTEGERS

    @property
    def is_number(self) -> bool:
        return self.type in _NUMBERS or self.type.startswith("DECIMAL")

    @property
    def measure(self) -> str | None:
        """Pattern of a value as a number whose difference can be taken; None if there is none."""
        if self.is_integer:
            return "{}::HUGEINT"
        if self.is_number:
            return "{}::DOUBLE"
        return "epoch_us({})" if self.type.startswith("TIMESTAMP") else None


def row_difference(
    connection: "DuckDBPyConnection", before: str, after: str, key: Sequence[str], limit: int
) -> RowDifference:
    """Return how the rows of two SQL queries differ, with at most `limit` rows of each kind.

    `key` are the columns that identify a row, if both sides have them. Names of columns are compared without regard to
    case.
    """
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_before AS {before}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW all_after AS {after}")
    old, new = (_types(connection, name) for name in ("all_before", "all_after"))
    columns, types = _compared(old, new)
    before_count, after_count = (
        _row(connection, f"SELECT count(*) FROM {name}")[0] for name in ("all_before", "all_after")
    )
    difference = RowDifference(before_count, after_count, types=types)
    if not columns:
        difference.only_before, difference.only_after = before_count, after_count
        return difference
    for name in ("before", "after"):
        selected = ", ".join(
            f"CAST({quoted(column.name)} AS {column.type}) AS {quoted(column.name)}" for column in columns
        )
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {selected} FROM all_{name}")
    keyed = {name.lower() for name in key}
    keys = [column for column in columns if column.name.lower() in keyed]
    others = [column for column in columns if column not in keys]
    parts = parts_of(before_count + after_count)
    for part in range(parts):
        _add_part(connection, difference, keys, others, part, parts, limit)
    if difference.only_before or difference.only_after or difference.changed:
        _add_sums(connection, difference, others)
    return difference


def _types(connection: "DuckDBPyConnection", view: str) -> dict[str, tuple[str, str]]:
    """Return name and type of the columns of a view, by the name in lower case."""
    described = connection.sql(f"DESCRIBE {view}").fetchall()
    return {name.lower(): (name, kind) for name, kind, *_ in described}


def _compared(
    old: Mapping[str, tuple[str, str]], new: Mapping[str, tuple[str, str]]
) -> tuple[list[_Column], list[ColumnTypes]]:
    """Return the columns that are compared, in the order of the rows after, and those that differ."""
    columns, differing = [], []
    for key, (name, after) in new.items():
        before = old[key][1] if key in old else None
        common = after if before == after else None
        if before is not None and before != after and before in _NUMBERS and after in _NUMBERS:
            common = "HUGEINT" if before in _INTEGERS and after in _INTEGERS else "DOUBLE"
        if common is not None:
            columns.append(_Column(name, common))
        if before != after:
            differing.append(ColumnTypes(name, before, after, common is not None))
    gone = (value for key, value in old.items() if key not in new)
    return columns, differing + [ColumnTypes(name, before, None, compared=False) for name, before in gone]


def _add_part(
    connection: "DuckDBPyConnection",
    difference: RowDifference,
    keys: Sequence[_Column],
    others: Sequence[_Column],
    part: int,
    parts: int,
    limit: int,
) -> None:
    """Add the differences in a part of the rows."""
    columns = [*keys, *others]
    query = differing_rows([column.name for column in columns], [column.name for column in keys], part, parts)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE differing AS {query}")
    counts = _row(
        connection,
        f"SELECT count(*) FILTER ({IS_UPDATE} AND {COUNT} < 0), count(*) FILTER (NOT {IS_UPDATE} AND {COUNT} < 0), "
        f"count(*) FILTER (NOT {IS_UPDATE} AND {COUNT} > 0) FROM differing",
    )
    changed, only_before, only_after = counts
    difference.changed += changed
    difference.only_before += only_before
    difference.only_after += only_after
    if changed:
        _add_columns(connection, difference, keys, others)
        missing = limit - len(difference.pairs)
        difference.pairs += _pairs(connection, keys, others, missing) if missing > 0 else []
    missing = limit - len(difference.unpaired)
    if (only_before or only_after) and missing > 0:
        difference.unpaired += _unpaired(connection, columns, missing)
    connection.execute("DROP TABLE differing")


def _joined(keys: Sequence[_Column]) -> str:
    """Return the FROM clause of the changed rows, `b` before and `a` after."""
    same = " AND ".join(f"b.{quoted(key.name)} IS NOT DISTINCT FROM a.{quoted(key.name)}" for key in keys)
    updated = f"FROM differing WHERE {IS_UPDATE} AND {COUNT}"
    return f"({updated} < 0) AS b JOIN ({updated} > 0) AS a ON {same}"


def _add_columns(
    connection: "DuckDBPyConnection", difference: RowDifference, keys: Sequence[_Column], others: Sequence[_Column]
) -> None:
    """Add how the values of each column changed in the changed rows."""
    selected = []
    for column in others:
        before, after = f"b.{quoted(column.name)}", f"a.{quoted(column.name)}"
        differs = f"{before} IS DISTINCT FROM {after}"
        distance = "NULL::BIGINT"
        if column.measure is not None:
            measured = f"abs({column.measure.format(after)} - {column.measure.format(before)})"
            distance = measured if column.is_integer else f"nullif(least({measured}, 'inf'::DOUBLE), 'inf'::DOUBLE)"
        selected += [
            f"count(*) FILTER ({differs})",
            *(f"{function}({distance}) FILTER ({differs})" for function in ("count", "max", "sum")),
        ]
    values = iter(_row(connection, f"SELECT {', '.join(selected)} FROM {_joined(keys)}"))
    for column, changed, measured, largest, total in zip(others, *[values] * 4, strict=False):
        unit = _MICROSECONDS if column.type.startswith("TIMESTAMP") else 1
        divided = None if largest is None else largest if unit == 1 else largest / unit
        changes = ColumnChanges(changed, measured, divided, (total or 0) if unit == 1 else (total or 0) / unit)
        difference.columns.setdefault(column.name, ColumnChanges()).add(changes)


def _add_sums(connection: "DuckDBPyConnection", difference: RowDifference, others: Sequence[_Column]) -> None:
    """Add the sums of the numbers of all rows."""
    for column in others:
        difference.columns.setdefault(column.name, ColumnChanges())
    numbers = [column for column in others if column.is_number]
    if not numbers:
        return
    for side in ("before", "after"):
        sums = ", ".join(map(_sum, numbers))
        for column, value in zip(numbers, _row(connection, f"SELECT {sums} FROM {side}"), strict=True):
            if value is None or _is_number(value):
                setattr(difference.columns[column.name], f"sum_{side}", value or 0)


def _sum(column: _Column) -> str:
    name = quoted(column.name)
    return f"sum({name}::HUGEINT)" if column.is_integer else f"fsum({name}::DOUBLE) FILTER (isfinite({name}::DOUBLE))"


def _pairs(
    connection: "DuckDBPyConnection", keys: Sequence[_Column], others: Sequence[_Column], limit: int
) -> list[tuple[Row, Row]]:
    """Return the first changed rows, in the order of their keys."""
    columns = [*keys, *others]
    both = ", ".join(f"{side}.{quoted(column.name)}" for side in ("b", "a") for column in columns)
    order = ", ".join(f"b.{quoted(key.name)}" for key in keys)
    rows = _rows(connection, f"SELECT {both} FROM {_joined(keys)} ORDER BY {order} LIMIT {limit}")
    names = [column.name for column in columns]
    return [
        (dict(zip(names, row[: len(names)], strict=True)), dict(zip(names, row[len(names) :], strict=True)))
        for row in rows
    ]


def _unpaired(
    connection: "DuckDBPyConnection", columns: Sequence[_Column], limit: int
) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the first rows that one side has, in the order of their keys."""
    names = ", ".join(quoted(column.name) for column in columns)
    query = f"SELECT {names}, {COUNT} FROM differing WHERE NOT {IS_UPDATE} ORDER BY {names}, {COUNT} LIMIT {limit}"
    for *values, count in _rows(connection, query):
        row = dict(zip((column.name for column in columns), values, strict=True))
        yield (row, None) if count < 0 else (None, row)


def _rows(connection: "DuckDBPyConnection", query: str) -> Iterator[list[Any]]:
    """Yield the rows of a query; instants are in UTC."""
    table = connection.sql(query).to_arrow_table()
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield [value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value for value in values]


def _row(connection: "DuckDBPyConnection", query: str) -> tuple[Any, ...]:
    (row,) = connection.sql(query).fetchall()
    return row


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _added(left: float | None, right: float | None) -> float | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right
