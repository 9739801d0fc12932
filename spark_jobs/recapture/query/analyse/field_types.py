"""The types of the fields of bodies: declared by CREATE TABLE, else decided by their uses.

A script is compiled twice. The first time, fields are open, and a use that asks for a type decides it. A use of several
values whose types are all open is noted. `solve` lets these uses decide the types that follow from others. The second
time, all types are known: a field whose type no use decides is nvarchar(max). For example:

    SELECT COALESCE(x, y) AS z, y * 2 AS v INTO output FROM input

    first:  COALESCE(x, y) is noted, y * 2 makes y a float
    solve:  COALESCE(x, y) makes x a float
    second: z is a float
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.parse.names import InputField, Path
from recapture.query.parse.source import Source

T = TypeVar("T")


@dataclass
class FieldTypes:
    """The types of the fields, as far as they are known."""

    source: Source
    declared: Mapping[str, Mapping[Path, AsaType | None]]
    """Types that CREATE TABLE declares, by the alias of an input; no entry without one.

    A type that is None is left to the uses of the field.
    """
    only_declared: bool = True
    """Whether a query may only read the declared fields of an input that has any."""
    only_strings: Collection[str] = ()
    """Aliases of the inputs whose bodies have only strings."""
    closed: bool = False
    """Whether the types are solved, so that no field is open."""
    _spellings: dict[InputField, Path] = field(default_factory=dict)
    """First spelling of every field in the query, by the field in lower case."""
    _known: dict[InputField, AsaType] = field(default_factory=dict)
    _suggested: dict[InputField, AsaType] = field(default_factory=dict)
    _strings: set[InputField] = field(default_factory=set)
    _uses: list[Callable[[], object]] = field(default_factory=list)
    """Uses that may decide types once other types are known, in the order of the query."""
    _kinds: set[InputField] = field(default_factory=set)
    """Fields of which a use needs the type of every single value."""
    _written: list[Value] = field(default_factory=list)
    """Values of which a use needs the type of every single value, unless one type is that of all."""

    def __post_init__(self) -> None:
        for input_, types in self.declared.items():
            for path in types:
                self.spell(InputField(input_, path))

    def spell(self, field: InputField) -> InputField:
        """Return a field as the query spells it first: names that differ in case are one field.

        CREATE TABLE telemetry (deviceId bigint) SELECT DeviceID => deviceId of telemetry
        """
        lower = tuple(step.lower() for step in field.path)
        return field._replace(path=self._spellings.setdefault(field._replace(path=lower), field.path))

    def of(self, field: InputField, where: exp.Expr) -> AsaType:
        """Return the type of a field, nvarchar(max) while it is open.

        Raise DefinitionError for a field that CREATE TABLE leaves out.
        """
        declared = self.declared.get(field.input)
        is_missing = declared is not None and field.path not in declared and not self._within_record(field)
        if is_missing and self.only_declared:
            raise self.source.error(where, f"`{field.name}` is missing in CREATE TABLE: declare every field")
        return self._type(field) or AsaType.STRING

    def are_open(self, fields: Iterable[InputField]) -> bool:
        """Return whether these are fields, and a use may still decide the type of all of them."""
        return not self.closed and self.are_undecided(fields)

    def are_undecided(self, fields: Iterable[InputField]) -> bool:
        """Return whether these are fields, and neither CREATE TABLE nor a use has decided the type of any of them."""
        fields = list(fields)
        return bool(fields) and not any(map(self._type, fields))

    def decide(self, fields: Iterable[InputField], type_: AsaType) -> None:
        """Let open fields be of a type."""
        self._known |= dict.fromkeys(fields, type_)

    def suggest(self, fields: Iterable[InputField], type_: AsaType) -> None:
        """Let open fields be of a type where one is needed: in a published column."""
        for input_field in fields:
            self._suggested.setdefault(input_field, type_)

    def used_together(self, values: list[Value], use: Callable[[list[Value]], T]) -> T:
        """Return what a use of several values gives. It is repeated with the types that are known later."""
        if any(self.are_open(value.fields) for value in values):
            self._uses.append(lambda: use(list(map(self.refreshed, values))))
        return use(values)

    def solve(self) -> None:
        """Let the noted uses decide types until they decide nothing more. No field is open afterwards."""
        uses, before = tuple(self._uses), None
        while before != (before := (len(self._known), len(self._suggested))):
            for use in uses:
                with suppress(DefinitionError):  # It is raised again where the script is compiled with these types.
                    use()
        self.closed = True
        for value in map(self.refreshed, self._written):
            if self.is_of_open_type(value):
                self._kinds.update(value.undeclared)

    def are_of_strings(self, fields: Iterable[InputField]) -> bool:
        """Return whether one of these fields is of an input whose bodies have only strings."""
        return any(field.input in self.only_strings for field in fields)

    def suggested(self, fields: Iterable[InputField]) -> AsaType | None:
        """Return the type that uses suggest for all of these open fields; None if they suggest none."""
        types = {self._suggested.get(field) for field in fields}
        return types.pop() if len(types) == 1 else None

    def publish(self, fields: Sequence[InputField]) -> None:
        """Let open fields that are published have the type that uses suggest for them."""

        def decide() -> None:
            for input_field in fields:
                if input_field in self._suggested and self.are_open([input_field]):
                    self.decide([input_field], self._suggested[input_field])

        decide()
        self._uses.append(decide)

    def untyped(self, value: Value) -> bool:
        """Return whether a value may be of any type of JSON, once types are solved: its text would be a guess."""
        return value.is_json_element or self.is_of_open_type(value)

    def is_of_open_type(self, value: Value) -> bool:
        """Return whether nothing decides the type of a value that is not taken out of JSON, once types are solved."""
        return self.closed and value.type is AsaType.STRING and not all(map(self._type, value.undeclared))

    def is_known_of_each(self, value: Value) -> bool:
        """Return whether the type of a value is known, or that of each single value is; if it is asked for, it is."""
        if not self.closed:
            self._written.append(value)
        return not self.untyped(value) or (value.kind is not None and not value.is_json_element)

    def refreshed(self, value: Value) -> Value:
        """Return a step's column in the type that a use of its fields has decided since the step was compiled."""
        types = {self._known[field] for field in value.fields if field in self._known}
        whole = all(field in self._known for field in value.fields)
        return replace(value, type=types.pop()) if whole and len(types) == 1 else value

    def is_declared(self, field: InputField) -> bool:
        """Return whether CREATE TABLE declares the type of a field."""
        return self._declared(field) is not None

    def request_kinds(self, fields: Iterable[InputField]) -> bool:
        """Ask for the type of every single value of some fields. Return whether they will be known: not any more."""
        if not self.closed:
            self._kinds.update(fields)
        return not self.closed

    def has_kind(self, field: InputField) -> bool:
        """Return whether the type of every single value of a field is read."""
        return self.closed and field in self._kinds

    def note_string(self, fields: Iterable[InputField]) -> None:
        """Note fields of open type that are used as texts; another use may still decide their type."""
        self._strings.update(fields)

    def disagreement(self, fields: Iterable[InputField], type_: AsaType, where: exp.Expr) -> DefinitionError | None:
        """Return the error for a field that is used as `type_` here and as another type elsewhere, if there is one."""
        for used in fields:
            held = self._known.get(used, AsaType.DATETIME)
            if held is not AsaType.DATETIME:
                message = f"`{used.name}` is used as {type_} here and as {held} elsewhere: {self.advice(used)}"
                return self.source.error(where, message)
        return None

    def advice(self, field: InputField) -> str:
        """Return what to write where the use does not tell the type."""
        declared = f"CREATE TABLE {field.input} ({field.name} bigint, …)"
        return f"declare the type of every field, such as {declared}; recapture infer FILE --write does so"

    def used(self, input_: str) -> dict[Path, AsaType | None]:
        """Return an input's declared fields and those that the query reads, with their types; None if no use decides.

        A field of which the query reads a property is a record. The property itself is returned if it is declared.
        """
        types: dict[Path, AsaType | None] = {}
        for path in [path for lower, path in self._spellings.items() if lower.input == input_ and path]:
            field = InputField(input_, path)
            type_ = self._type(field) or self.suggested([field]) or (AsaType.STRING if field in self._strings else None)
            top = self.spell(field._replace(path=path[:1])).path
            types[top] = AsaType.RECORD if len(path) > 1 else types.get(top) or type_
            if len(path) > 1 and path in self.declared.get(input_, {}):
                types[path] = type_
        return types

    def _type(self, field: InputField) -> AsaType | None:
        """Return the type of a field; None if neither CREATE TABLE nor a use decides it."""
        return self._declared(field) or self._known.get(field)

    def _within_record(self, field: InputField) -> bool:
        records = (self.spell(field._replace(path=field.path[:depth])) for depth in range(1, len(field.path)))
        return not field.path or any(self._declared(record) is AsaType.RECORD for record in records)

    def _declared(self, field: InputField) -> AsaType | None:
        return self.declared.get(field.input, {}).get(field.path)
