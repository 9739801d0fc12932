"""The types of the body's fields: declared by CREATE TABLE, else inferred from their use (see `inference`)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.generate.values import Value
from recapture.query.parse.names import Path
from recapture.query.parse.source import Source


@dataclass
class FieldTypes:
    """What is known of the fields' types so far."""

    source: Source
    input_alias: str
    declared: dict[Path, AsaType] | None
    closed: bool = False
    """Whether this is the last pass, in which nothing is open."""
    _known: dict[Path, tuple[AsaType, exp.Expr]] = field(default_factory=dict)
    _keys: dict[Path, exp.Expr] = field(default_factory=dict)
    _measures: set[Path] = field(default_factory=set)

    def of(self, path: Path, where: exp.Expr) -> AsaType:
        """The type of a field, nvarchar(max) while it is open; refuses one that CREATE TABLE leaves out."""
        if self.declared is not None and path in self.declared:
            return self.declared[path]
        if self.declared is not None and not self._within_record(path):
            raise self.source.refuse(where, f"`{'.'.join(path)}` is missing in CREATE TABLE: declare every field")
        return self._known[path][0] if path in self._known else AsaType.TEXT

    def open(self, paths: Iterable[Path]) -> bool:
        """Whether all of these are fields whose type is not known yet."""
        paths = list(paths)
        return bool(paths) and not self.closed and not any(self._decided(path) for path in paths)

    def by_use(self, paths: Iterable[Path]) -> bool:
        """Whether all of these are fields whose type no use has told."""
        paths = list(paths)
        return bool(paths) and not any(self._decided(path) for path in paths)

    def want(self, paths: Iterable[Path], kind: AsaType, where: exp.Expr) -> None:
        """Let open fields be of a type."""
        for path in paths:
            if path in self._keys and path not in self._measures and kind is not AsaType.TEXT:
                raise self._doubtful_key(path, kind, where)
            self._known[path] = (kind, where)

    def untyped(self, value: Value) -> bool:
        """Whether nothing told a value's type, in the last pass: as text in a JSON document it would be a guess."""
        return value.element or (self.closed and self.by_use(value.fields))

    def refreshed(self, value: Value) -> Value:
        """A step's column, in the type that a use of its fields has told since the step was compiled."""
        kinds = {self._known[path][0] for path in value.fields if path in self._known}
        whole = all(path in self._known for path in value.fields)
        return replace(value, type=kinds.pop()) if whole and len(kinds) == 1 else value

    def measured(self, paths: Iterable[Path]) -> None:
        """Note fields that are aggregated as numbers: they are measures and no identifiers, even as keys."""
        self._measures.update(paths)

    def key(self, path: Path, where: exp.Expr) -> None:
        """Note a field that GROUP BY or OVER names: it stands for itself, so only an aggregate may tell its type."""
        self._keys[path] = where
        known = self._known[path][0] if path in self._known and path not in self._measures else AsaType.TEXT
        if known not in (AsaType.TEXT, AsaType.DATETIME):
            kind, use = self._known[path]
            raise self._doubtful_key(path, kind, use)

    def disagree(self, paths: Iterable[Path], kind: AsaType, where: exp.Expr) -> DefinitionError | None:
        """The error for a field that is used as one type and was used as another, if that is what it is."""
        for path in paths:
            if path in self._known and self._known[path][0] is not AsaType.DATETIME:
                held = self._known[path][0]
                told = f"`{'.'.join(path)}` is used as {kind} here and as {held} elsewhere: {self.advice(path)}"
                return self.source.refuse(where, told)
        return None

    def advice(self, path: Path) -> str:
        """What to write where the use does not tell the type."""
        table = f"CREATE TABLE {self.input_alias} ({'.'.join(path)} bigint, …)"
        return f"say the type of every field, such as {table}"

    def state(self) -> dict[Path, AsaType]:
        """What the uses told so far; equal for two passes when nothing new was learnt."""
        return {path: kind for path, (kind, _) in self._known.items()}

    def _decided(self, path: Path) -> bool:
        return path in self._known or (self.declared is not None and path in self.declared)

    def _within_record(self, path: Path) -> bool:
        declared = self.declared or {}
        return not path or any(declared.get(path[:depth]) is AsaType.RECORD for depth in range(1, len(path)))

    def _doubtful_key(self, path: Path, kind: AsaType, where: exp.Expr) -> DefinitionError:
        told = f"`{'.'.join(path)}` is a key and used as {kind} here, so which is it? {self.advice(path)}"
        return self.source.refuse(where, told)
