"""FROM as a value: a relation under a name, and the elements that APPLY adds to its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from recapture.model import AsaType, InputColumn, MetadataColumn
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.properties import property_of
from recapture.query.generate import trees
from recapture.query.generate.analytics import AnalyticFunction, result_name
from recapture.query.generate.json_text import json_record
from recapture.query.generate.select_items import SelectItem
from recapture.query.generate.values import Value
from recapture.query.parse.names import identifiers, is_system_timestamp
from recapture.query.parse.source import Source


class Relation(Protocol):
    """A stream of rows."""

    @property
    def table(self) -> str:
        """Return its name in Spark SQL."""

    @property
    def ordered(self) -> bool:
        """Return whether the rows of a partition come in arrival order, all in one task."""

    @property
    def ties(self) -> tuple[SelectItem, ...] | None:
        """Return the columns that order rows of one partition and arrival; None if the rows are ordered anyway."""

    @property
    def unanchored(self) -> bool:
        """Return whether the rows have the column `_unanchored`; see `CompiledOutput.sql`."""

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the column that a dotted path names; None if there is none."""

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        """Return all columns by name; None if neither CREATE TABLE nor a SELECT lists them."""

    def record(self, where: exp.Expr) -> Value:
        """Return the whole row as a record."""

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        """Return the value of GetMetadataPropertyValue."""

    def has(self, name: str) -> bool:
        """Return whether a column of this name, in any letter case, is known."""


@dataclass(frozen=True)
class Element:
    """An element of an array, or a property of a record, that APPLY adds to a row under a name."""

    alias: str
    column: str
    """Name of the struct that holds it."""
    fields: tuple[tuple[str, AsaType, bool], ...]
    """Name and type of each field of the struct, and whether it is an element of JSON."""

    @property
    def record(self) -> Value:
        """Return the element as a whole. Its JSON values stand in it as text."""
        columns = [(name, Value(trees.column(name, self.column), kind)) for name, kind, _ in self.fields]
        return Value(json_record(columns), AsaType.RECORD)

    def field(self, source: Source, types: FieldTypes, names: Sequence[exp.Identifier]) -> Value:
        """Return the field that a dotted path names. Raise DefinitionError if there is none."""
        for name, kind, is_json_element in self.fields:
            if name.lower() == names[0].name.lower():
                value = Value(trees.column(name, self.column), kind, is_json_element=is_json_element)
                return property_of(source, types, value, list(names[1:]))
        known = " and ".join(name for name, _, _ in self.fields)
        raise source.error(names[0], f"`{self.alias}` has {known}, and no {names[0].name}")


@dataclass
class From:
    """A FROM clause: a relation under a name, and the elements that APPLY adds to its rows."""

    source: Source
    types: FieldTypes
    qualifier: str
    relation: Relation
    has_analytics: bool = False
    """Whether its SELECT calls analytic functions."""
    elements: list[Element] = field(default_factory=list)
    analytics: list[AnalyticFunction] = field(default_factory=list)
    """Analytic functions of its SELECT, as far as it is compiled."""

    @property
    def ordered(self) -> bool:
        """Whether the rows of a partition come in arrival order, all in one task."""
        return self.relation.ordered and not self.has_analytics

    def field(self, node: exp.Expr) -> Value | None:
        """Return a column's value; None for a node that is not a dotted path."""
        names = _path(node)
        if not names:
            return None
        value = self.relation.field(names[1:]) if self._is_qualified(names) else self.unqualified(names)
        if value is None:
            raise self.source.error(names[0], f"`{self.qualifier}` has no column `{names[0].name}`")
        return value

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the value of a dotted path without the relation's name before it; None if there is no such column."""
        for element in self.elements:
            if names[0].name.lower() == element.alias.lower():
                return element.field(self.source, self.types, names[1:]) if len(names) > 1 else element.record
        if isinstance(self.relation, InputRelation):
            self._refuse_other_name(self.relation, names)
        return self.relation.field(names)

    def result(self, function: AnalyticFunction) -> exp.Expr:
        """Return the column of an analytic function's result."""
        if function not in self.analytics:
            self.analytics.append(function)
        return trees.column(result_name(self.analytics.index(function)))

    def lookup(self, node: exp.Expr) -> InputColumn | MetadataColumn | None:
        """Return the column of an event that a node names, without reading it for the rows.

        None for a node that is not a dotted path. For a FROM of the input only.
        """
        assert isinstance(self.relation, InputRelation)
        names = _path(node)
        if not names:
            return None
        if self._is_qualified(names):
            return self.relation.lookup(names[1:])
        self._refuse_other_name(self.relation, names)
        return self.relation.lookup(names)

    def _is_qualified(self, names: Sequence[exp.Identifier]) -> bool:
        """Return whether a path begins with the relation's name. Raise DefinitionError for the name alone."""
        if names[0].name.lower() != self.qualifier.lower():
            return False
        if len(names) == 1:
            name = f"{self.qualifier}.{names[0].name}"
            raise self.source.error(names[0], f"`{names[0].name}` is the name of FROM: write {name} for such a field")
        return True

    def _refuse_other_name(self, relation: InputRelation, names: Sequence[exp.Identifier]) -> None:
        """Raise DefinitionError for a path that begins with the input's alias where FROM gives it another name."""
        if len(names) > 1 and names[0].name.lower() == relation.alias.lower():
            raise self.source.error(names[0], f"FROM calls the input `{self.qualifier}`: write that")

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]]:
        """Return the declared properties of the record that a dotted path names, by name; none if there are none."""
        is_element = names[0].name.lower() in (element.alias.lower() for element in self.elements)
        if is_element or not isinstance(self.relation, InputRelation):
            return []
        return self.relation.properties(names[1:] if len(names) > 1 and self._is_qualified(names) else names)

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        """Return all columns by name, an element of APPLY as one record; None if they are not known."""
        columns = self.relation.star(where)
        if columns is None:
            return None
        added = [(element.alias, element.record) for element in self.elements]
        return [*columns, *added]


def _path(node: exp.Expr) -> list[exp.Identifier] | None:
    """Return the names of a column's dotted path; None for anything else."""
    is_column = isinstance(node, exp.Column | exp.Dot) and not is_system_timestamp(node)
    return identifiers(node) if is_column else None
