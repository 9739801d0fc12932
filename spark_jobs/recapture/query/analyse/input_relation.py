"""An input of the pipeline as a relation: a stream of events, or reference data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.model import AsaType, InputColumn, InputMetadata, Metadata, MetadataColumn
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.json_text import json_record
from recapture.query.analyse.metadata_properties import (
    BLOB_COLUMNS,
    HUB_COLUMNS,
    IOT_HUB,
    iot_hub_property,
    metadata_property,
    suggested,
)
from recapture.query.analyse.tokens import of_token
from recapture.query.analyse.values import Value
from recapture.query.model import input_view, reference_view
from recapture.query.parse.names import RESERVED, InputField, Path
from recapture.query.parse.source import Source
from recapture.query.plan import expressions

_ADDED = {metadata.lower(): metadata for metadata in (*HUB_COLUMNS, *BLOB_COLUMNS)}


@dataclass
class InputRelation:
    """An input of the pipeline: the fields of the body, and the metadata that a stream adds."""

    source: Source
    alias: str
    types: FieldTypes
    offered: InputMetadata | None
    """Metadata that a stream's format has; None for reference data."""
    columns: dict[str, InputColumn | MetadataColumn] = field(default_factory=dict)
    """Columns that are read for the rows, by lower-case name."""
    ordered: bool = True
    ties: None = None

    @property
    def is_reference(self) -> bool:
        return self.offered is None

    @property
    def table(self) -> str:
        return reference_view(self.alias) if self.is_reference else input_view(self.alias)

    def input_field(self, path: Path) -> InputField:
        """Return a field of this input as the query spells it first."""
        return self.types.spell(InputField(self.alias, path))

    @property
    def declared(self) -> Mapping[Path, AsaType | None] | None:
        """Fields that CREATE TABLE declares; None without one."""
        return self.types.declared.get(self.alias)

    def offers(self, metadata: Metadata) -> bool:
        """Return whether the events have this metadata."""
        return self.offered is not None and metadata in self.offered.known

    def event_column(self, names: Sequence[exp.Identifier]) -> InputColumn | MetadataColumn:
        """Return the column of an event that a dotted path names, without reading it for the rows.

        site.id => InputColumn(("site", "id"), …); PartitionId => MetadataColumn(PARTITION_ID)

        Raise DefinitionError if an event has no such column.
        """
        path = tuple(name.name for name in names)
        added = self._added(path)
        if added is not None:
            return self._checked(added, names[0])
        if self._is_of_iot_hub(path):
            return self._of_iot_hub(path[1:], names[0])
        field = self.input_field(path)
        self._check(field.path, names[0])
        for name in names:
            if "start" not in name.meta:
                raise self.source.error(name, f"write [{name.name}], in brackets, for a field of this name")
            self.source.case_sensitive.add(name.meta["start"])
        return self._checked(self._column(field.path, names[0]), names[0])

    def _column(self, path: Path, where: exp.Expr) -> InputColumn:
        """Return the column of a field of the body."""
        field = InputField(self.alias, path)
        return InputColumn(path, self.types.of(field, where), self.types.is_declared(field))

    def _added(self, path: Path) -> MetadataColumn | None:
        """Return the input column that a path names; it wins over a field of the body, even a declared one."""
        metadata = _ADDED.get(path[0].lower()) if len(path) == 1 else None
        if metadata is None or self.is_reference:
            return None
        hides = self.offers(metadata) or self.input_field(path).path not in (self.declared or ())
        return MetadataColumn(metadata) if hides else None

    def columns_to_check(self) -> tuple[InputColumn, ...]:
        """Return the fields of the body that CREATE TABLE declares."""
        return tuple(
            InputColumn(path, kind)
            for path, kind in (self.declared or {}).items()
            if kind is not None and self._added(path) is None and not self._is_of_iot_hub(path)
        )

    def field(self, names: Sequence[exp.Identifier]) -> Value | None:
        return self._value(self.event_column(names), names[0])

    def star(self, where: exp.Expr) -> list[tuple[str, Value]] | None:
        if self.declared is None:
            return None
        columns: dict[str, InputColumn | MetadataColumn] = {
            path[0]: self._added(path) or self._column(path, where) for path in self.declared if len(path) == 1
        }
        declared = {name.lower() for name in columns}
        own = [(name, self._value(column, where)) for name, column in columns.items()]
        return [*own, *((name, value) for name, value in self.starred(where) if name.lower() not in declared)]

    def starred(self, where: exp.Expr) -> list[tuple[str, Value]]:
        """Return the input columns that * has after the fields of the body."""
        if self.is_reference:
            return []
        starred = HUB_COLUMNS if self.offers(Metadata.EVENT_ENQUEUED) else BLOB_COLUMNS
        return [(str(metadata), self._read(MetadataColumn(metadata), where)) for metadata in starred]

    def properties(self, names: Sequence[exp.Identifier]) -> list[tuple[str, Value]]:
        """Return the properties of a record that CREATE TABLE declares, by name."""
        record = [name.name.lower() for name in names]
        paths = [path for path in self.declared or () if [step.lower() for step in path[:-1]] == record]
        return [(path[-1], self._value(self._column(path, names[0]), names[0])) for path in paths]

    def _is_of_iot_hub(self, path: Path) -> bool:
        return self.offers(Metadata.IOT_HUB) and path[0].lower() == "iothub"

    def _of_iot_hub(self, path: Path, where: exp.Expr) -> MetadataColumn:
        column = iot_hub_property(".".join(path))
        if column is None:
            raise self.source.error(where, f"after IoTHub, name one of its properties: {', '.join(IOT_HUB)}")
        self._checked(column, where)
        return column

    def record(self, where: exp.Expr) -> Value:
        return self._read(InputColumn((), AsaType.RECORD), where)

    def metadata(self, property_name: str, where: exp.Expr) -> Value:
        if self.is_reference:
            raise self.source.error(where, "reference data has no metadata: name the input whose events have it")
        assert self.offered is not None
        found = metadata_property(property_name, self.offered)
        if isinstance(found, MetadataColumn):
            return self._read(found, where)
        if found is not None:
            columns = [(name, self._read(column, where)) for name, column in found.items()]
            return Value(json_record(columns), AsaType.RECORD)
        if property_name.strip("[]").lower() == "eventid":
            advice = "PartitionId and [EventHub].[SequenceNumber] identify an event of a hub"
            raise self.source.error(where, f"ASA does not publish how it makes an EventId: {advice}")
        message = f"{self.offered.format} blobs do not have '{property_name}': use {suggested(self.offered)}"
        raise self.source.error(where, message)

    def _value(self, column: InputColumn | MetadataColumn, where: exp.Expr) -> Value:
        """Read a column for the rows, and return its value, whose type may be open."""
        value = self._read(column, where)
        if not isinstance(column, InputColumn):
            return value
        field = InputField(self.alias, column.path)
        if column.declared:
            return replace(value, fields=(field,))
        kind = None
        if self.types.has_kind(field):
            kind = self._read(InputColumn(column.path, AsaType.STRING, is_kind=True), where).node
        value = replace(value, fields=(field,), undeclared=(field,), kind=kind)
        return of_token(value, value.node) if column.is_token else value

    def _read(self, column: InputColumn | MetadataColumn, where: exp.Expr) -> Value:
        """Read a column for the rows."""
        self.columns[column.name.lower()] = self._checked(column, where)
        return Value(expressions.column(column.name), column.type)

    def _checked(self, column: InputColumn | MetadataColumn, where: exp.Expr) -> InputColumn | MetadataColumn:
        """Return the column. Raise DefinitionError if the input lacks it, or another is read under an equal name."""
        if isinstance(column, MetadataColumn) and self.offered and column.metadata not in self.offered.known:
            known = ", ".join(self.offered.known)
            advice = f"they have {known}; a field of that name in the body has to be declared in CREATE TABLE"
            message = f"{column.metadata} is not metadata of {self.offered.format} blobs: {advice}"
            raise self.source.error(where, message)
        other = self.columns.get(column.name.lower(), column)
        if len({(type(read), read.name, getattr(read, "path", ())) for read in (column, other)}) > 1:
            reason = f"`{column.name}` and `{other.name}` are different fields with the same name, except for case"
            raise self.source.error(where, f"{reason}: a query can read only one of them; leave one out")
        return column

    def _check(self, path: Path, where: exp.Identifier) -> None:
        name = ".".join(path)
        if path[0].lower() == "system" and len(path) > 1:
            raise self.source.error(where, "System has no such property: use System.Timestamp() or System.Window().Id")
        if not all(path) or "\n" in name:
            raise self.source.error(where, f"`{name}` cannot be a field's name here")
        if name.lower() in RESERVED:
            raise self.source.error(where, f"the name `{name}` is reserved: no field that a query reads may have it")

    def has(self, name: str) -> bool:
        return name.lower() in self.columns

    def lists(self, name: str) -> bool:
        return self.declared is not None and self.can_have(name)

    def can_have(self, name: str) -> bool:
        return (
            self.declared is None
            or name.lower() in (path[0].lower() for path in self.declared)
            or self._added((name,)) is not None
            or self._is_of_iot_hub((name,))
        )
