"""A step of WITH as a relation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from recapture.model import AsaType, kind_name, path_name
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.json_text import json_record, property_of
from recapture.query.analyse.stars import StarSource
from recapture.query.analyse.tokens import key_of, read_from
from recapture.query.analyse.values import Value
from recapture.query.parse.names import Path
from recapture.query.parse.source import Source
from recapture.query.plan.analytics import ROW
from recapture.query.plan.expressions import column
from recapture.query.plan.relations import Item

DECLARE = "run recapture infer FILE --write, which declares them"
"""What to do where a * stands for columns that are not known."""
WHOLE: Path = ()
"""Path of the whole row, as a record, among the columns of a * that later steps use."""
WHOLE_NAME = "@body"


def passed_on(columns: Sequence[tuple[str, Value]]) -> list[Item]:
    """Return the items of a step's select list: its columns, and their kinds where later steps ask for them.

    A column of values with types of their own has their tokens.
    """
    kinds = [Item(kind_name(name), value.kind) for name, value in columns if value.kind is not None]
    return [*(Item(name, key_of(value)) for name, value in columns), *kinds]


def taken_over(name: str, value: Value) -> Value:
    """Return a step's column as a value of the step that reads it."""
    kind = None if value.kind is None else column(kind_name(name))
    return read_from(replace(value, kind=kind), column(name))


@dataclass
class StepRelation:
    """A step of WITH. If it selects *, it also has those columns of its own FROM that later steps use."""

    source: Source
    name: str
    table: str
    columns: list[tuple[str, Value]]
    star_source: StarSource
    """What its * stand for."""
    requests: dict[Path, None]
    """Columns of its * that later steps use, collected in both passes."""
    types: FieldTypes
    ordered: bool
    has_row_column: bool

    def __post_init__(self) -> None:
        self._own = {name.lower(): value for name, value in self.columns}
        self._requested = {_lower(path): path for path in self.requests}

    @property
    def ties(self) -> tuple[str, ...] | None:
        """Columns that order rows of one partition and arrival: the number of the row, and all others."""
        if self.ordered:
            return None
        names = [name for name, _ in self.columns] + [path_name(path) or WHOLE_NAME for path in self.requests]
        return (*([ROW] if self.has_row_column else []), *names)

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        own = self._own.get(names[0].name.lower())
        if own is not None:
            return property_of(self.source, self.types, self.types.refreshed(own), list(names[1:]))
        starred = self.star_source.unqualified(names)
        if starred is None:
            return None
        path = self._request(tuple(name.name for name in names), names[0])
        return taken_over(path_name(path), starred)

    def _request(self, path: Path, where: exp.Expr) -> Path:
        """Request a column of the *, and return its path; a column in two spellings is one column."""
        name = _lower(path)
        if name in self._own:
            raise self.source.error(where, f"`{name}` is both a column and a property here: rename the column")
        known = self._requested.setdefault(name, path)
        self.requests.setdefault(known)
        return known

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        below = self.star_source.star(where)
        if below is None:
            return None
        requested = [
            (name, taken_over(path_name(self._request((name,), where)), value))
            for name, value in below
            if not self._has_own(name)
        ]
        return [*((name, self.types.refreshed(value)) for name, value in self.columns), *requested]

    def record(self, where: exp.Expr) -> Value:
        if not self.columns and not self.star_source.elements:
            self.requests.setdefault(WHOLE)
            return replace(self.star_source.record(where), node=column(WHOLE_NAME))
        columns = self.star(where)
        if columns is None:
            message = f"the columns of `{self.name}` are not known: name them there instead of *, or {DECLARE}"
            raise self.source.error(where, message)
        for name, value in columns:
            if not self.types.is_known_of_each(value):
                raise self.source.error(where, f"the type of `{name}`, a column of the record, is not known: CAST it")
        return Value(json_record(columns), AsaType.RECORD)

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        properties = None if self._has_own(names[0].name) else self.star_source.properties(names)
        record = tuple(name.name for name in names)
        return properties and [
            (name, taken_over(path_name(self._request((*record, name), names[0])), value)) for name, value in properties
        ]

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        raise self.source.error(where, "GetMetadataPropertyValue needs the input: select it in the step that reads it")

    def has(self, name: str) -> bool:
        return self._has_own(name) or self.star_source.has(name)

    def lists(self, name: str) -> bool:
        return self._has_own(name) or self.star_source.lists(name)

    def can_have(self, name: str) -> bool:
        return self._has_own(name) or self.star_source.can_have(name)

    def _has_own(self, name: str) -> bool:
        return name.lower() in self._own


def _lower(path: Path) -> str:
    """Return the name of a column of a *, in lower case: ("site", "Id") => site.id"""
    return ".".join(path).lower()
