"""The histories of rows, and their aggregates, in Spark SQL (docs/time-model.md, section 4.3).

Time is divided into blocks, each as long as a history. The history of a row holds the rows of its block up to itself,
and the last rows of the block before, which are less than one length older. One aggregate runs up through each block,
and gives the first part. Another runs down from the end of each block. It gives the second part, at the earliest row
that is still in the history.
"""

from collections.abc import Mapping, Sequence

from recapture.query.generate.aggregates import mean
from recapture.query.generate.select_items import SLICE_BOUNDS, SqlItem, select_list, struct
from recapture.query.lower.spark import render
from recapture.query.plan.aggregates import Aggregate, AggregateFunction
from recapture.query.plan.analytics import History


def shared_by(history: History) -> str:
    """Return what rows must share to look at each other: the slice and the keys."""
    return ", ".join([SLICE_BOUNDS[0].value, *map(render, history.keys)])


def with_aggregates(
    rows: str, number: int, history: History, aggregates: Mapping[str, Aggregate], order: Sequence[SqlItem]
) -> str:
    """Return SQL of rows with the aggregates of their history, each under its name; `number` is that of the history.

    COUNT(*) in histories of length 10, with one row at each of 3, 8 and 15:

        row 3:   up to it in block 0: 1
        row 8:   up to it in block 0: 2
        row 15:  up to it in block 1: 1, and down to 8, the first row later than 5, in block 0: 1

    Each row therefore gets two entries. On the timeline of its own block, which runs backwards, it supplies its
    running-down aggregate at its own time. On the timeline of the previous block, at its own time minus the length, it
    looks up the aggregate that was supplied last.
    """
    up, down, supplied, earlier, is_request, block, position = (
        f"@@{name}{number}" for name in ("up", "down", "supplied", "earlier", "is_request", "block", "position")
    )
    by, time, length = shared_by(history), "`_system_timestamp`", f"{history.length}L"
    own_block, ascending = f"{time} div {length}", select_list(order)
    descending = ", ".join(f"{item.value} DESC" for item in order)

    def running(ordered: str) -> str:
        over = f"OVER (PARTITION BY {by}, {own_block} ORDER BY {ordered} ROWS UNBOUNDED PRECEDING)"
        return struct(part for name in aggregates for part in _parts(name, aggregates[name], history, over))

    names = (block, position, is_request, supplied)
    supply, request = (
        (own_block, time, "FALSE", f"`{down}`"),
        (f"{own_block} - 1L", f"{time} - {length}", "TRUE", "NULL"),
    )
    placed = [struct(map(SqlItem, names, entry)) for entry in (supply, request)]
    timeline = f"PARTITION BY {by}, `{block}` ORDER BY `{position}` DESC, `{is_request}` DESC, {descending}"
    results = [SqlItem(name, _merged(name, aggregates[name], earlier, up)) for name in aggregates]
    return (
        f"SELECT *, {select_list(results)}\nFROM (\n"
        f"SELECT *, last(`{supplied}`, true) OVER ({timeline} ROWS UNBOUNDED PRECEDING) AS `{earlier}`\nFROM (\n"
        f"SELECT *, inline(array({', '.join(placed)}))\nFROM (\n"
        f"SELECT *, {running(ascending)} AS `{up}`, {running(descending)} AS `{down}`\nFROM (\n"
        f"{rows}\n)\n)\n)\n)\nWHERE `{is_request}`"
    )


def _parts(name: str, aggregate: Aggregate, history: History, over: str) -> list[SqlItem]:
    """Return the running aggregates that make up an aggregate.

    AVG(x) => sum(CAST(`x` AS DOUBLE)) OVER (…), count(CAST(`x` AS DOUBLE)) OVER (…)
    """
    argument = render(history.met(aggregate.prepared()))
    functions = ("sum", "count") if aggregate.function is AggregateFunction.AVG else (aggregate.function.value.lower(),)
    return [SqlItem(f"{name}_{function}", f"{function}({argument}) {over}") for function in functions]


def _merged(name: str, aggregate: Aggregate, earlier: str, later: str) -> str:
    """Return an aggregate of two adjacent parts of a history; either may be NULL.

    COUNT => coalesce(a.n + b.n, a.n, b.n)
    """

    def parts(function: str) -> tuple[str, str]:
        return f"`{earlier}`.`{name}_{function}`", f"`{later}`.`{name}_{function}`"

    def total(function: str) -> str:
        one, other = parts(function)
        return f"coalesce({one} + {other}, {one}, {other})"

    match aggregate.function:
        case AggregateFunction.MIN | AggregateFunction.MAX as extreme:
            one, other = parts(extreme.value.lower())
            return f"{'least' if extreme is AggregateFunction.MIN else 'greatest'}({one}, {other})"
        case AggregateFunction.AVG:
            return mean(total("sum"), total("count"))
    return total(aggregate.function.value.lower())
