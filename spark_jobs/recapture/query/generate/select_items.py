"""The items of a select list, as values."""

from collections.abc import Iterable
from dataclasses import dataclass

from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import named_struct, quoted_name
from recapture.query.plan import expressions
from recapture.query.plan.expressions import Expr


@dataclass(frozen=True)
class Item:
    """A value under a name."""

    name: str

    @property
    def value(self) -> str:
        """Spark SQL of the value."""
        raise NotImplementedError


@dataclass(frozen=True)
class SelectItem(Item):
    """An expression under a name."""

    expression: Expr

    @property
    def value(self) -> str:
        return render(self.expression)


@dataclass(frozen=True)
class SqlItem(Item):
    """Spark SQL under a name."""

    sql: str

    @property
    def value(self) -> str:
        return self.sql


def column(name: str) -> SelectItem:
    """Return the item that takes a column over, under its own name."""
    return SelectItem(name, expressions.column(name))


def columns(items: Iterable[Item]) -> list[SelectItem]:
    """Return the items that take over what a subquery with these items gives: x + 1 AS y => y"""
    return [column(item.name) for item in items]


def takes_over(item: Item) -> bool:
    """Return whether an item takes a column over, under its own name."""
    return item.value == quoted_name(item.name)


def select_list(items: Iterable[Item]) -> str:
    """Return the text between SELECT and FROM: `x`, `y` + 1 AS `z`"""
    return ", ".join(item.value if takes_over(item) else f"{item.value} AS {quoted_name(item.name)}" for item in items)


def struct(items: Iterable[Item]) -> str:
    """Return a struct that has these items as its fields: x + 1 AS y => named_struct('y', x + 1)"""
    return named_struct({item.name: item.value for item in items})
