"""Sliding windows in Spark SQL.

Panes are instants. A group's content changes at an instant and a size after it, so a window (E - size, E] ends at
each of these times. Time is divided into stretches of one size: a window that ends in one stretch holds the panes of
this stretch up to its end, and those of the stretch before that are later than its start.
"""

from sqlglot import exp

from recapture.query.generate import trees
from recapture.query.generate.grouping import SLICE, UNANCHORED
from recapture.query.generate.panes import Panes, any_unanchored
from recapture.query.generate.select_items import SelectItem, column, columns, select_list, struct
from recapture.query.generate.trees import render, spark_call, template


def sliding(panes: Panes, size: int, items: list[SelectItem], flag: list[SelectItem]) -> str:
    """Return the panes, each once per sliding window of a size in ticks that holds it.

    If all aggregates can run, the two halves of each window stand for its panes.
    """
    if all(aggregate.runs for aggregate in panes.grouping.aggregates):
        return _halves_of_windows(panes, size, items, flag)
    return _panes_of_windows(panes, size, items, flag)


def _panes_of_windows(panes: Panes, size: int, items: list[SelectItem], flag: list[SelectItem]) -> str:
    """Join panes and window ends, in the stretches where they can meet."""
    keys = panes.grouping.key_columns
    same = " AND ".join(f"`panes`.{part.sql} <=> `ends`.{part.sql}" for part in [SLICE[0], *keys, column("_stretch")])
    stretch = f"explode(array(`_pane` div {size}L, `_pane` div {size}L + 1L)) AS `_stretch`"
    ends = (
        f"SELECT DISTINCT {select_list([SLICE[0], *keys, column('_window_end')])},"
        f" `_window_end` div {size}L AS `_stretch`\n"
        f"FROM (SELECT *, explode(array(`_pane`, `_pane` + {size}L)) AS `_window_end` FROM (\n{panes.sql}\n)"
        f" AS `panes`)\n"
        f"WHERE `_window_end` > `_slice_start` - {panes.extra_look_back}L AND `_window_end` <= `_slice_end`"
    )
    selected = [
        *(_of("panes", item) for item in items),
        _of("ends", column("_window_end")),
        *(_of("panes", item) for item in flag),
    ]
    return (
        f"SELECT {select_list(selected)}\n"
        f"FROM (SELECT *, {stretch} FROM (\n{panes.sql}\n) AS `panes`) AS `panes`\n"
        f"JOIN (\n{ends}\n) AS `ends`\n"
        f"ON {same} AND `_pane` <= `_window_end` AND `_pane` > `_window_end` - {size}L"
    )


def _halves_of_windows(panes: Panes, size: int, items: list[SelectItem], flag: list[SelectItem]) -> str:
    """Take the two halves of each window from running aggregates, so that no window looks at all its panes.

    An example: COUNT(*) OVER a size of 10, one event each at 3, 8 and 15. Half 1 of a window runs up to its end, in the
    stretch in which it ends. Half 0 runs down to its start, in the stretch before. Each half takes the running count of
    the last pane before it on its timeline:

        stretch 0, up:    pane 3 (1), end 3, pane 8 (2), end 8          half 1 of window 3: 1, of window 8: 2
        stretch 1, up:    end 13, pane 15 (1), end 15, end 18           half 1 of window 15: 1, of window 18: 1
        stretch 0, down:  end 18 (starts at 8), pane 8 (1),             half 0 of window 15: 1, of window 13: 1
                          end 15 (starts at 5), end 13 (starts at 3), pane 3 (2)

    A half without a pane before it gives no row. So the windows hold 3: 1, 8: 2, 13: 1, 15: 2, 18: 1 events; the one
    that ends at 25 is empty.
    """
    by = [*SLICE, *panes.grouping.key_columns]
    placed = _timelines(by, size, _running(panes, by, size))
    timeline = f"PARTITION BY {select_list([*by, column('_half'), column('_stretch')])} ORDER BY `_at`, `_turn`"
    held = (
        f"SELECT *, last(`_run`, true) OVER ({timeline} ROWS UNBOUNDED PRECEDING) AS `_held`,"
        f" lag(`_window_end`) OVER ({timeline}) AS `_before`\nFROM (\n{placed}\n)"
    )
    partials = [*columns(panes.grouping.partials), UNANCHORED]
    replaced: dict[str, exp.Expr] = {item.name: trees.column(item.name, "_held") for item in partials}
    replaced |= {"_partition": trees.string(""), "_pane": trees.cast_as(trees.column("_half"), "BIGINT")}
    selected = [
        SelectItem(item.name, replaced.get(item.name, item.expression)) if item.is_column else item
        for item in [*items, column("_window_end"), *flag]
    ]
    return (
        f"SELECT {select_list(selected)}\nFROM (\n{held}\n)\n"
        "WHERE `_window_end` IS NOT NULL AND `_held` IS NOT NULL AND NOT (`_window_end` <=> `_before`)"
    )


def _running(panes: Panes, by: list[SelectItem], size: int) -> str:
    """Return each instant with the aggregates of its stretch up to it, `_up`, and from it on, `_down`."""
    merged = [*panes.grouping.merged_partials, *any_unanchored(panes.source_unanchored)]
    instants = (
        f"SELECT {select_list([*by, column('_pane'), *merged])}\n"
        f"FROM (\n{panes.sql}\n) AS `panes`\nGROUP BY {select_list([*by, column('_pane')])}"
    )
    stretch = f"`_pane` div {size}L"

    def run(direction: str) -> str:
        over = f"OVER (PARTITION BY {select_list(by)}, {stretch} ORDER BY `_pane`{direction} ROWS UNBOUNDED PRECEDING)"
        fields = panes.grouping.running(over)
        if panes.source_unanchored:
            fields.append(SelectItem(UNANCHORED.name, template(f"bool_or(`_unanchored`) {over}")))
        return render(struct([SelectItem("_here", exp.true()), *fields]))

    return f"SELECT *, {stretch} AS `_at_stretch`, {run('')} AS `_up`, {run(' DESC')} AS `_down`\nFROM (\n{instants}\n)"


def _timelines(by: list[SelectItem], size: int, running: str) -> str:
    """Return each instant's places on the timelines: its pane in both halves, and the two ends it brings about in both.

    An end comes after a pane at the same time where windows include their end (half 1), and before it where they
    exclude their start (half 0): `_turn`.
    """
    no_end, end, later = "CAST(NULL AS BIGINT)", "`_pane`", f"`_pane` + {size}L"
    places = [
        ("1", "`_at_stretch`", "`_pane`", "0", no_end, "`_up`"),
        ("1", "`_at_stretch`", end, "1", end, "NULL"),
        ("1", "`_at_stretch` + 1L", later, "1", later, "NULL"),
        ("0", "`_at_stretch`", "- `_pane`", "1", no_end, "`_down`"),
        ("0", "`_at_stretch` - 1L", f"{size}L - `_pane`", "0", end, "NULL"),
        ("0", "`_at_stretch`", "- `_pane`", "0", later, "NULL"),
    ]
    names = ("_half", "_stretch", "_at", "_turn", "_window_end", "_run")
    structs = spark_call("array", *(struct(map(SelectItem, names, map(template, place))) for place in places))
    return f"SELECT {select_list(by)}, {render(spark_call('inline', structs))}\nFROM (\n{running}\n)"


def _of(table: str, item: SelectItem) -> SelectItem:
    return SelectItem(item.name, trees.column(item.name, table)) if item.is_column else item
