"""The second step of a GROUP BY: the partial aggregates of panes to windows, and to groups."""

from recapture.query.generate.grouping import GroupingSql
from recapture.query.generate.panes import PaneStatement, any_unanchored
from recapture.query.generate.select_items import SLICE_BOUNDS, SqlItem, column, select_list, unanchored_items
from recapture.query.generate.sessions import sessions
from recapture.query.generate.sliding import sliding
from recapture.query.lower.spark_text import quoted_text
from recapture.query.plan.grouping import GroupedWindow, Grouping
from recapture.query.plan.in_tasks import pane_length
from recapture.time_model.windows import HoppingWindow, SessionWindow, SlidingWindow


def groups(source: str, source_unanchored: bool, grouping: Grouping, extra_look_back: int) -> str:
    """Return the statement that computes the groups of a GROUP BY over rows FROM … [WHERE …].

    If it collects partial aggregates, it sorts them first, so that Spark holds one group at a time. A group's columns
    must not be constants then, or Spark does not see that the rows are sorted.

    keys [`k`], aggregates [COUNT(*)] => SELECT …, `_k0`, sum(`_p0`) AS `_r0` FROM (…) … GROUP BY …, `_k0`

    Groups have the columns `_slice_start`, `_slice_end`, `_window` (its number), `_window_id`, `_window_end`, `_k0`, …,
    `_r0`, …, and with sessions `_unanchored`. They end after slice start - `extra_look_back` ticks.
    """
    parts = [
        _windowed(PaneStatement(source, source_unanchored, grouping, grouped.window, extra_look_back), number)
        for number, grouped in enumerate(grouping.windows)
    ]
    window = [column("_window"), column("_window_id")] if len(parts) > 1 else []
    by = [*SLICE_BOUNDS, *window, column("_window_end"), *GroupingSql(grouping).key_columns]
    selected = [*by, *([] if window else _window(grouping.windows[0], 0))]
    unanchored = any_unanchored(source_unanchored or grouping.unanchored)
    union = "\nUNION ALL\n".join(parts)
    windowed = (
        f"SELECT * FROM (\n{union}\n) AS `windowed`\n"
        f"WHERE `_window_end` > `_slice_start` - {extra_look_back}L AND `_window_end` <= `_slice_end`"
    )
    if GroupingSql(grouping).collects:
        windowed += f"\nDISTRIBUTE BY {select_list(by)} SORT BY {select_list(by)}"
    items = [*selected, *unanchored, *GroupingSql(grouping).results]
    return f"SELECT {select_list(items)}\nFROM (\n{windowed}\n) AS `windowed`\nGROUP BY {select_list(by)}"


def _window(grouped: GroupedWindow, number: int) -> list[SqlItem]:
    """Return the items that tell the windows of a GROUP BY apart."""
    id_ = quoted_text(grouped.id) if grouped.id is not None else "CAST(NULL AS STRING)"
    return [SqlItem("_window", str(number)), SqlItem("_window_id", id_)]


def _windowed(panes: PaneStatement, number: int) -> str:
    """Return SQL that repeats each pane once for every window that holds it.

    pane 5 in HoppingWindow(10, 5) => the same pane with the window ends 5 and 10
    """
    grouped = panes.grouping.windows[number]
    items: list[SqlItem] = [*panes.columns, *_window(grouped, number)]
    unanchored = unanchored_items(panes.source_unanchored or panes.grouping.unanchored, panes.source_unanchored)
    match grouped.window:
        case SlidingWindow(size):
            return sliding(panes, size, [*items, column("_window_end"), *unanchored])
        case SessionWindow():
            return sessions(panes, grouped.window, grouped.partition_by, items)
        case HoppingWindow() as window if window.hop < window.size:
            window_end = _hopping_ends(window, panes.extra_look_back)
        case _:
            window_end = "`_pane`"
    selected = [*items, SqlItem("_window_end", window_end), *unanchored]
    return f"SELECT {select_list(selected)}\nFROM (\n{panes.sql}\n) AS `panes`"


def _hopping_ends(window: HoppingWindow, extra_look_back: int) -> str:
    """Return every end E = offset + k * hop with pane <= E <= pane - its length + size, as far as needed."""
    hop, offset = window.hop, window.offset % window.hop
    first = f"greatest(`_pane` + pmod({offset}L - `_pane`, {hop}L), `_slice_start` - {extra_look_back}L + {hop}L"
    first += f" - pmod(`_slice_start` - {extra_look_back}L - {offset}L, {hop}L))"
    latest = f"least(`_pane` + {window.size - pane_length(window)}L, `_slice_end`)"
    last = f"({latest} - pmod({latest} - {offset}L, {hop}L))"
    return f"explode(CASE WHEN {first} <= {last} THEN sequence({first}, {last}, {hop}L) ELSE array() END)"
