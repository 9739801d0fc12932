"""What FROM can name, and its columns: the input, a step of WITH, and the elements that APPLY adds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from recapture.model import AsaType, InputColumn, InputMetadata, Metadata, MetadataColumn
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.properties import property_of
from recapture.query.generate.json_text import json_record
from recapture.query.generate.values import Value, quoted_name
from recapture.query.parse.names import Path, identifiers, is_system_timestamp
from recapture.query.parse.source import Source

_ADDED = {
    metadata.lower(): metadata
    for metadata in (
        Metadata.PARTITION_ID,
        Metadata.EVENT_ENQUEUED,
        Metadata.EVENT_PROCESSED,
        Metadata.BLOB_NAME,
        Metadata.BLOB_LAST_MODIFIED,
    )
}
_STARRED_OF_A_HUB = (Metadata.EVENT_PROCESSED, Metadata.PARTITION_ID, Metadata.EVENT_ENQUEUED)
_STARRED_OF_BLOBS = (Metadata.BLOB_NAME, Metadata.EVENT_PROCESSED, Metadata.BLOB_LAST_MODIFIED)
_ADAPTERS = {
    "eventhub": (
        Metadata.SEQUENCE_NUMBER,
        Metadata.OFFSET,
        Metadata.PARTITION_KEY,
        Metadata.PUBLISHER,
        Metadata.EVENT_ENQUEUED,
        Metadata.EVENT_PROCESSED,
        Metadata.PARTITION_ID,
    ),
    "blob": (Metadata.BLOB_NAME, Metadata.BLOB_LAST_MODIFIED, Metadata.EVENT_PROCESSED),
}
_OF_IOT_HUB = {
    "messageid": MetadataColumn(Metadata.IOT_HUB, "messageId"),
    "correlationid": MetadataColumn(Metadata.IOT_HUB, "correlationId"),
    "connectiondeviceid": MetadataColumn(Metadata.IOT_HUB, "connectionDeviceId"),
    "connectiondevicegenerationid": MetadataColumn(Metadata.IOT_HUB, "connectionDeviceGenerationId"),
    "enqueuedtime": MetadataColumn(Metadata.EVENT_ENQUEUED),
}
"""Properties of the record IoTHub of an event, by the lower-case names of the system properties."""
_PROPERTY = re.compile(r"(?:\[([^\]]+)\]|(\w+))(?:\.(?:\[([^\]]+)\]|([^\[\].]+)))?")
WHOLE: Path = ()
"""Path that asks a star for the whole row, as a record."""
WHOLE_NAME = "@body"
_RESERVED = {"_partition", "_slice_start", "_slice_end", "_system_timestamp"}


class Relation(Protocol):
    """A stream of rows."""

    @property
    def table(self) -> str:
        """Return its name in Spark SQL."""

    @property
    def ordered(self) -> bool:
        """Return whether the rows of a partition come in arrival order, all in one task."""

    @property
    def unanchored(self) -> bool:
        """Return whether the rows have the column `_unanchored`, which marks sessions that may have begun earlier."""

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the column that a dotted path names; None if there is none."""

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        """Return all columns by name; None if they follow from what later steps ask for."""

    def record(self, where: exp.Expr) -> Value:
        """Return the whole row as a record."""

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        """Return the value of GetMetadataPropertyValue."""


@dataclass
class InputRelation:
    """The pipeline's input: the fields of the body, and the metadata that the input adds."""

    source: Source
    alias: str
    types: FieldTypes
    offered: InputMetadata
    """Metadata that the input's format has."""
    columns: dict[str, InputColumn | MetadataColumn] = field(default_factory=dict)
    """Columns that are read for the rows, by lower-case name."""
    table: str = "`events`"
    ordered: bool = True
    unanchored: bool = False

    def lookup(self, names: Sequence[exp.Identifier]) -> InputColumn | MetadataColumn:
        """Return the column of an event that a dotted path names, without reading it for the rows.

        site.id => InputColumn(("site", "id"), …); PartitionId => MetadataColumn(PARTITION_ID)

        Raises DefinitionError if an event has no such column.
        """
        path = tuple(name.name for name in names)
        declared = self.types.declared or {}
        if len(path) == 1 and path[0].lower() in _ADDED and path not in declared:
            return self._checked(MetadataColumn(_ADDED[path[0].lower()]), names[0])
        if Metadata.IOT_HUB in self.offered.known and path[0].lower() == "iothub" and path[:1] not in declared:
            return self._of_iot_hub(path[1:], names[0])
        self._check(path, names[0])
        for name in names:
            if "start" not in name.meta:
                raise self.source.refuse(name, f"write [{name.name}], in brackets, for a field of this name")
            self.source.exact.add(name.meta["start"])
        return self._checked(InputColumn(path, self.types.of(path, names[0])), names[0])

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        column = self.lookup(names)
        value = self._read(column, names[0])
        return replace(value, fields=(column.path,)) if isinstance(column, InputColumn) else value

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        if self.types.declared is None:
            return None
        columns = [InputColumn(path, kind) for path, kind in self.types.declared.items() if len(path) == 1]
        starred = _STARRED_OF_A_HUB if Metadata.EVENT_ENQUEUED in self.offered.known else _STARRED_OF_BLOBS
        added = [MetadataColumn(metadata) for metadata in starred if (str(metadata),) not in self.types.declared]
        return [(column.path[-1], self._read(column, where)) for column in columns] + [
            (str(column.metadata), self._read(column, where)) for column in added
        ]

    def _of_iot_hub(self, path: Path, where: exp.Identifier) -> MetadataColumn:
        column = _OF_IOT_HUB.get(".".join(path).lower())
        if column is None:
            raise self.source.refuse(
                where,
                "of IoTHub there are MessageId, CorrelationId, ConnectionDeviceId, ConnectionDeviceGenerationId and "
                "EnqueuedTime, each by its name",
            )
        self._checked(column, where)
        return column

    def record(self, where: exp.Expr) -> Value:
        return self._read(InputColumn((), AsaType.RECORD), where)

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        match = _PROPERTY.fullmatch(property_name)
        group, name = (match[1] or match[2], match[3] or match[4]) if match else ("", None)
        if group.lower() == "user" and name:
            return self._read(MetadataColumn(Metadata.USER, name), where)
        for metadata in _ADAPTERS.get(group.lower(), ()):
            if name and metadata.lower() == name.lower():
                return self._read(MetadataColumn(metadata), where)
        known = ", ".join(f"[EventHub].[{metadata}]" for metadata in _ADAPTERS["eventhub"][:4])
        raise self.source.refuse(where, f"'{property_name}' is not supported: there are {known} and [User].[name]")

    def _read(self, column: InputColumn | MetadataColumn, where: exp.Expr) -> Value:
        """Read a column for the rows."""
        self.columns[column.name.lower()] = self._checked(column, where)
        return Value(quoted_name(column.name), column.type)

    def _checked(self, column: InputColumn | MetadataColumn, where: exp.Expr) -> InputColumn | MetadataColumn:
        """Return the column. Raises DefinitionError if the input lacks it, or another is read under an equal name."""
        if isinstance(column, MetadataColumn) and column.metadata not in self.offered.known:
            known = ", ".join(self.offered.known)
            raise self.source.refuse(
                where,
                f"{column.metadata} is no metadata of {self.offered.format} blobs: they have {known}; a field of that "
                "name in the body has to be declared in CREATE TABLE",
            )
        other = self.columns.get(column.name.lower(), column)
        if (type(other), other.name, getattr(other, "path", ())) != (
            type(column),
            column.name,
            getattr(column, "path", ()),
        ):
            raise self.source.refuse(
                where, f"`{column.name}` and `{other.name}` cannot be read by one query: too alike"
            )
        return column

    def _check(self, path: Path, where: exp.Identifier) -> None:
        name = ".".join(path)
        if path[0].lower() == "system" and len(path) > 1:
            raise self.source.refuse(where, "of System there are System.Timestamp() and System.Window().Id")
        if not all(path) or "\n" in name or name.startswith("@"):
            raise self.source.refuse(where, f"`{name}` cannot be a field's name here")
        if name.lower() in _RESERVED:
            raise self.source.refuse(where, f"the name `{name}` is taken by the pipeline")


@dataclass
class StepRelation:
    """A step of WITH. If it selects *, its columns are those that later steps ask for and its own FROM has."""

    source: Source
    name: str
    table: str
    columns: list[tuple[str, Value]]
    starred: "From | None"
    """FROM clause that its * stands for; None if it selects no *."""
    requests: dict[Path, None]
    """Columns that later steps ask of its *, in this pass and those before."""
    types: FieldTypes
    ordered: bool
    unanchored: bool

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        first = names[0].name
        exact = [value for name, value in self.columns if name == first]
        in_any_case = [value for name, value in self.columns if name.lower() == first.lower()]
        if in_any_case:
            value = self.types.refreshed((exact or in_any_case)[0])
            return property_of(self.source, self.types, value, list(names[1:]))
        if self.starred is None:
            return None
        starred = self.starred.unqualified(names)
        if starred is None:
            return None
        path = self._request(tuple(name.name for name in names), names[0])
        return replace(starred, sql=quoted_name(".".join(path)))

    def _request(self, path: Path, where: exp.Identifier) -> Path:
        """Ask the * for a column, and return its path; a column in two spellings is one column."""
        name = ".".join(path).lower()
        if name in (column.lower() for column, _ in self.columns):
            raise self.source.refuse(where, f"`{name}` is both a column and a property here: rename the column")
        for known in self.requests:
            if ".".join(known).lower() == name:
                return known
        self.requests[path] = None
        return path

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        if self.starred is None:
            return [(name, self.types.refreshed(value)) for name, value in self.columns]
        below = self.starred.star(where)
        if below is None:
            return None
        own = {name.lower() for name, _ in self.columns}
        for name, _ in below:
            if name.lower() not in own:
                self.requests.setdefault((name,))
        added = [(name, replace(value, sql=quoted_name(name))) for name, value in below if name.lower() not in own]
        return [*self.columns, *added]

    def record(self, where: exp.Expr) -> Value:
        if self.starred is not None and not self.columns and not self.starred.elements:
            self.requests.setdefault(WHOLE)
            return replace(self.starred.relation.record(where), sql=quoted_name(WHOLE_NAME))
        columns = self.star(where)
        if columns is None:
            raise self.source.refuse(
                where, f"the columns of `{self.name}` are not known: name them there instead of *, or CREATE TABLE"
            )
        for name, value in columns:
            if self.types.untyped(value):
                raise self.source.refuse(
                    where, f"nothing tells the type of `{name}`, which stands in the record: CAST it"
                )
        return Value(json_record(columns), AsaType.RECORD)

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        raise self.source.refuse(where, "GetMetadataPropertyValue needs the input: select it in the step that reads it")


@dataclass(frozen=True)
class Element:
    """An element of an array, or a property of a record, that APPLY adds to a row under a name."""

    alias: str
    column: str
    """SQL of the struct that holds it."""
    fields: tuple[tuple[str, AsaType, bool], ...]
    """Name and type of each field of the struct, and whether it is an element of JSON."""

    @property
    def record(self) -> Value:
        """Return the element as a whole. Its JSON values stand in it as text."""
        columns = [(name, Value(f"{self.column}.`{name}`", kind)) for name, kind, _ in self.fields]
        return Value(json_record(columns), AsaType.RECORD)

    def field(self, source: Source, types: FieldTypes, names: Sequence[exp.Identifier]) -> Value:
        """Return the field that a dotted path names. Raises DefinitionError if there is none."""
        for name, kind, is_element in self.fields:
            if name.lower() == names[0].name.lower():
                value = Value(f"{self.column}.`{name}`", kind, element=is_element)
                return property_of(source, types, value, list(names[1:]))
        known = " and ".join(name for name, _, _ in self.fields)
        raise source.refuse(names[0], f"`{self.alias}` has {known}, and no {names[0].name}")


@dataclass
class From:
    """A FROM clause: a relation under a name, and the elements that APPLY adds to its rows."""

    source: Source
    types: FieldTypes
    qualifier: str
    relation: Relation
    elements: list[Element] = field(default_factory=list)

    def field(self, node: exp.Expr) -> Value | None:
        """Return a column's value; None for a node that is not a dotted path."""
        names = _path(node)
        if not names:
            return None
        value = self.relation.field(names[1:]) if self._is_qualified(names) else self.unqualified(names)
        if value is None:
            raise self.source.refuse(names[0], f"`{self.qualifier}` has no column `{names[0].name}`")
        return value

    def unqualified(self, names: Sequence[exp.Identifier]) -> Value | None:
        """Return the value of a dotted path without the relation's name before it; None if there is no such column."""
        for element in self.elements:
            if names[0].name.lower() == element.alias.lower():
                return element.field(self.source, self.types, names[1:]) if len(names) > 1 else element.record
        if isinstance(self.relation, InputRelation):
            self._refuse_other_name(self.relation, names)
        return self.relation.field(names)

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
        """Return whether a path begins with the relation's name. Raises DefinitionError for the name alone."""
        if names[0].name.lower() != self.qualifier.lower():
            return False
        if len(names) == 1:
            name = f"{self.qualifier}.{names[0].name}"
            raise self.source.refuse(names[0], f"`{names[0].name}` is the name of FROM: write {name} for such a field")
        return True

    def _refuse_other_name(self, relation: InputRelation, names: Sequence[exp.Identifier]) -> None:
        """Raise DefinitionError for a path that begins with the input's alias where FROM gives it another name."""
        if len(names) > 1 and names[0].name.lower() == relation.alias.lower():
            raise self.source.refuse(names[0], f"FROM calls the input `{self.qualifier}`: write that")

    def has(self, name: str) -> bool:
        """Return whether a column of this name is known to stand in a *."""
        relation = self.relation
        if isinstance(relation, InputRelation):
            return name.lower() in relation.columns
        columns = [column for column, _ in relation.columns] if isinstance(relation, StepRelation) else []
        starred = relation.starred if isinstance(relation, StepRelation) else None
        return name.lower() in map(str.lower, columns) or bool(starred and starred.has(name))

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
