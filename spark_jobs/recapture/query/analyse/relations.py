"""FROM as a value: relations under their names, and the elements that APPLY adds to their rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from recapture.model import AsaType, InputColumn, MetadataColumn
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.json_text import json_record, property_of
from recapture.query.analyse.values import Value
from recapture.query.parse.names import InputField, Path, identifiers, is_system_timestamp
from recapture.query.parse.source import Source
from recapture.query.plan.analytics import ROW, AnalyticFunction, Analytics, result_name
from recapture.query.plan.expressions import Expr, column, columns_of, replaced
from recapture.query.plan.joins import Join, JoinedTable, Lookup, Side, side_column
from recapture.time_model.joins import Distances


class Columns(Protocol):
    """The columns of rows, or the properties of a record of each row."""

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        """Return all columns by name; None if neither CREATE TABLE nor a SELECT lists them."""

    def record(self, where: exp.Expr) -> Value:
        """Return all columns as one record."""

    def has(self, name: str) -> bool:
        """Return whether a column of this name, ignoring case, is known."""
        return False

    def can_have(self, name: str) -> bool:
        """Return whether there may be a column of this name, ignoring case."""
        return True

    def lists(self, name: str) -> bool:
        """Return whether CREATE TABLE or a SELECT lists a column of this name, ignoring case."""
        return False

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        """Return the properties of a record that CREATE TABLE declares, by name; None if it is not one of an input."""


class Relation(Columns, Protocol):
    """A stream of rows."""

    @property
    def table(self) -> str:
        """Return the name of its rows in the plan."""

    @property
    def ordered(self) -> bool:
        """Return whether the rows of a partition come in arrival order, all in one task."""

    @property
    def ties(self) -> tuple[str, ...] | None:
        """Return the columns that order rows of one partition and arrival; None if the rows are ordered anyway."""

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the column that a dotted path names; None if there is none."""

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        """Return the value of GetMetadataPropertyValue."""


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
        columns = [(name, Value(column(name, self.column), kind)) for name, kind, _ in self.fields]
        return Value(json_record(columns), AsaType.RECORD)

    def field(self, source: Source, types: FieldTypes, names: Sequence[exp.Identifier]) -> Value:
        """Return the field that a dotted path names. Raise DefinitionError if there is none."""
        for name, kind, is_json_element in self.fields:
            if name.lower() == names[0].name.lower():
                value = Value(column(name, self.column), kind, is_json_element=is_json_element)
                return property_of(source, types, value, list(names[1:]))
        known = " and ".join(name for name, _, _ in self.fields)
        raise source.error(names[0], f"`{self.alias}` has {known}, and no {names[0].name}")


@dataclass
class NamedRelation:
    """A relation under its name in FROM. Its methods are those of the relation, over the columns of the joined rows."""

    name: str
    relation: Relation
    number: int | None = None
    """Place among the sides of a JOIN, which is part of the names of its columns; None without a JOIN."""
    partition_by: tuple[Path, ...] = ()
    over: tuple[Path, ...] = ()
    optional: bool = False
    """Whether it is the right side of a LEFT JOIN, which may have no row."""
    columns: dict[str, None] = field(default_factory=dict)
    """Columns that are read, in order; only next to a JOIN."""

    @property
    def is_reference(self) -> bool:
        """Whether it is reference data."""
        return isinstance(self.relation, InputRelation) and self.relation.is_reference

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        value = self.relation.field(names)
        return value and self.numbered(value)

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        columns = self.relation.star(where)
        return columns and [(name, self.numbered(value)) for name, value in columns]

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        properties = self.relation.properties(names)
        return properties and [(name, self.numbered(value)) for name, value in properties]

    def record(self, where: exp.Expr) -> Value:
        return self.numbered(self.relation.record(where))

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        return self.numbered(self.relation.metadata(property_name, where))

    def numbered(self, value: Value) -> Value:
        """Return a value over the columns of a joined table: upper(x) => upper(1.x)"""
        if self.number is None:
            return value
        kind, token = (None if part is None else self._renamed(part, self.number) for part in (value.kind, value.token))
        return replace(value, node=self._renamed(value.node, self.number), kind=kind, token=token)

    def _renamed(self, expression: Expr, number: int) -> Expr:
        """Return an expression with the side's number in the names of its columns, which are read from now on."""
        names = columns_of(expression)
        self.columns |= names
        return replaced(expression, {column(name): column(side_column(number, name)) for name in names})


@dataclass
class From:
    """A FROM clause: relations under their names, and the elements that APPLY adds. It has the methods of `Columns`."""

    source: Source
    types: FieldTypes
    relations: list[NamedRelation]
    """The relation, or the sides of the JOINs, in order."""
    table: str
    """Name of its rows in the plan."""
    has_analytics: bool = False
    joins: list[Join | Lookup] = field(default_factory=list)
    distances: Distances = field(default_factory=Distances)
    """How far apart the rows of the sides can be."""
    elements: list[Element] = field(default_factory=list)
    functions: dict[AnalyticFunction, int] = field(default_factory=dict)
    """Analytic functions of its SELECT over these rows, each with its index, as far as it is compiled."""
    unjoined: "From | None" = None
    """Rows before its JOINs, which analytic functions see; None without a JOIN."""

    @property
    def ordered(self) -> bool:
        """Whether the rows of a partition come in arrival order, all in one task; a look-up keeps the order."""
        return not self._joins_streams and not self.has_analytics and self.relations[0].relation.ordered

    @property
    def ties(self) -> tuple[str, ...] | None:
        """Columns that order the rows of one partition and arrival; None if they come in order."""
        return () if self._joins_streams else self.relations[0].relation.ties

    @property
    def analytics(self) -> Analytics | None:
        """Analytic functions over these rows; None if there are none."""
        return Analytics(tuple(self.functions), self.ties) if self.functions else None

    @property
    def has_row_column(self) -> bool:
        """Whether the rows have the column `_row`: they had it, or their analytic functions number them."""
        analytics = (self.unjoined or self).analytics
        return ROW in (self.ties or ()) or (analytics is not None and analytics.ties is None)

    @property
    def _joins_streams(self) -> bool:
        return any(isinstance(join, Join) for join in self.joins)

    def joined_table(self) -> JoinedTable | None:
        """Return the rows of the JOINs, once all columns that are read are known; None without a JOIN."""
        if not self.joins:
            return None
        first, *others = (
            Side(named.relation.table, tuple(named.columns), named.is_reference) for named in self.relations
        )
        analytics = self.unjoined.analytics if self.unjoined is not None else None
        sides, look_backs = (replace(first, analytics=analytics), *others), tuple(self.distances.look_backs)
        return JoinedTable(self.table, sides, tuple(self.joins), look_backs)

    def named(self, name: str) -> NamedRelation | None:
        """Return the relation of this name, ignoring case; None if there is none."""
        return next((named for named in self.relations if named.name.lower() == name.lower()), None)

    def element(self, name: str) -> Element | None:
        """Return the element that APPLY adds under this name, ignoring case; None if there is none."""
        return next((element for element in self.elements if element.alias.lower() == name.lower()), None)

    def field(self, node: exp.Expr) -> Value | None:
        """Return a column's value; None for a node that is not a dotted path."""
        names = _path(node)
        if not names:
            return None
        value = self.path(names)
        if value is None:
            named = self._qualifier(names)
            known = " and ".join(f"`{relation.name}`" for relation in ([named] if named else self.relations))
            column = names[1] if named and len(self.relations) > 1 else names[0]
            raise self.source.error(names[0], f"{known} has no column `{column.name}`")
        return value

    def path(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the value of a dotted path; None if there is no such column."""
        named = self._qualifier(names)
        return named.field(names[1:]) if named else self.unqualified(names)

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the value of a dotted path without the relation's name before it; None if there is no such column.

        Raise DefinitionError if several sides of a JOIN may have it.
        """
        element = self.element(names[0].name)
        if element is not None:
            return element.field(self.source, self.types, names[1:]) if len(names) > 1 else element.record
        self._refuse_other_name(names)
        if len(self.relations) == 1:
            return self.relations[0].field(names)
        side = self._only_side(names)
        return side.field(names) if side else None

    def _only_side(self, names: Sequence[exp.Identifier]) -> NamedRelation | None:
        """Return the side of a JOIN that has an unqualified column; None if none has it.

        Raise DefinitionError if several may have it.
        """
        candidates = [named for named in self.relations if named.relation.can_have(names[0].name)]
        if len(candidates) > 1:
            path = ".".join(name.name for name in names)
            written = " or ".join(f"{named.name}.{path}" for named in candidates)
            raise self.source.error(names[0], f"`{path}` may be a column of several sides of the JOIN: write {written}")
        return candidates[0] if candidates else None

    def require_seen_by_analytics(self, names: Sequence[exp.Identifier]) -> None:
        """Raise DefinitionError for a column that an analytic function does not see: of APPLY, or of another side."""
        where, name = names[0], names[0].name
        if self.element(name) is not None:
            message = f"an analytic function sees the rows before APPLY, without `{name}`: APPLY in a step"
            raise self.source.error(where, message)
        side = self._qualifier(names) or (self._only_side(names) if len(self.relations) > 1 else None)
        if side is not None and side is not self.relations[0]:
            message = f"an analytic function sees the rows before JOIN, without `{side.name}`: call it in a step"
            raise self.source.error(where, message)

    def column_of(self, function: AnalyticFunction) -> Expr:
        """Return the column of an analytic function's result, and add the function unless it is there."""
        return column(result_name(self.functions.setdefault(function, len(self.functions))))

    def input_field(self, column: InputColumn) -> InputField:
        """Return a column of the body as a field of its input. For a FROM of an input only."""
        [named] = self.relations
        assert isinstance(named.relation, InputRelation)
        return named.relation.input_field(column.path)

    def event_column(self, node: exp.Expr) -> InputColumn | MetadataColumn | None:
        """Return the column of an event that a node names, without reading it for the rows.

        None for a node that is not a dotted path. For a FROM of an input only.
        """
        [named] = self.relations
        assert isinstance(named.relation, InputRelation)
        names = _path(node)
        if not names:
            return None
        if self._qualifier(names):
            return named.relation.event_column(names[1:])
        self._refuse_other_name(names)
        return named.relation.event_column(names)

    def _qualifier(self, names: Sequence[exp.Identifier]) -> NamedRelation | None:
        """Return the relation whose name a path begins with; None if the path is a column, such as t of FROM t.

        Raise DefinitionError for a name alone that may not be a column.
        """
        named, name = self.named(names[0].name), names[0].name
        if named and len(names) == 1:
            if self.lists(name):
                return None
            advice = f"write {named.name}.{name} for a field called `{name}`"
            raise self.source.error(names[0], f"`{name}` is a name in FROM, not a column: {advice}")
        return named

    def _refuse_other_name(self, names: Sequence[exp.Identifier]) -> None:
        """Raise DefinitionError for a path that begins with the input's alias where FROM gives it another name."""
        alias = names[0].name.lower()
        names_in_from = [
            f"`{named.name}`"
            for named in self.relations
            if isinstance(named.relation, InputRelation) and named.relation.alias.lower() == alias
        ]
        if len(names) > 1 and names_in_from:
            message = f"FROM calls this input {' and '.join(names_in_from)}: write the name in FROM"
            raise self.source.error(names[0], message)

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]] | None:
        """Return those of a record; None for an element of APPLY, and for a record that any side of a JOIN may have."""
        named = self.named(names[0].name)
        if self.element(names[0].name) is not None or not (named or len(self.relations) == 1):
            return None
        return named.properties(names[1:]) if named else self.relations[0].properties(names)

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        """Return all columns by name, an element of APPLY as one record; None if they are not known."""
        [named] = self.relations
        columns = named.star(where)
        if columns is None:
            return None
        added = [(element.alias, element.record) for element in self.elements]
        return [*columns, *added]

    def record(self, where: exp.Expr) -> Value:
        """Return the whole row as a record, for a FROM without APPLY and JOIN."""
        [named] = self.relations
        return named.record(where)

    def has(self, name: str) -> bool:
        return any(named.relation.has(name) for named in self.relations)

    def lists(self, name: str) -> bool:
        return any(named.relation.lists(name) for named in self.relations)

    def row_named(self, node: exp.Expr) -> NamedRelation | None:
        """Return the relation whose name a node is; None for any other node.

        Raise DefinitionError if it is also the name of a column.
        """
        names = identifiers(node) or []
        named = self.named(names[0].name) if len(names) == 1 else None
        if named is not None and self.lists(named.name):
            name = names[0].name
            message = f"`{name}` is a name in FROM and a column: write {named.name}.{name} for the column"
            raise self.source.error(node, message)
        return named

    def can_have(self, name: str) -> bool:
        return self.element(name) is not None or any(named.relation.can_have(name) for named in self.relations)


def _path(node: exp.Expr) -> list[exp.Identifier] | None:
    """Return the names of a column's dotted path; None for anything else."""
    is_column = isinstance(node, exp.Column | exp.Dot) and not is_system_timestamp(node)
    return identifiers(node) if is_column else None
