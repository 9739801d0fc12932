"""The items of a select list, as values."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from recapture.query.generate import trees
from recapture.query.generate.trees import render, spark_call, string
from recapture.query.generate.values import quoted_name


@dataclass(frozen=True)
class SelectItem:
    """`expression AS name`."""

    name: str
    """Name of the column, without backticks."""
    expression: exp.Expr
    """Tree of its value."""

    @property
    def is_column(self) -> bool:
        """Whether the item takes a column over, under its own name."""
        taken = self.expression
        return isinstance(taken, exp.Column) and taken.name == self.name and not taken.table

    @property
    def sql(self) -> str:
        """Spark SQL of the item."""
        return quoted_name(self.name) if self.is_column else f"{render(self.expression)} AS {quoted_name(self.name)}"


def column(name: str) -> SelectItem:
    """Return the item that takes a column over, under its own name."""
    return SelectItem(name, trees.column(name))


def columns(items: Iterable[SelectItem]) -> list[SelectItem]:
    """Return the items that take over what a subquery with these items gives: x + 1 AS y => y"""
    return [column(item.name) for item in items]


def select_list(items: Iterable[SelectItem]) -> str:
    """Return the text between SELECT and FROM: `x`, `y` + 1 AS `z`"""
    return ", ".join(item.sql for item in items)


def struct(items: Iterable[SelectItem]) -> exp.Expr:
    """Return a struct that has these items as its fields: x + 1 AS y => named_struct('y', x + 1)"""
    return spark_call("named_struct", *(part for item in items for part in (string(item.name), item.expression)))
