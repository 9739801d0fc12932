"""The items of a select list, as values."""

from collections.abc import Iterable
from dataclasses import dataclass

from recapture.query.generate.values import quoted_name, quoted_text


@dataclass(frozen=True)
class SelectItem:
    """`expression AS name`."""

    name: str
    """Name of the column, without backticks."""
    expression: str
    """Spark SQL of its value."""

    @property
    def is_column(self) -> bool:
        """Whether the item takes a column over, under its own name."""
        return self.expression == quoted_name(self.name)

    @property
    def sql(self) -> str:
        """Spark SQL of the item."""
        return self.expression if self.is_column else f"{self.expression} AS {quoted_name(self.name)}"


def column(name: str) -> SelectItem:
    """Return the item that takes a column over, under its own name."""
    return SelectItem(name, quoted_name(name))


def columns(items: Iterable[SelectItem]) -> list[SelectItem]:
    """Return the items that take over what a subquery with these items gives."""
    return [column(item.name) for item in items]


def select_list(items: Iterable[SelectItem]) -> str:
    """Return the text between SELECT and FROM."""
    return ", ".join(item.sql for item in items)


def struct(items: Iterable[SelectItem]) -> str:
    """Return the SQL of a struct that has these items as its fields."""
    return f"named_struct({', '.join(f'{quoted_text(item.name)}, {item.expression}' for item in items)})"
