"""The types of the body's fields: declared by CREATE TABLE, else inferred from their use (see `inference`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.generate.values import Value
from recapture.query.parse.names import Path
from recapture.query.parse.source import Source


@dataclass
class FieldTypes:
    """The types of the fields, as far as they are known."""

    source: Source
    input_alias: str
    declared: Mapping[Path, AsaType | None] | None
    """Types that CREATE TABLE declares; None without one. A type that is None is left to the uses of the field."""
    only_declared: bool = True
    """Whether a query may only read the declared fields, if there are any."""
    closed: bool = False
    """Whether this is the last pass, in which no field is open."""
    _spellings: dict[Path, Path] = field(default_factory=dict)
    """First spelling of every field in the query, by its path in lower case."""
    _known: dict[Path, tuple[AsaType, exp.Expr]] = field(default_factory=dict)
    _keys: dict[Path, exp.Expr] = field(default_factory=dict)
    _measures: set[Path] = field(default_factory=set)
    _texts: set[Path] = field(default_factory=set)
    kinds: set[Path] = field(default_factory=set)
    """Fields of which a use needs the type of every single value."""
    _kinds_of_pass: frozenset[Path] = frozenset()
    """Those of them that this pass reads."""

    def __post_init__(self) -> None:
        for path in self.declared or ():
            self.spell(path)

    def spell(self, path: Path) -> Path:
        """Return a field's path as the query spells it first: names that differ in letter case are one field.

        CREATE TABLE telemetry (deviceId bigint) SELECT DeviceID => ("deviceId",)
        """
        return self._spellings.setdefault(tuple(step.lower() for step in path), path)

    def of(self, path: Path, where: exp.Expr) -> AsaType:
        """Return the type of a field, nvarchar(max) while it is open.

        Raise DefinitionError for a field that CREATE TABLE leaves out.
        """
        is_missing = self.declared is not None and path not in self.declared and not self._within_record(path)
        if is_missing and self.only_declared:
            raise self.source.error(where, f"`{'.'.join(path)}` is missing in CREATE TABLE: declare every field")
        return self._type(path) or AsaType.TEXT

    def are_open(self, paths: Iterable[Path]) -> bool:
        """Return whether these are fields, and a use may still decide the type of all of them."""
        paths = list(paths)
        return bool(paths) and not self.closed and not any(self._decided(path) for path in paths)

    def are_undecided(self, paths: Iterable[Path]) -> bool:
        """Return whether these are fields, and neither CREATE TABLE nor a use has decided the type of any of them."""
        paths = list(paths)
        return bool(paths) and not any(self._decided(path) for path in paths)

    def decide(self, paths: Iterable[Path], kind: AsaType, where: exp.Expr) -> None:
        """Let open fields be of a type. Raise DefinitionError for keys, whose use as a number may be a mistake."""
        for path in paths:
            if path in self._keys and path not in self._measures and kind is not AsaType.TEXT:
                raise self._doubtful_key(path, kind, where)
            self._known[path] = (kind, where)

    def untyped(self, value: Value) -> bool:
        """Return whether a value may be of any type of JSON, in the last pass: its text would be a guess."""
        return value.is_json_element or self.is_of_open_type(value)

    def is_of_open_type(self, value: Value) -> bool:
        """Return whether nothing decides the type of a value that is not taken out of JSON, in the last pass."""
        is_open = any(not self._decided(path) for path in value.undeclared)
        return self.closed and value.type is AsaType.TEXT and is_open

    def refreshed(self, value: Value) -> Value:
        """Return a step's column in the type that a use of its fields has decided since the step was compiled."""
        kinds = {self._known[path][0] for path in value.fields if path in self._known}
        whole = all(path in self._known for path in value.fields)
        return replace(value, type=kinds.pop()) if whole and len(kinds) == 1 else value

    def is_declared(self, path: Path) -> bool:
        """Return whether CREATE TABLE declares the type of a field."""
        return (self.declared or {}).get(path) is not None

    def request_kinds(self, paths: Iterable[Path]) -> bool:
        """Ask for the type of every single value of some fields; return whether a later pass will know more of them."""
        requested = set(paths)
        self.kinds |= requested
        return not requested <= self._kinds_of_pass

    def has_kind(self, path: Path) -> bool:
        """Return whether this pass reads the type of every single value of a field."""
        return path in self._kinds_of_pass

    def begin_pass(self) -> None:
        """Begin a pass over the script: it reads the types of single values that earlier passes asked for."""
        self._kinds_of_pass = frozenset(self.kinds)

    def note_text(self, paths: Iterable[Path]) -> None:
        """Note fields of open type that are used as texts; another use may still decide their type."""
        self._texts.update(paths)

    def note_measures(self, paths: Iterable[Path]) -> None:
        """Note fields that are aggregated as numbers: they are measures, not identifiers, even as keys."""
        self._measures.update(paths)

    def note_key(self, path: Path, where: exp.Expr) -> None:
        """Note a field that GROUP BY or OVER names. Raise DefinitionError if a use has made it a number."""
        self._keys[path] = where
        known = self._known[path][0] if path in self._known and path not in self._measures else AsaType.TEXT
        if known not in (AsaType.TEXT, AsaType.DATETIME):
            kind, use = self._known[path]
            raise self._doubtful_key(path, kind, use)

    def disagreement(self, paths: Iterable[Path], kind: AsaType, where: exp.Expr) -> DefinitionError | None:
        """Return the error for a field that is used as `kind` here and as another type elsewhere, if there is one."""
        for path in paths:
            if path in self._known and self._known[path][0] is not AsaType.DATETIME:
                held = self._known[path][0]
                message = f"`{'.'.join(path)}` is used as {kind} here and as {held} elsewhere: {self.advice(path)}"
                return self.source.error(where, message)
        return None

    def advice(self, path: Path) -> str:
        """Return what to write where the use does not tell the type."""
        table = f"CREATE TABLE {self.input_alias} ({'.'.join(path)} bigint, …)"
        return f"declare the type of every field, such as {table}"

    def state(self) -> dict[Path, AsaType]:
        """Return the types that uses have decided; equal before and after a pass that learns nothing."""
        return {path: kind for path, (kind, _) in self._known.items()}

    def top_level(self) -> dict[str, AsaType | None]:
        """Return the declared fields and those that the query reads, with their types; None if no use decides it.

        A field of which the query reads a property is a record.
        """
        types: dict[str, AsaType | None] = {}
        for path in filter(None, self._spellings.values()):
            name = self.spell(path[:1])[0]
            text = AsaType.TEXT if path in self._texts else None
            types[name] = AsaType.RECORD if len(path) > 1 else types.get(name) or self._type(path) or text
        return types

    def _type(self, path: Path) -> AsaType | None:
        """Return the type of a field; None if neither CREATE TABLE nor a use decides it."""
        return (self.declared or {}).get(path) or (self._known[path][0] if path in self._known else None)

    def _decided(self, path: Path) -> bool:
        return self._type(path) is not None

    def _within_record(self, path: Path) -> bool:
        declared = self.declared or {}
        return not path or any(
            declared.get(self.spell(path[:depth])) is AsaType.RECORD for depth in range(1, len(path))
        )

    def _doubtful_key(self, path: Path, kind: AsaType, where: exp.Expr) -> DefinitionError:
        message = f"`{'.'.join(path)}` is a key, but is used as {kind} here: {self.advice(path)}"
        return self.source.error(where, message)
