"""The Spark SQL of a query: rows to panes, to windows, to groups, to published rows.

A pane is a stretch of time that every window holds whole or not at all: the window itself for tumbling windows and
snapshots, a hop's share for hopping windows, one instant for sliding and session windows. Rows are aggregated once per
partition and pane, and only these partial aggregates are put into windows.
"""

import math
from dataclasses import dataclass

from recapture.model import AsaType
from recapture.query.generate.values import Value, quoted_name, quoted_text
from recapture.query.generate.windows import (
    SLICE,
    UNANCHORED,
    GroupedWindow,
    Grouping,
    ends,
    keys,
    partial_names,
    sessions,
    sliding,
)
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from recapture.time_model.windows import HoppingWindow, Reach, SessionWindow, SlidingWindow, SnapshotWindow, Window

EVENTS = "`events`"
_SYSTEM = ("`_slice_start`", "`_slice_end`", "`_partition`", "`_system_timestamp`")


@dataclass(frozen=True)
class Selection:
    """One SELECT. `columns` are over a row, or over a group's `_k0`…, `_r0`…, `_window_id` and `_window_end`."""

    table: str
    """What it reads: the view of events, or a step's table."""
    laterals: tuple[str, ...]
    where: str | None
    grouping: Grouping | None
    columns: tuple[tuple[str, str], ...]
    """Name and SQL."""
    unanchored: bool
    """Whether what it reads has the column that tells of sessions which may have begun earlier."""

    @property
    def look_back(self) -> int:
        return max((each.window.look_back for each in self.grouping.windows), default=0) if self.grouping else 0

    @property
    def windows(self) -> list[Window]:
        return [each.window for each in self.grouping.windows] if self.grouping else [SnapshotWindow()]

    @property
    def tells_unanchored(self) -> bool:
        return self.unanchored or bool(self.grouping and self.grouping.unanchored)


@dataclass(frozen=True)
class Table:
    """The rows of one SELECT, or of several that UNION puts together, under a name."""

    name: str
    selections: tuple[Selection, ...]

    @property
    def tells_unanchored(self) -> bool:
        return any(each.tells_unanchored for each in self.selections)


def instant(ticks: str) -> str:
    """Ticks as a Spark timestamp, truncated to microseconds."""
    return f"timestamp_micros(({ticks} - {UNIX_EPOCH}L) div {TICKS_PER_MICROSECOND}L)"


def output_sql(steps: list[Table], output: Table, columns: list[tuple[str, Value]]) -> tuple[str, tuple[Reach, ...]]:
    """The statement of an output, as CompiledOutput describes it, and which events it needs.

    `steps` come in the order of WITH; those that the output does not need are left out.
    """
    ahead: dict[str, int] = {output.name: 0}
    reaches: dict[Reach, None] = {}
    for table in (output, *reversed(steps)):
        if table.name not in ahead:
            continue
        for selection in table.selections:
            if selection.table == EVENTS:
                reaches.update((Reach(window, ahead[table.name]), None) for window in selection.windows)
            else:
                wanted = ahead[table.name] + selection.look_back
                ahead[selection.table] = max(ahead.get(selection.table, 0), wanted)
    needed = [table for table in steps if table.name in ahead]
    with_ = ",\n".join(f"{table.name} AS (\n{_table(table, ahead[table.name])}\n)" for table in [*needed, output])
    published = [f"{_published(value, name)} AS {quoted_name(name)}" for name, value in columns]
    published.append(f"{instant('`_slice_start`')} AS `slice_start`")
    if output.tells_unanchored:
        published.append(UNANCHORED)
    return (
        f"WITH {with_}\nSELECT {', '.join(published)}\nFROM {output.name}\n"
        "WHERE `_system_timestamp` > `_slice_start` AND `_system_timestamp` <= `_slice_end`",
        tuple(reaches),
    )


def _published(value: Value, name: str) -> str:
    column = quoted_name(name)
    return instant(column) if value.type is AsaType.DATETIME else column


def _table(table: Table, ahead: int) -> str:
    """The rows of a table whose time is in (slice start - ahead, slice end], and maybe some earlier ones."""
    parts = [_selection(each, ahead, table.tells_unanchored) for each in table.selections]
    return "\nUNION ALL\n".join(parts)


def _selection(selection: Selection, ahead: int, tells_unanchored: bool) -> str:
    columns = [f"{sql} AS {quoted_name(name)}" for name, sql in selection.columns]
    if selection.grouping is None:
        system = [*_SYSTEM, *_unanchored(tells_unanchored, UNANCHORED if selection.unanchored else "false")]
        return f"SELECT {', '.join([*system, *columns])}\n{_from(selection)}"
    grouping = selection.grouping
    flag = _unanchored(tells_unanchored, UNANCHORED if selection.tells_unanchored else "false")
    system = [*SLICE, "'' AS `_partition`", "`_window_end` AS `_system_timestamp`", *flag]
    having = f"\nWHERE {grouping.having}" if grouping.having else ""
    return (
        f"SELECT {', '.join([*system, *columns])}\nFROM (\n{_groups(selection, grouping, ahead)}\n) AS `groups`{having}"
    )


def _unanchored(told: bool, sql: str) -> list[str]:
    return [sql if sql == UNANCHORED else f"{sql} AS {UNANCHORED}"] if told else []


def _from(selection: Selection) -> str:
    where = f"\nWHERE {selection.where}" if selection.where else ""
    return "\n".join([f"FROM {selection.table}", *selection.laterals]) + where


def _groups(selection: Selection, grouping: Grouping, ahead: int) -> str:
    parts = [_windowed(selection, grouping, grouped, place, ahead) for place, grouped in enumerate(grouping.windows)]
    by = ", ".join([*SLICE, "`_window`", "`_window_id`", "`_window_end`", *keys(grouping)])
    results = [f"{each.merged(f'_p{place}')} AS `_r{place}`" for place, each in enumerate(grouping.aggregates)]
    flag = [f"bool_or({UNANCHORED}) AS {UNANCHORED}"] if selection.tells_unanchored else []
    union = "\nUNION ALL\n".join(parts)
    return (
        f"SELECT {', '.join([by, *flag, *results])}\nFROM (\n{union}\n) AS `windowed`\n"
        f"WHERE `_window_end` > `_slice_start` - {ahead}L AND `_window_end` <= `_slice_end`\nGROUP BY {by}"
    )


def _windowed(selection: Selection, grouping: Grouping, grouped: GroupedWindow, place: int, ahead: int) -> str:
    """The partial aggregates of each pane, once per window that holds it."""
    panes = _panes(selection, grouping, grouped.window, ahead)
    kept = [*SLICE, "`_partition`", "`_pane`", *keys(grouping), *partial_names(grouping)]
    flag = _unanchored(selection.tells_unanchored, UNANCHORED if selection.unanchored else "false")
    identity = quoted_text(grouped.id) if grouped.id is not None else "CAST(NULL AS STRING)"
    named = [f"{place} AS `_window`", f"{identity} AS `_window_id`"]
    match grouped.window:
        case HoppingWindow(size, hop, offset) if hop < size:
            window_end = f"{ends(size, hop, offset % hop, _pane_length(grouped.window), ahead)} AS `_window_end`"
            return f"SELECT {', '.join([*kept, *named, window_end, *flag])}\nFROM (\n{panes}\n) AS `panes`"
        case SlidingWindow(size):
            return sliding(panes, grouping, size, ahead, [*kept, *named], flag, selection.unanchored)
        case SessionWindow():
            return sessions(panes, grouped.window, grouped.partition_by, ahead, [*kept, *named], selection.unanchored)
    return f"SELECT {', '.join([*kept, *named, '`_pane` AS `_window_end`', *flag])}\nFROM (\n{panes}\n) AS `panes`"


def _panes(selection: Selection, grouping: Grouping, window: Window, ahead: int) -> str:
    """The partial aggregates per slice, partition, pane and group."""
    by = ", ".join([*SLICE, "`_partition`", "`_pane`", *keys(grouping)])
    partials = [
        item for place, each in enumerate(grouping.aggregates) for item in each.partials(f"`_a{place}`", f"_p{place}")
    ]
    flag = [f"bool_or({UNANCHORED}) AS {UNANCHORED}"] if selection.unanchored else []
    named = [f"{sql} AS `_k{place}`" for place, sql in enumerate(grouping.keys)]
    arguments = [f"{each.prepared()} AS `_a{place}`" for place, each in enumerate(grouping.aggregates)]
    kept = [*_SYSTEM, *([UNANCHORED] if selection.unanchored else [])]
    rows = f"SELECT {', '.join([*kept, f'{_pane(window)} AS `_pane`', *named, *arguments])}\n{_from(selection)}"
    read = (
        f"\nWHERE `_pane` > `_slice_start` - {ahead + window.look_back}L" if isinstance(window, SessionWindow) else ""
    )
    return f"SELECT {', '.join([by, *partials, *flag])}\nFROM (\n{rows}\n) AS `rows`{read}\nGROUP BY {by}"


def _pane(window: Window) -> str:
    """The end of the pane that holds a row."""
    if not isinstance(window, HoppingWindow):
        return "`_system_timestamp`"
    length = _pane_length(window)
    return f"(`_system_timestamp` + pmod({window.offset % length}L - `_system_timestamp`, {length}L))"


def _pane_length(window: HoppingWindow) -> int:
    return math.gcd(window.size, window.hop)
