"""The Spark SQL statement of an output: its steps as common table expressions, each a SELECT or a UNION of several."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from recapture.model import AsaType
from recapture.query.generate.analytics import ROW, Analytics
from recapture.query.generate.grouping import SLICE_BOUNDS, UNANCHORED, Grouping, unanchored_items
from recapture.query.generate.joins import JoinedTable
from recapture.query.generate.select_items import Item, SelectItem, SqlItem, column, select_list
from recapture.query.generate.values import Value
from recapture.query.generate.windows import groups
from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import quoted_name
from recapture.query.merges import WINDOW_END, WINDOW_ID, GroupsView
from recapture.query.plan.expressions import Expr, columns_of
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from recapture.time_model.windows import JoinedSide, Reach, SnapshotWindow, Window

SLICE_START = "slice_start"
"""Published column that holds the start of a row's slice."""


@dataclass(frozen=True)
class Lateral:
    """The elements that an APPLY adds to the rows of a FROM."""

    number: int
    """Number of APPLYs before it."""
    array: Expr
    """Array whose elements it adds, over a row."""
    outer: bool
    """Whether a row without elements stays."""

    @property
    def column(self) -> str:
        """Name of the column that holds an element."""
        return f"@@e{self.number}"

    @property
    def sql(self) -> str:
        """LATERAL VIEW clause."""
        rows = f"{'OUTER ' if self.outer else ''}explode({render(self.array)})"
        return f"LATERAL VIEW {rows} `@@l{self.number}` AS {quoted_name(self.column)}"


@dataclass(frozen=True)
class Selection:
    """One SELECT."""

    table: str
    """What it reads: the view of events, or the table of a step or of a JOIN."""
    source_unanchored: bool
    """Whether `table` has the column `_unanchored`."""
    source_has_row_column: bool
    """Whether `table` has the column `_row`."""
    analytics: Analytics | None
    """Its analytic functions, over a row before APPLY."""
    laterals: tuple[Lateral, ...]
    """Its APPLYs."""
    where: Expr | None
    grouping: Grouping | None
    items: tuple[SelectItem, ...]
    """Select list, over a row, or over a group's `_k0`, …, `_r0`, …, `_window_id` and `_window_end`."""
    groups_view: GroupsView | None = None
    """View of the groups of `grouping`, if they are merged from panes; it does not read `table` then."""

    @property
    def windows(self) -> list[Window]:
        """Windows of its GROUP BY; without one each row stands for its own time."""
        return [grouped.window for grouped in self.grouping.windows] if self.grouping else [SnapshotWindow()]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that are keys of its GROUP BY."""
        keys = [] if self.grouping is None else [item.name for item in self.grouping.key_columns]
        return tuple(item.name for item in self.items if item.expression.is_column and item.expression.name in keys)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that depend on nothing but the window and the keys of a group."""
        if self.grouping is None:
            return ()
        names = {WINDOW_END, WINDOW_ID, *(item.name for item in self.grouping.key_columns)}
        read = {item.name: columns_of(item.expression).keys() for item in self.items}
        return tuple(name for name, columns in read.items() if columns and columns <= names)

    @property
    def analytic_look_back(self) -> int:
        """How long before a row its analytic functions look; ticks."""
        return self.analytics.look_back if self.analytics else 0

    @property
    def has_row_column(self) -> bool:
        """Whether its rows have the column `_row`."""
        return self.grouping is None and (
            self.analytics.has_row_column if self.analytics else self.source_has_row_column
        )

    @property
    def unanchored(self) -> bool:
        """Whether its rows have the column `_unanchored`: they, or what they come from, are sessions."""
        return self.source_unanchored or bool(self.grouping and self.grouping.unanchored)


@dataclass(frozen=True)
class CommonTable:
    """A common table expression: the rows of one SELECT, or of the SELECTs of a UNION, under a name."""

    name: str
    selections: tuple[Selection, ...]

    @property
    def unanchored(self) -> bool:
        """Whether its rows have the column `_unanchored`."""
        return any(selection.unanchored for selection in self.selections)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows of its SELECTs."""
        return tuple(window for selection in self.selections for window in selection.windows)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that are keys of GROUP BY in every SELECT."""
        return _in_all(selection.key_columns for selection in self.selections)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that depend on nothing but the window and the keys of a group in every SELECT."""
        return _in_all(selection.group_columns for selection in self.selections)

    @property
    def has_row_column(self) -> bool:
        """Whether its rows have the column `_row`; those of a UNION do not."""
        return len(self.selections) == 1 and self.selections[0].has_row_column

    def reads(self, extra_look_back: int) -> Iterator[tuple[str, Reach]]:
        """Yield each table that its rows come from, and the reach of its rows."""
        for selection in self.selections:
            for window in selection.windows:
                yield selection.table, Reach(window, extra_look_back, selection.analytic_look_back)

    @property
    def sources(self) -> list[str]:
        """Tables that its SQL reads."""
        return [selection.table for selection in self.selections if selection.groups_view is None]

    def sql(self, extra_look_back: int) -> str:
        """Return SQL of the rows after slice start - `extra_look_back` ticks, and maybe of some earlier ones."""
        return "\nUNION ALL\n".join(_selection(selection, extra_look_back, self) for selection in self.selections)


Table = CommonTable | JoinedTable
"""A common table expression."""


@dataclass(frozen=True)
class OutputTables:
    """The tables from which the rows of an output are computed."""

    steps: tuple[Table, ...]
    """Steps and JOINs that it needs, in the order of WITH."""
    output: CommonTable
    look_backs: Mapping[str, int]
    """How long before the slice the rows of each table must begin, by the name of the table; ticks."""


@dataclass(frozen=True)
class Statement:
    """The statement of an output."""

    sql: str
    """Spark SQL, as CompiledOutput describes it."""
    tables: OutputTables
    reaches: dict[str, list[Reach]]
    """Reaches of the windows and of the JOINs over each view of an input: the events that each needs."""
    windows: tuple[Window | JoinedSide, ...]
    """Windows, and sides of JOINs, over the events and over steps."""
    groups: tuple[GroupsView, ...]


def output_statement(steps: Sequence[Table], output: CommonTable, columns: list[tuple[str, Value]]) -> Statement:
    """Return the statement of an output.

    [`step 0`], `output`, [("x", a float)] => WITH `step 0` AS (…), `output` AS (…) SELECT `x`, … FROM `output` WHERE …

    `steps` come in the order of WITH, with the JOINs before the steps that read them. Those that the output does not
    need are left out.
    """
    extra_look_backs, reaches = _extra_look_backs(steps, output)
    read = _read_by(steps, output)
    needed = [table for table in steps if table.name in read]
    with_ = ",\n".join(
        f"{table.name} AS (\n{table.sql(extra_look_backs[table.name])}\n)" for table in [*needed, output]
    )
    windows = [window for table in [*steps, output] if table.name in extra_look_backs for window in table.windows]
    published = [_published(name, value) for name, value in columns]
    published.append(SqlItem(SLICE_START, _timestamp(SLICE_BOUNDS[0].value)))
    if output.unanchored:
        published.append(UNANCHORED)
    sql = (
        f"WITH {with_}\nSELECT {select_list(published)}\nFROM {output.name}\n"
        "WHERE `_system_timestamp` > `_slice_start` AND `_system_timestamp` <= `_slice_end`"
    )
    groups = (view for table in [*needed, output] for view in _groups_views(table, extra_look_backs[table.name]))
    tables = OutputTables(
        tuple(needed), output, {table.name: extra_look_backs[table.name] for table in [*needed, output]}
    )
    return Statement(sql, tables, reaches, tuple(dict.fromkeys(windows)), tuple(groups))


def _groups_views(table: Table, extra_look_back: int) -> Iterator[GroupsView]:
    """Yield the views of groups that a table reads."""
    for selection in table.selections if isinstance(table, CommonTable) else ():
        if (view := selection.groups_view) is not None:
            yield replace(view, groups=replace(view.groups, look_back=extra_look_back))


def _extra_look_backs(steps: Sequence[Table], output: CommonTable) -> tuple[dict[str, int], dict[str, list[Reach]]]:
    """Return how long before the slice the rows of each needed table must begin, in ticks, and the reaches by view.

    For example, a window of 5 minutes over the rows of a step needs that step's rows from 5 minutes before the slice.
    """
    extra = {output.name: 0}
    reaches: dict[str, list[Reach]] = {}
    names = {step.name for step in steps}
    for table in (output, *reversed(steps)):
        if table.name not in extra:
            continue
        for name, reach in table.reads(extra[table.name]):
            if name in names:
                extra[name] = max(extra.get(name, 0), reach.look_back)
            elif reach not in reaches.setdefault(name, []):
                reaches[name].append(reach)
    return extra, reaches


def _read_by(steps: Sequence[Table], output: CommonTable) -> set[str]:
    """Return the tables that the SQL of an output reads."""
    read = set(output.sources)
    for step in reversed(steps):
        if step.name in read:
            read |= {*step.sources}
    return read


def _selection(selection: Selection, extra_look_back: int, table: CommonTable) -> str:
    items = [*unanchored_items(table.unanchored, selection.unanchored), *selection.items]
    rows = selection.table
    if selection.analytics:
        window_look_back = max(window.look_back for window in selection.windows)
        rows = f"(\n{selection.analytics.sql(selection.table, extra_look_back + window_look_back)}\n) AS `analysed`"
    source = "\n".join([f"FROM {rows}", *(lateral.sql for lateral in selection.laterals)])
    source += _where(selection.where)
    if selection.grouping is None:
        numbers = [ROW] if table.has_row_column else []
        of_row = [*SLICE_BOUNDS, column("_partition"), column("_system_timestamp"), column("_arrival"), *numbers]
        return f"SELECT {select_list([*of_row, *items])}\n{source}"
    times = [SqlItem(name, "`_window_end`") for name in ("_system_timestamp", "_arrival")]
    system = [*SLICE_BOUNDS, SqlItem("_partition", "''"), *times]
    if selection.groups_view is None:
        grouped = groups(source, selection.source_unanchored, selection.grouping, extra_look_back)
        rows = f"(\n{grouped}\n)"
    else:
        rows = quoted_name(selection.groups_view.name)
    having = _where(selection.grouping.having)
    return f"SELECT {select_list([*system, *items])}\nFROM {rows} AS `groups`{having}"


def _in_all(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of the first tuple that all others have, too."""
    first, *others = names
    return tuple(name for name in first if all(name in other for other in others))


def _where(condition: Expr | None) -> str:
    return f"\nWHERE {render(condition)}" if condition is not None else ""


def _published(name: str, value: Value) -> Item:
    return SqlItem(name, _timestamp(quoted_name(name))) if value.type is AsaType.DATETIME else column(name)


def _timestamp(ticks: str) -> str:
    """Return ticks as a Spark timestamp, truncated to microseconds."""
    epoch = UNIX_EPOCH // TICKS_PER_MICROSECOND
    return f"timestamp_micros({ticks} div {TICKS_PER_MICROSECOND}L - {epoch}L)"
