"""The CREATE TABLE of an input: the type of each field, and the comments that say how well it fits."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from recapture.formats.fields import Field
from recapture.model import AsaType
from recapture.query.parse.names import Path, can_name_column, can_name_field

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDENT = "    "


@dataclass(frozen=True)
class TypedField:
    """A field with the type that CREATE TABLE declares."""

    field: Field
    """The field; it has no events if the query reads it and the sample does not have it."""
    type: AsaType | None
    """Type that holds all values of the sample; None if the field is left out."""
    left_out: str | None = None
    """Why CREATE TABLE leaves the field out; None if it declares the field."""


@dataclass(frozen=True)
class Sampled:
    """What a sample consists of."""

    events: int
    """Number of events, or of rows, that could be read."""
    only_strings: bool = False
    """Whether bodies have no other values than strings and null."""
    is_reference: bool = False
    """Whether it is of reference data."""

    @property
    def unit(self) -> str:
        """What an event is called."""
        return "row" if self.is_reference else "event"


def typed(
    fields: Iterable[Field], used: Mapping[Path, AsaType | None], sampled: Sampled, timing: Collection[Path] = ()
) -> list[TypedField]:
    """Return the fields, those that every event has in one type with this type, and why the others are left out.

    ASA drops an event that lacks a declared field, or has a value of another type in it. A property of a record may be
    missing. So may a field of `timing`, in lower case: without it, an event is dropped in any case. `used` has the
    fields that the query reads, with the types that their use decides; it may also contain fields that the query does
    not read. A field that only the query has comes last.
    """
    uses = {_lower(path): type_ for path, type_ in used.items()}
    needed = {path[:length] for path in timing for length in range(1, len(path) + 1)}
    seen = list(fields)
    paths = {_lower(field.path) for field in seen}
    unseen = [Field(path[-1], record=path[:-1]) for path in used if _lower(path) not in paths]
    typed_fields = []
    for field in [*seen, *unseen]:
        type_ = type_of(field.kinds, uses.get(_lower(field.path)), only_strings=sampled.only_strings)
        path = _lower(field.path)
        reason = _left_out(field, type_, sampled, bool(field.record) or path in needed, path in uses or path in needed)
        typed_fields.append(TypedField(field, None if reason else type_, reason))
    return typed_fields


def type_of(
    types: Iterable[AsaType | None], use: AsaType | None = None, *, only_strings: bool = False
) -> AsaType | None:
    """Return the type that holds values of these types, and that the query asks for if there is a choice; or None.

    bigint => bigint · bigint, float => float · datetime => datetime, or nvarchar(max) if it is used as text ·
    bigint, nvarchar(max) => None, or nvarchar(max) if all values are texts

    A field whose values are all integers stays a bigint, even if it is used as float.
    """
    known = {type_ for type_ in types if type_ is not None}
    holding = [type_ for type_ in _BY_PREFERENCE if known and all(_fits(other, type_, only_strings) for other in known)]
    if only_strings and not known:
        return AsaType.STRING
    if use in holding and not (known == {AsaType.BIGINT} and use is AsaType.FLOAT):
        return use
    return next(iter(holding), None)


def statement(alias: str, fields: Sequence[TypedField], sampled: Sampled, origin: str) -> str:
    """Return CREATE TABLE with a comment on each field, below the line `origin`; only comments if it has no field."""
    declared = [typed_field for typed_field in fields if typed_field.left_out is None]
    columns = [f"{'.'.join(map(_quoted, typed_field.field.path))} {typed_field.type}" for typed_field in declared]
    columns = [column + "," * (index < len(columns) - 1) for index, column in enumerate(columns)]
    width = max(map(len, columns), default=0)
    lines = [
        f"{_INDENT}{column:{width}}  -- {comment(typed_field, sampled)}"
        for column, typed_field in zip(columns, declared, strict=True)
    ]
    left_out = [
        f"{_INDENT}-- {_plain(typed_field.field)} is left out: {typed_field.left_out}"
        for typed_field in fields
        if typed_field.left_out is not None
    ]
    opening, closing = ([f"CREATE TABLE {_quoted(alias)} ("], [");"]) if declared else ([], [])
    return "\n".join([f"-- {origin}", *opening, *lines, *left_out, *closing]) + "\n"


def comment(typed_field: TypedField, sampled: Sampled) -> str:
    """Return what the sample says about a declared field: its share of the events, its values and its spellings."""
    field = typed_field.field
    parts = [_presence(field, sampled)]
    if not field.record and field.events < sampled.events:
        parts.append("the others have no time or no key of OVER, and are dropped in any case")
    if set(field.kinds) != {typed_field.type}:
        parts.append(_shares(field))
    others = [spelling for spelling in field.spellings if spelling != field.name]
    if others:
        parts.append(f"also spelt {', '.join(others)}")
    return "; ".join(parts)


def _left_out(field: Field, type_: AsaType | None, sampled: Sampled, may_be_missing: bool, is_read: bool) -> str | None:
    """Return why a field cannot be declared without a loss; None if it can."""
    consequence = "would stop the run at the others" if sampled.is_reference else "would drop the others"
    if not can_name_field(field.name):
        return "a query cannot read a field of this name"
    if not can_name_column(field.name) and not is_read:
        return "* cannot give a column of this name, and the query does not read it by name"
    if not field.events:
        return "not seen, but the query reads it"
    if not may_be_missing and field.events < sampled.events:
        return f"{_presence(field, sampled)}; CREATE TABLE {consequence}"
    if set(field.kinds) == {None} and type_ is None:
        return "always null, so its type is not known"
    return None if type_ else f"{_shares(field)}; CREATE TABLE takes one type and {consequence}"


def _presence(field: Field, sampled: Sampled) -> str:
    if field.events == sampled.events:
        return f"in every {sampled.unit}"
    return f"in {_share(field.events, sampled.events)} of the {sampled.unit}s"


def _shares(field: Field) -> str:
    """Return the types of a field's values with their shares: 75.0% bigint, 25.0% null"""
    frequent_first = sorted(field.kinds.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{_share(count, field.events)} {type_ or 'null'}" for type_, count in frequent_first)


def _plain(field: Field) -> str:
    """Return a field's path, in quotation marks unless it is plain."""
    return field.dotted if all(map(_PLAIN.fullmatch, field.path)) else json.dumps(field.dotted)


_BY_PREFERENCE = (
    *(AsaType.BIGINT, AsaType.FLOAT, AsaType.DATETIME, AsaType.BIT, AsaType.RECORD, AsaType.ARRAY, AsaType.STRING),
)
"""Types from the narrowest on."""


def _fits(type_: AsaType, into: AsaType, only_strings: bool) -> bool:
    """Return whether CREATE TABLE takes values of one type into a field of another (see `json_bodies.declared`)."""
    is_wider = (type_, into) in ((AsaType.BIGINT, AsaType.FLOAT), (AsaType.DATETIME, AsaType.STRING))
    return type_ is into or is_wider or (only_strings and into is AsaType.STRING)


def _lower(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _share(part: int, whole: int) -> str:
    """Return a share in percent; one that is neither none nor all is never shown as 0.0% or 100.0%."""
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}%"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"[{name.replace(']', ']]')}]"
