"""The Spark SQL of a query: rows to panes, to windows, to groups, to published rows.

A pane is a stretch of time that every window holds whole or not at all: the window itself for tumbling windows and
snapshots, a hop's share for hopping windows, one instant for sliding and session windows. Rows are aggregated once per
partition and pane, and only these partial aggregates are put into windows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spark_jobs.query.aggregates import Aggregate
from spark_jobs.query.model import AsaType
from spark_jobs.query.values import Value, quoted_name, quoted_text
from spark_jobs.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from spark_jobs.time_model.windows import HoppingWindow, Reach, SessionWindow, SlidingWindow, SnapshotWindow, Window

EVENTS = "`events`"
_SYSTEM = ("`_slice_start`", "`_slice_end`", "`_partition`", "`_system_timestamp`")
_SLICE = ("`_slice_start`", "`_slice_end`")
UNANCHORED = "`_unanchored`"


@dataclass(frozen=True)
class GroupedWindow:
    """One window of a GROUP BY; `partition_by` are the keys, by number, that have sessions of their own."""

    window: Window
    id: str | None
    partition_by: tuple[int, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """A GROUP BY: keys and aggregates are over a row, `having` over `_k0`… and `_r0`…"""

    windows: tuple[GroupedWindow, ...]
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    having: str | None

    @property
    def unanchored(self) -> bool:
        return any(isinstance(each.window, SessionWindow) for each in self.windows)


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
    system = [*_SLICE, "'' AS `_partition`", "`_window_end` AS `_system_timestamp`", *flag]
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
    by = ", ".join([*_SLICE, "`_window`", "`_window_id`", "`_window_end`", *_keys(grouping)])
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
    kept = [*_SLICE, "`_partition`", "`_pane`", *_keys(grouping), *_partial_names(grouping)]
    flag = _unanchored(selection.tells_unanchored, UNANCHORED if selection.unanchored else "false")
    identity = quoted_text(grouped.id) if grouped.id is not None else "CAST(NULL AS STRING)"
    named = [f"{place} AS `_window`", f"{identity} AS `_window_id`"]
    match grouped.window:
        case HoppingWindow(size, hop, offset) if hop < size:
            ends = _ends(size, hop, offset % hop, _pane_length(grouped.window), ahead)
            return (
                f"SELECT {', '.join([*kept, *named, f'{ends} AS `_window_end`', *flag])}\nFROM (\n{panes}\n) AS `panes`"
            )
        case SlidingWindow(size):
            return _sliding(panes, grouping, size, ahead, [*kept, *named], flag)
        case SessionWindow():
            return _sessions(panes, grouped.window, grouped.partition_by, ahead, [*kept, *named], selection.unanchored)
    return f"SELECT {', '.join([*kept, *named, '`_pane` AS `_window_end`', *flag])}\nFROM (\n{panes}\n) AS `panes`"


def _panes(selection: Selection, grouping: Grouping, window: Window, ahead: int) -> str:
    """The partial aggregates per slice, partition, pane and group."""
    by = ", ".join([*_SLICE, "`_partition`", "`_pane`", *_keys(grouping)])
    partials = [
        item for place, each in enumerate(grouping.aggregates) for item in each.partials(f"`_a{place}`", f"_p{place}")
    ]
    flag = [f"bool_or({UNANCHORED}) AS {UNANCHORED}"] if selection.unanchored else []
    keys = [f"{sql} AS `_k{place}`" for place, sql in enumerate(grouping.keys)]
    arguments = [f"{each.prepared()} AS `_a{place}`" for place, each in enumerate(grouping.aggregates)]
    kept = [*_SYSTEM, *([UNANCHORED] if selection.unanchored else [])]
    rows = f"SELECT {', '.join([*kept, f'{_pane(window)} AS `_pane`', *keys, *arguments])}\n{_from(selection)}"
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


def _ends(size: int, hop: int, offset: int, pane: int, ahead: int) -> str:
    """Every E = offset + k * hop with pane <= E <= pane - its length + size, clipped to what is wanted."""
    first = f"greatest(`_pane` + pmod({offset}L - `_pane`, {hop}L), `_slice_start` - {ahead}L + {hop}L"
    first += f" - pmod(`_slice_start` - {ahead}L - {offset}L, {hop}L))"
    latest = f"least(`_pane` + {size - pane}L, `_slice_end`)"
    last = f"({latest} - pmod({latest} - {offset}L, {hop}L))"
    return f"explode(CASE WHEN {first} <= {last} THEN sequence({first}, {last}, {hop}L) ELSE array() END)"


def _sliding(panes: str, grouping: Grouping, size: int, ahead: int, kept: list[str], flag: list[str]) -> str:
    """Panes are instants. Where a group's content changes, at an instant or a size after it, a window ends.

    Both sides go by stretches of one size: a window's panes lie in the stretch of its end or in the one before.
    """
    same = " AND ".join(
        f"`panes`.{column} <=> `ends`.{column}" for column in ("`_slice_start`", *_keys(grouping), "`_stretch`")
    )
    stretch = f"explode(array(`_pane` div {size}L, `_pane` div {size}L + 1L)) AS `_stretch`"
    ends = (
        f"SELECT DISTINCT {', '.join(['`_slice_start`', *_keys(grouping), '`_window_end`'])},"
        f" `_window_end` div {size}L AS `_stretch`\n"
        f"FROM (SELECT *, explode(array(`_pane`, `_pane` + {size}L)) AS `_window_end` FROM (\n{panes}\n) AS `panes`)\n"
        f"WHERE `_window_end` > `_slice_start` - {ahead}L AND `_window_end` <= `_slice_end`"
    )
    columns = [f"`panes`.{column}" if " AS " not in column else column for column in [*kept, *flag]]
    return (
        f"SELECT {', '.join([*columns[: len(kept)], '`ends`.`_window_end`', *columns[len(kept) :]])}\n"
        f"FROM (SELECT *, {stretch} FROM (\n{panes}\n) AS `panes`) AS `panes`\n"
        f"JOIN (\n{ends}\n) AS `ends`\n"
        f"ON {same} AND `_pane` <= `_window_end` AND `_pane` > `_window_end` - {size}L"
    )


def _sessions(
    panes: str, window: SessionWindow, partition_by: tuple[int, ...], ahead: int, kept: list[str], unanchored: bool
) -> str:
    """Panes are instants. A gap longer than the timeout opens a session; in a stretch without such a gap sessions are
    cut at the first multiple of maxDuration that is at least one maxDuration behind the opening, then at every second.

    What opens within a timeout of where reading began may have begun earlier: it is cut at even multiples, so that
    neighbouring slices agree, and marked.
    """
    timeout, longest, twice = f"{window.timeout}L", f"{window.longest}L", f"{2 * window.longest}L"
    by = ", ".join(["`_slice_start`", *(f"`_k{place}`" for place in partition_by)])
    over = f"(PARTITION BY {by} ORDER BY `_pane`)"
    opens = f"coalesce(`_pane` - lag(`_pane`) OVER {over} > {timeout}, true)"
    gaps = f"SELECT *, {opens} AS `_opens`\nFROM (\n{panes}\n) AS `panes`"
    opened = (
        "SELECT *, max(CASE WHEN `_opens` THEN `_pane` END)"
        f" OVER (PARTITION BY {by} ORDER BY `_pane` ROWS UNBOUNDED PRECEDING) AS `_opened`\nFROM (\n{gaps}\n)"
    )
    read_from = f"(`_slice_start` - {ahead + window.look_back}L)"
    known = f"`_opened` > {read_from} + {timeout}"
    first = (
        f"SELECT *, NOT ({known}) AS `_unknown`, CASE WHEN {known}"
        f" THEN (`_opened` + {2 * window.longest - 1}L) div {longest} * {longest}"
        f" ELSE (`_opened` + {2 * window.longest - 1}L) div {twice} * {twice} END AS `_first`\nFROM (\n{opened}\n)"
    )
    cut = (
        f"SELECT *, `_first` + greatest(0L, (`_pane` - `_first` + {2 * window.longest - 1}L) div {twice}) * {twice}"
        f" AS `_cut`\nFROM (\n{first}\n)"
    )
    last = f"max(`_pane`) OVER (PARTITION BY {by}, `_opened`, `_cut`)"
    flag = f"{UNANCHORED} OR `_unknown`" if unanchored else "`_unknown`"
    ends = f"least({last} + {timeout}, `_cut`) AS `_window_end`"
    return f"SELECT {', '.join([*kept, ends, f'{flag} AS {UNANCHORED}'])}\nFROM (\n{cut}\n)"


def _keys(grouping: Grouping) -> list[str]:
    return [f"`_k{place}`" for place in range(len(grouping.keys))]


def _partial_names(grouping: Grouping) -> Iterator[str]:
    for place, each in enumerate(grouping.aggregates):
        for item in each.partials(f"`_a{place}`", f"_p{place}"):
            yield item.rsplit(" AS ", 1)[1]
