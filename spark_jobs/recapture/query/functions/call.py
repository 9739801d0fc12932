"""One call of a scalar function, as the function sees it: its arguments compiled to what it asks for."""

from typing import Protocol

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.generate.values import Value


class Call(Protocol):
    """A call. Arguments count from 0; each method compiles one, and refuses what it cannot be, with line and column.

    Asking for a type also tells the type of a field that nothing else declares (design, column types).
    """

    @property
    def name(self) -> str:
        """The function's name in capitals."""

    @property
    def count(self) -> int:
        """How many arguments it was given."""

    def value(self, place: int) -> Value:
        """An argument of any type."""

    def of(self, place: int, *types: AsaType) -> Value:
        """An argument of one of the types; a field or a JSON element whose type is open takes the first.

        The literal NULL passes, with the first type. A bigint passes as FLOAT where only FLOAT is asked for, cast; a
        text literal passes as DATETIME.
        """

    def unify(self, *places: int) -> tuple[list[Value], AsaType]:
        """Arguments brought to one type, as in CASE: bigint widens to float, a literal text to datetime."""

    def condition(self, place: int) -> str:
        """The SQL of an argument that is a condition, as in IIF."""

    def equal(self, place: int, other: int) -> str:
        """The SQL of the condition that two arguments are equal, as in NULLIF."""

    def word(self, place: int) -> str:
        """An argument that is a bare word, such as a date part, in lower case."""

    def literal(self, place: int) -> str:
        """An argument that is a text literal, as it reads."""

    def number(self, place: int) -> int:
        """An argument that is a whole number, written out; it may be negative."""

    def refuse(self, place: int | None, message: str) -> DefinitionError:
        """The error for an argument, or for the whole call, to be raised by the function."""
