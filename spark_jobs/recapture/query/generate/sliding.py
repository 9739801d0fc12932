"""Sliding windows in Spark SQL.

Panes are instants. The content of a group's window changes at each instant, and again one size later. So a window
(E - size, E] ends at each of these times. Time is divided into blocks, each as long as a window. A window that ends in
one block holds the panes of this block up to the window's end, and the panes of the previous block that are later than
the window's start.
"""

from recapture.query.generate.panes import PaneStatement, any_unanchored
from recapture.query.generate.select_items import (
    SLICE_BOUNDS,
    UNANCHORED,
    SqlItem,
    column,
    columns,
    select_list,
    struct,
    takes_over,
)
from recapture.query.lower.spark_text import quoted_name


def sliding(panes: PaneStatement, size: int, items: list[SqlItem]) -> str:
    """Return SQL of `items` that repeats each pane once for every sliding window that holds it; `size` is in ticks.

    If all aggregates have a running form, each window has at most two rows instead, one for each half.
    """
    if all(aggregate.has_running_form for aggregate in panes.grouping.aggregates):
        return _halves_of_windows(panes, size, items)
    return _panes_of_windows(panes, size, items)


def _panes_of_windows(panes: PaneStatement, size: int, items: list[SqlItem]) -> str:
    """Join panes and window ends, in the blocks where they can meet."""
    keys = panes.sql_grouping.key_columns
    parts = [SLICE_BOUNDS[0], *keys, column("_block")]
    same = " AND ".join(f"`panes`.{part.value} <=> `ends`.{part.value}" for part in parts)
    block = f"explode(array(`_pane` div {size}L, `_pane` div {size}L + 1L)) AS `_block`"
    ends = (
        f"SELECT DISTINCT {select_list([SLICE_BOUNDS[0], *keys, column('_window_end')])},"
        f" `_window_end` div {size}L AS `_block`\n"
        f"FROM (SELECT *, explode(array(`_pane`, `_pane` + {size}L)) AS `_window_end` FROM (\n{panes.sql}\n)"
        f" AS `panes`)\n"
        f"WHERE `_window_end` > `_slice_start` - {panes.extra_look_back}L AND `_window_end` <= `_slice_end`"
    )
    selected = [_qualified("ends" if item.name == "_window_end" else "panes", item) for item in items]
    return (
        f"SELECT {select_list(selected)}\n"
        f"FROM (SELECT *, {block} FROM (\n{panes.sql}\n) AS `panes`) AS `panes`\n"
        f"JOIN (\n{ends}\n) AS `ends`\n"
        f"ON {same} AND `_pane` <= `_window_end` AND `_pane` > `_window_end` - {size}L"
    )


def _halves_of_windows(panes: PaneStatement, size: int, items: list[SqlItem]) -> str:
    """Take the two halves of each window from running aggregates, so that no window reads all of its panes.

    For example, COUNT(*) in sliding windows of size 10, with one event at each of 3, 8 and 15. Half 1 of a window runs
    up to its end, in the block in which it ends. Half 0 runs down to its start, in the block before. Each half takes
    the running count of the last pane before it on its timeline:

        block 0, up:    pane 3 (1), end 3, pane 8 (2), end 8            half 1 of window 3: 1, of window 8: 2
        block 1, up:    end 13, pane 15 (1), end 15, end 18             half 1 of window 15: 1, of window 18: 1
        block 0, down:  end 18 (starts at 8), pane 8 (1),               half 0 of window 15: 1, of window 13: 1
                        end 15 (starts at 5), end 13 (starts at 3), pane 3 (2)

    A half without a pane before it gives no row. So the windows hold 3: 1, 8: 2, 13: 1, 15: 2, 18: 1 events; the one
    that ends at 25 is empty.
    """
    by = [*SLICE_BOUNDS, *panes.sql_grouping.key_columns]
    placed = _timelines(by, size, _running(panes, by, size))
    halves = select_list([*by, column("_half"), column("_block")])
    timeline = f"PARTITION BY {halves} ORDER BY `_position`, `_tie_order`"
    held = (
        f"SELECT *, last(`_running`, true) OVER ({timeline} ROWS UNBOUNDED PRECEDING) AS `_held`,"
        f" lag(`_window_end`) OVER ({timeline}) AS `_previous_end`\nFROM (\n{placed}\n)"
    )
    partials = [*columns(panes.sql_grouping.partials), UNANCHORED]
    replaced = {item.name: f"`_held`.{quoted_name(item.name)}" for item in partials}
    replaced |= {"_partition": "''", "_pane": "CAST(`_half` AS BIGINT)"}
    selected = [SqlItem(item.name, replaced.get(item.name, item.value)) if takes_over(item) else item for item in items]
    return (
        f"SELECT {select_list(selected)}\nFROM (\n{held}\n)\n"
        "WHERE `_window_end` IS NOT NULL AND `_held` IS NOT NULL AND NOT (`_window_end` <=> `_previous_end`)"
    )


def _running(panes: PaneStatement, by: list[SqlItem], size: int) -> str:
    """Return SQL that gives each instant with two running aggregates of its block.

    `_up` runs from the start of the block to the instant, `_down` from the end of the block back to the instant.
    """
    merged = [*panes.sql_grouping.merged_partials, *any_unanchored(panes.source_unanchored)]
    instants = (
        f"SELECT {select_list([*by, column('_pane'), *merged])}\n"
        f"FROM (\n{panes.sql}\n) AS `panes`\nGROUP BY {select_list([*by, column('_pane')])}"
    )
    block = f"`_pane` div {size}L"

    def running(direction: str) -> str:
        over = f"OVER (PARTITION BY {select_list(by)}, {block} ORDER BY `_pane`{direction} ROWS UNBOUNDED PRECEDING)"
        fields = panes.sql_grouping.running(over)
        if panes.source_unanchored:
            fields.append(SqlItem(UNANCHORED.name, f"bool_or(`_unanchored`) {over}"))
        return struct([SqlItem("_here", "TRUE"), *fields])

    up, down = running(""), running(" DESC")
    return f"SELECT *, {block} AS `_pane_block`, {up} AS `_up`, {down} AS `_down`\nFROM (\n{instants}\n)"


def _timelines(by: list[SqlItem], size: int, running: str) -> str:
    """Return SQL that gives six entries per instant: its pane and the two window ends that it causes, in both halves.

    `_tie_order` orders a pane and an end at the same position. In half 1 the end comes after the pane, because a window
    includes its end. In half 0 it comes before the pane, because a window excludes its start.
    """
    no_end, end, later = "CAST(NULL AS BIGINT)", "`_pane`", f"`_pane` + {size}L"
    entries = [
        ("1", "`_pane_block`", "`_pane`", "0", no_end, "`_up`"),
        ("1", "`_pane_block`", end, "1", end, "NULL"),
        ("1", "`_pane_block` + 1L", later, "1", later, "NULL"),
        ("0", "`_pane_block`", "- `_pane`", "1", no_end, "`_down`"),
        ("0", "`_pane_block` - 1L", f"{size}L - `_pane`", "0", end, "NULL"),
        ("0", "`_pane_block`", "- `_pane`", "0", later, "NULL"),
    ]
    names = ("_half", "_block", "_position", "_tie_order", "_window_end", "_running")
    structs = ", ".join(struct(map(SqlItem, names, entry)) for entry in entries)
    return f"SELECT {select_list(by)}, inline(array({structs}))\nFROM (\n{running}\n)"


def _qualified(table: str, item: SqlItem) -> SqlItem:
    return SqlItem(item.name, f"{quoted_name(table)}.{item.value}") if takes_over(item) else item
