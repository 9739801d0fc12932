"""The items of a select list in Spark SQL."""

from collections.abc import Iterable
from dataclasses import dataclass

from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import named_struct, quoted_name
from recapture.query.plan.expressions import FALSE
from recapture.query.plan.relations import Item


@dataclass(frozen=True)
class SqlItem:
    """Spark SQL under a name."""

    name: str
    value: str


def column(name: str) -> SqlItem:
    """Return the item that takes a column over, under its own name."""
    return SqlItem(name, quoted_name(name))


def columns(items: Iterable[SqlItem]) -> list[SqlItem]:
    """Return the items that take over what a subquery with these items gives: x + 1 AS y => y"""
    return [column(item.name) for item in items]


def rendered(items: Iterable[Item]) -> list[SqlItem]:
    """Return items in Spark SQL."""
    return [SqlItem(item.name, render(item.expression)) for item in items]


def takes_over(item: SqlItem) -> bool:
    """Return whether an item takes a column over, under its own name."""
    return item.value == quoted_name(item.name)


def select_list(items: Iterable[SqlItem]) -> str:
    """Return the text between SELECT and FROM: `x`, `y` + 1 AS `z`"""
    return ", ".join(item.value if takes_over(item) else f"{item.value} AS {quoted_name(item.name)}" for item in items)


def struct(items: Iterable[SqlItem]) -> str:
    """Return a struct that has these items as its fields: x + 1 AS y => named_struct('y', x + 1)"""
    return named_struct({item.name: item.value for item in items})


SLICE_BOUNDS = (column("_slice_start"), column("_slice_end"))
"""Columns of the start and the end of a row's slice, in ticks."""
UNANCHORED = column("_unanchored")
"""Column that marks the rows of sessions cut by the rule for sparse streams (docs/time-model.md, section 4.2)."""
ROW = column("_row")


def unanchored_items(has: bool, source_has: bool) -> list[SqlItem]:
    """Return the item of `_unanchored` for rows that have it: FALSE where their source does not."""
    if not has:
        return []
    return [UNANCHORED if source_has else SqlItem(UNANCHORED.name, render(FALSE))]
