"""The CREATE TABLE of an input: the type of each field, and the comments that say how well it fits."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recapture.formats.fields import Field
from recapture.model import AsaType
from recapture.query.parse.names import Path, can_name_field

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDENT = "    "


@dataclass(frozen=True)
class TypedField:
    """A field with its type."""

    field: Field
    """The field; it has no events if the query reads it and the sample does not have it."""
    type: AsaType

    @property
    def misfits(self) -> dict[AsaType | None, int]:
        """Number of events by the type of the value, for values that the field's type cannot hold."""
        return {kind: events for kind, events in self.field.kinds.items() if not _fits(kind, self.type)}


def typed(fields: Iterable[Field], used: Mapping[Path, AsaType | None]) -> list[TypedField]:
    """Return the fields in the types that fit their values and the query.

    `used` has the fields that the query reads, with the types that their use decides; it may also contain fields that
    the query does not read. A field that only the query has comes last: in the type of its use, or else as
    nvarchar(max).
    """
    uses = {_lower(path): kind for path, kind in used.items()}
    sampled = [TypedField(field, type_of(field.kinds, uses.get(_lower(field.path)))) for field in fields]
    paths = {_lower(typed_field.field.path) for typed_field in sampled}
    unseen = [Field(path[-1], record=path[:-1]) for path in used if _lower(path) not in paths]
    return [*sampled, *(TypedField(field, used[field.path] or AsaType.TEXT) for field in unseen)]


def type_of(kinds: Iterable[AsaType | None], use: AsaType | None = None) -> AsaType:
    """Return the type of a field whose values have these types, and which the query uses as `use`, if it is not None.

    bigint => bigint · bigint, float => float · bigint, nvarchar(max) => nvarchar(max), or float if it is used as float

    A field whose values are all whole numbers stays a bigint, even if it is used as float.
    """
    known = {kind for kind in kinds if kind is not None}
    best = AsaType.TEXT
    if len(known) == 1:
        [best] = known
    elif known == {AsaType.BIGINT, AsaType.FLOAT}:
        best = AsaType.FLOAT
    only_widens = (best, use) == (AsaType.BIGINT, AsaType.FLOAT)
    if use is None or only_widens or (known and not any(_fits(kind, use) for kind in known)):
        return best
    return use


def statement(alias: str, fields: Sequence[TypedField], events: int, origin: str, *, is_reference: bool = False) -> str:
    """Return CREATE TABLE for an input, or for reference data, with a comment on each field.

    `events` is the number of events, or rows, of the sample that could be read. `origin` is a line that says where the
    sample comes from.
    """
    declared = [typed_field for typed_field in fields if can_name_field(typed_field.field.name)]
    columns = [f"{'.'.join(map(_quoted, typed_field.field.path))} {typed_field.type}" for typed_field in declared]
    columns = [column + "," * (index < len(columns) - 1) for index, column in enumerate(columns)]
    width = max(map(len, columns), default=0)
    lines = [
        f"{_INDENT}{column:{width}}  -- {comment(typed_field, events, is_reference=is_reference)}"
        for column, typed_field in zip(columns, declared, strict=True)
    ]
    left_out = [
        f"{_INDENT}-- {json.dumps(typed_field.field.dotted)} is left out: a query cannot read a field of this name"
        for typed_field in fields
        if typed_field not in declared
    ]
    return "\n".join([f"-- {origin}", f"CREATE TABLE {_quoted(alias)} (", *lines, *left_out, ");"]) + "\n"


def comment(typed_field: TypedField, events: int, *, is_reference: bool = False) -> str:
    """Return what the sample says about a field: its share of these events or rows, its values and its spellings."""
    field = typed_field.field
    one = "row" if is_reference else "event"
    if not field.events:
        return "not seen, but the query reads it"
    parts = [f"in every {one}" if field.events == events else f"in {_share(field.events, events)} of the {one}s"]
    if set(field.kinds) != {typed_field.type}:
        parts.append(", ".join(f"{_share(count, field.events)} {kind or 'null'}" for kind, count in _sorted(field)))
    if typed_field.misfits:
        subject, consequence = ("a row", "stops the run") if is_reference else ("an event", "is quarantined")
        parts.append(f"{subject} whose value is not a {typed_field.type} {consequence}")
    elif typed_field.type is AsaType.TEXT and set(field.kinds) - {AsaType.TEXT, None}:
        parts.append("every value is read as text")
    others = [spelling for spelling in field.spellings if spelling != field.name]
    if others:
        parts.append(f"also spelt {', '.join(others)}")
    return "; ".join(parts)


def _fits(kind: AsaType | None, into: AsaType) -> bool:
    """Return whether a reader takes values of one type into a field of another."""
    numbers = (AsaType.BIGINT, AsaType.FLOAT)
    return (
        kind is None
        or into in (kind, AsaType.TEXT)
        or (kind, into) == numbers
        or (kind in numbers and into is AsaType.BIT)
    )


def _lower(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _sorted(field: Field) -> list[tuple[AsaType | None, int]]:
    """Return the types of a field's values, the most frequent first."""
    return sorted(field.kinds.items(), key=lambda entry: -entry[1])


def _share(part: int, whole: int) -> str:
    """Return a share in percent; one that is neither none nor all is never shown as 0.0% or 100.0%."""
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}%"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"[{name.replace(']', ']]')}]"
