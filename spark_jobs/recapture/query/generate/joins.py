"""JOIN in Spark SQL (docs/time-model.md, section 4.4).

The view repeats an event for every slice that needs it, so every join is within a slice. Spark cannot join by time
bounds: it would compare every pair of rows whose other keys are equal. So time is divided into buckets, each as long as
the range of the bounds. A row of the left side is in one bucket. A row of the right side is in the two that hold its
possible matches. Every join is a sort-merge join, which spills to disk: the rows of one key may not fit into memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from recapture.query.generate.analytics import ROW, Analytics
from recapture.query.generate.grouping import SLICE_BOUNDS, UNANCHORED
from recapture.query.generate.select_items import SqlItem, column, columns, select_list
from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import quoted_name
from recapture.query.plan import expressions
from recapture.query.plan.expressions import Expr
from recapture.time_model.joins import TimeRange
from recapture.time_model.windows import JoinedSide, Reach

_TIME = "_system_timestamp"
_ARRIVAL = "_arrival"
_PARTITION = "_partition"
VALIDITY = ("_valid_from", "_valid_until")
"""Columns of reference data that bound the System.Timestamps for which a row is in force."""


def side_column(number: int, name: str) -> str:
    """Return the name of a side's column in the joined rows: 1, "x" => 1.x"""
    return f"{number}.{name}"


def side_time(number: int) -> Expr:
    """Return the System.Timestamp of a side's row: 1 => 1._system_timestamp"""
    return expressions.column(side_column(number, _TIME))


@dataclass(frozen=True)
class Side:
    """A relation of a JOIN."""

    table: str
    unanchored: bool
    """Whether `table` has the column `_unanchored`."""
    columns: tuple[str, ...]
    is_reference: bool = False
    analytics: Analytics | None = None
    """Analytic functions over its rows, before they are joined."""

    @property
    def analytic_look_back(self) -> int:
        """How long before a row its analytic functions look; ticks."""
        return self.analytics.look_back if self.analytics else 0


@dataclass(frozen=True)
class Join:
    """One JOIN: how the next side is joined to the rows of the sides before it."""

    condition: Expr
    """ON with its time bounds, over the columns of the sides."""
    range: TimeRange
    """Range in which the new side's rows lie."""
    latest_match: Expr | None
    """Latest time at which a match could occur, over the columns of the sides; None for an inner join."""


@dataclass(frozen=True)
class Lookup:
    """One JOIN with reference data: each row gets the rows that are in force at its System.Timestamp."""

    condition: Expr
    """ON, over the columns of the sides."""
    outer: bool
    """Whether a row without a match stays."""


@dataclass(frozen=True)
class JoinedTable:
    """A common table expression: the rows of the JOINs of a FROM.

    It has the columns of the view that the generator adds to rows, and the columns of each side under their names after
    the side's number, such as `0.x`.
    """

    name: str
    sides: tuple[Side, ...]
    joins: tuple[Join | Lookup, ...]
    """How each side after the first is joined."""
    look_backs: tuple[int, ...]
    """How long before a joined row's System.Timestamp the rows of each side may lie; ticks."""
    has_row_column: bool
    """Whether the rows of the first side have the column `_row`, and so the joined rows."""

    @property
    def unanchored(self) -> bool:
        """Whether its rows have the column `_unanchored`."""
        return any(side.unanchored for side in self.sides)

    @property
    def windows(self) -> tuple[JoinedSide, ...]:
        """Its sides with events, in place of windows."""
        return tuple(joined for _, joined in self._streams)

    @property
    def _streams(self) -> Iterator[tuple[Side, JoinedSide]]:
        for side, look_back in zip(self.sides, self.look_backs, strict=True):
            if not side.is_reference:
                yield side, JoinedSide(look_back)

    def reads(self, extra_look_back: int) -> Iterator[tuple[str, Reach]]:
        """Yield each table that it reads, and the reach of its rows."""
        for side, joined_side in self._streams:
            yield side.table, Reach(joined_side, extra_look_back, side.analytic_look_back)

    @property
    def sources(self) -> list[str]:
        """Tables that its SQL reads."""
        return [side.table for side in self.sides]

    def sql(self, extra_look_back: int) -> str:
        """Return the statement that computes the rows after slice start - `extra_look_back` ticks.

        FROM s AS a JOIN s AS b ON … => SELECT …, `0.x`, `1.x` FROM (… JOIN … ON `0._slice_start` = …) WHERE …
        """
        rows = self._side(0, extra_look_back)
        for number, join in enumerate(self.joins, 1):
            match join:
                case Join():
                    rows = self._joined(rows, join, number, extra_look_back)
                case Lookup():
                    rows = self._looked_up(rows, join, number)
        last, arrivals = len(self.joins), self._each(_ARRIVAL)
        one_stream = len(arrivals) == 1
        system = [
            *(SqlItem(bound.name, _of_side(0, bound.name)) for bound in SLICE_BOUNDS),
            SqlItem(_PARTITION, _of_side(0, _PARTITION) if one_stream else "''"),
            SqlItem(_TIME, f"`{_row_time(last)}`"),
            SqlItem(_ARRIVAL, arrivals[0] if one_stream else f"greatest({', '.join(arrivals)})"),
        ]
        if self.unanchored:
            flags = (f"coalesce({flag}, FALSE)" for flag in self._each(UNANCHORED.name))
            system.append(SqlItem(UNANCHORED.name, reduce("({} OR {})".format, flags)))
        if self.has_row_column:
            system.append(SqlItem(ROW.name, _of_side(0, ROW.name)))
        names = [side_column(number, name) for number, side in enumerate(self.sides) for name in side.columns]
        return (
            f"SELECT {select_list([*system, *map(column, names)])}\nFROM (\n{rows}\n) AS `joined`\n"
            f"WHERE `{_row_time(last)}` > `0._slice_start` - {extra_look_back}L"
            f" AND `{_row_time(last)}` <= `0._slice_end`"
        )

    def _each(self, name: str) -> list[str]:
        """Return a column of all sides with events that have it."""
        return [
            _of_side(number, name)
            for number, side in enumerate(self.sides)
            if not side.is_reference and (name != UNANCHORED.name or side.unanchored)
        ]

    def _items(self, number: int) -> list[SqlItem]:
        """Return the columns of a side, under their names in the joined rows."""
        side = self.sides[number]
        if side.is_reference:
            return [SqlItem(side_column(number, name), quoted_name(name)) for name in side.columns]
        bounds = [*SLICE_BOUNDS, column(_PARTITION)] if number == 0 else SLICE_BOUNDS[:1]
        row = [ROW.name] if number == 0 and self.has_row_column else []
        system = [*(bound.name for bound in bounds), _TIME, _ARRIVAL, *row]
        flag = [UNANCHORED.name] if side.unanchored else []
        names = dict.fromkeys([*system, *flag, *side.columns])
        return [SqlItem(side_column(number, name), quoted_name(name)) for name in names]

    def _side(self, number: int, extra_look_back: int, *added: SqlItem) -> str:
        """Return the statement that reads a side, as far back as its look-back."""
        items = [*self._items(number), *added]
        if number == 0:
            items.append(SqlItem(_row_time(0), f"`{_TIME}`"))
        side, look_back = self.sides[number], extra_look_back + self.look_backs[number]
        rows = f"(\n{side.analytics.sql(side.table, look_back)}\n) AS `analysed`" if side.analytics else side.table
        return f"SELECT {select_list(items)}\nFROM {rows}\nWHERE `{_TIME}` > `_slice_start` - {look_back}L"

    def _joined(self, left: str, join: Join, number: int, extra_look_back: int) -> str:
        """Return the statement that joins a side to the rows of the sides before it."""
        bucket = SqlItem("_bucket", _buckets(join.range))
        items = [*(item for before in range(number) for item in columns(self._items(before))), *self._items(number)]
        row, other = f"`{_row_time(number - 1)}`", _of_side(number, _TIME)
        time = f"greatest({row}, {other})"
        if join.latest_match is not None:
            latest = f"greatest({row}, {render(join.latest_match)})"
            time = f"CASE WHEN {other} IS NULL THEN {latest} ELSE {time} END"
        selected = [*columns(items), SqlItem(_row_time(number), time)]
        kind = "JOIN" if join.latest_match is None else "LEFT JOIN"
        return (
            f"SELECT /*+ MERGE(`right`) */ {select_list(selected)}\nFROM (\n{left}\n) AS `left`\n"
            f"{kind} (\n{self._side(number, extra_look_back, bucket)}\n) AS `right`\n"
            f"ON `0._slice_start` = `{side_column(number, '_slice_start')}`"
            f" AND {_bucket(join.range)} = `_bucket` AND {render(join.condition)}"
        )

    def _looked_up(self, left: str, lookup: Lookup, number: int) -> str:
        """Return the statement that looks rows up in reference data. It keeps their order."""
        items = [*(item for before in range(number) for item in columns(self._items(before))), *self._items(number)]
        now = f"`{_row_time(number - 1)}`"
        time = SqlItem(_row_time(number), now)
        validity = [SqlItem(side_column(number, name), quoted_name(name)) for name in VALIDITY]
        first, last = (_of_side(number, name) for name in VALIDITY)
        return (
            f"SELECT /*+ BROADCAST(`right`) */ {select_list([*columns(items), time])}\nFROM (\n{left}\n) AS `left`\n"
            f"{'LEFT JOIN' if lookup.outer else 'JOIN'} (\n"
            f"SELECT {select_list([*validity, *self._items(number)])}\nFROM {self.sides[number].table}\n) AS `right`\n"
            f"ON {now} >= {first} AND {now} < {last} AND {render(lookup.condition)}"
        )


def _row_time(number: int) -> str:
    """Return the name of the column with the System.Timestamp of the rows of the sides up to a number."""
    return f"_system_timestamp {number}"


def _of_side(number: int, name: str) -> str:
    return quoted_name(side_column(number, name))


def _bucket(range: TimeRange) -> str:
    """Return the bucket of a row of the left side; the time itself if the range has no length."""
    time, width = _of_side(range.side, _TIME), range.high - range.low
    return f"{time} div {width}L" if width > 0 else time


def _buckets(range: TimeRange) -> str:
    """Return the buckets in which a row of the right side may have matches.

    TimeRange(0, 0, 5) => explode(array((`_system_timestamp` - 5) div 5, (`_system_timestamp` - 5) div 5 + 1))
    """
    time, width = f"`{_TIME}`", range.high - range.low
    if width <= 0:
        return f"{time} - ({range.low}L)"
    first = f"({time} - ({range.high}L)) div {width}L"
    return f"explode(array({first}, {first} + 1L))"
