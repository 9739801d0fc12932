"""What the * of a step stand for; of columns that are not known, those that later steps use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from recapture.query.analyse.relations import Columns, Element, From
from recapture.query.analyse.values import Value
from recapture.query.parse.source import Source


class StarSource(Columns, Protocol):
    """Rows, or a record of each row, whose columns or properties a * stands for."""

    @property
    def elements(self) -> Sequence[Element]:
        """Return the elements that APPLY adds to the rows."""
        return ()

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the value of a dotted path; None if there is no such column."""


@dataclass(frozen=True)
class StarredRecord(StarSource):
    """The record of a step's record.*, if its properties are not known: the * stands for those that later steps use."""

    source: Source
    from_clause: From
    names: tuple[exp.Identifier, ...]
    """Dotted path of the record."""

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        return self.from_clause.path([*self.names, *names])

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        return None

    def record(self, where: exp.Expr) -> Value:
        shown = ".".join(name.name for name in self.names)
        raise self.source.error(where, f"the properties that {shown}.* stands for are not known: name them")

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        return self.from_clause.properties([*self.names, *names]) or None


@dataclass(frozen=True)
class StarSources(StarSource):
    """The * of one SELECT, or none. If two have a column of the same name, the left one counts, as in ASA."""

    source: Source
    all: tuple[StarSource, ...] = ()
    """From left to right."""

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        name = names[0].name
        possible = [star for star in self.all if star.can_have(name)]
        if len(possible) > 1 and not possible[0].lists(name):
            advice = "name the column there, or declare the inputs with CREATE TABLE"
            raise self.source.error(names[0], f"`{name}` may come from more than one * of the step: {advice}")
        return possible[0].unqualified(names) if possible else None

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        columns: dict[str, tuple[str, Value]] = {}
        for star in self.all:
            own = star.star(where)
            if own is None:
                return None
            for name, value in own:
                columns.setdefault(name.lower(), (name, value))
        return list(columns.values())

    def record(self, where: exp.Expr) -> Value:
        raise self.source.error(where, "not all columns of a step with several * are known: name those that you need")

    def has(self, name: str) -> bool:
        return any(star.has(name) for star in self.all)

    def can_have(self, name: str) -> bool:
        return any(star.can_have(name) for star in self.all)

    def lists(self, name: str) -> bool:
        return any(star.lists(name) for star in self.all)

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        """Return those of a record that one * alone can have; None if several can."""
        possible = [star for star in self.all if star.can_have(names[0].name)]
        return possible[0].properties(names) if len(possible) == 1 else None
