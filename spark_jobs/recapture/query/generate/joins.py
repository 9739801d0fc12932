"""JOIN in Spark SQL (docs/time-model.md, section 4.4).

The view repeats an event for every slice that needs it, so every join is within a slice. Spark cannot join by time
bounds: it would compare every pair of rows whose other keys are equal. So time is divided into buckets, each as long as
the range of the bounds. A row of the left side is in one bucket. A row of the right side is in the two that hold its
possible matches. Every join is a sort-merge join, which spills to disk: the rows of one key may not fit into memory.
"""

from dataclasses import dataclass
from functools import reduce

from recapture.query.generate.analytics import analysed
from recapture.query.generate.select_items import ROW, SLICE_BOUNDS, UNANCHORED, SqlItem, column, columns, select_list
from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import quoted_name
from recapture.query.plan.joins import VALIDITY, Join, JoinedTable, Lookup, side_column
from recapture.time_model.joins import TimeRange

_TIME = "_system_timestamp"
_ARRIVAL = "_arrival"
_PARTITION = "_partition"


def joined(table: JoinedTable, extra_look_back: int) -> str:
    """Return the statement that computes the rows after slice start - `extra_look_back` ticks.

    FROM s AS a JOIN s AS b ON … => SELECT …, `0.x`, `1.x` FROM (… JOIN … ON `0._slice_start` = …) WHERE …
    """
    return _JoinStatement(table, extra_look_back).sql()


@dataclass(frozen=True)
class _JoinStatement:
    """The statement of a joined table."""

    table: JoinedTable
    extra_look_back: int

    def sql(self) -> str:
        rows = self._side(0)
        for number, join in enumerate(self.table.joins, 1):
            match join:
                case Join():
                    rows = self._joined(rows, join, number)
                case Lookup():
                    rows = self._looked_up(rows, join, number)
        last, arrivals = len(self.table.joins), self._each(_ARRIVAL)
        one_stream = len(arrivals) == 1
        system = [
            *(SqlItem(bound.name, _of_side(0, bound.name)) for bound in SLICE_BOUNDS),
            SqlItem(_PARTITION, _of_side(0, _PARTITION) if one_stream else "''"),
            SqlItem(_TIME, f"`{_row_time(last)}`"),
            SqlItem(_ARRIVAL, arrivals[0] if one_stream else f"greatest({', '.join(arrivals)})"),
        ]
        if self.table.unanchored:
            flags = (f"coalesce({flag}, FALSE)" for flag in self._each(UNANCHORED.name))
            system.append(SqlItem(UNANCHORED.name, reduce("({} OR {})".format, flags)))
        if self.table.has_row_column:
            system.append(SqlItem(ROW.name, _of_side(0, ROW.name)))
        names = [side_column(number, name) for number, side in enumerate(self.table.sides) for name in side.columns]
        return (
            f"SELECT {select_list([*system, *map(column, names)])}\nFROM (\n{rows}\n) AS `joined`\n"
            f"WHERE `{_row_time(last)}` > `0._slice_start` - {self.extra_look_back}L"
            f" AND `{_row_time(last)}` <= `0._slice_end`"
        )

    def _each(self, name: str) -> list[str]:
        """Return a column of all sides with events that have it."""
        return [
            _of_side(number, name)
            for number, side in enumerate(self.table.sides)
            if not side.is_reference and (name != UNANCHORED.name or side.unanchored)
        ]

    def _items(self, number: int) -> list[SqlItem]:
        """Return the columns of a side, under their names in the joined rows."""
        side = self.table.sides[number]
        if side.is_reference:
            return [SqlItem(side_column(number, name), quoted_name(name)) for name in side.columns]
        bounds = [*SLICE_BOUNDS, column(_PARTITION)] if number == 0 else SLICE_BOUNDS[:1]
        row = [ROW.name] if number == 0 and self.table.has_row_column else []
        system = [*(bound.name for bound in bounds), _TIME, _ARRIVAL, *row]
        flag = [UNANCHORED.name] if side.unanchored else []
        names = dict.fromkeys([*system, *flag, *side.columns])
        return [SqlItem(side_column(number, name), quoted_name(name)) for name in names]

    def _side(self, number: int, *added: SqlItem) -> str:
        """Return the statement that reads a side, as far back as its look-back."""
        items = [*self._items(number), *added]
        if number == 0:
            items.append(SqlItem(_row_time(0), f"`{_TIME}`"))
        side, look_back = self.table.sides[number], self.extra_look_back + self.table.look_backs[number]
        rows = quoted_name(side.table)
        if side.analytics:
            rows = f"(\n{analysed(side.analytics, side.table, look_back)}\n) AS `analysed`"
        return f"SELECT {select_list(items)}\nFROM {rows}\nWHERE `{_TIME}` > `_slice_start` - {look_back}L"

    def _joined(self, left: str, join: Join, number: int) -> str:
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
            f"{kind} (\n{self._side(number, bucket)}\n) AS `right`\n"
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
        table = quoted_name(self.table.sides[number].table)
        return (
            f"SELECT /*+ BROADCAST(`right`) */ {select_list([*columns(items), time])}\nFROM (\n{left}\n) AS `left`\n"
            f"{'LEFT JOIN' if lookup.outer else 'JOIN'} (\n"
            f"SELECT {select_list([*validity, *self._items(number)])}\nFROM {table}\n) AS `right`\n"
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
