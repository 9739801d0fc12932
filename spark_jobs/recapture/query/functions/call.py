"""One call of a scalar function, as the function sees it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import Constant, Expr
from recapture.query.plan.operations import Op

MANY = 1_000
"""Number of arguments that no query reaches."""


class Call(Protocol):
    """A call. Arguments count from 0. Each method compiles one, or raises DefinitionError with its line and column.

    Asking for a type also decides the type of a field that nothing declares (see analyse.field_types).
    """

    @property
    def name(self) -> str:
        """Name of the function, in capitals."""

    @property
    def count(self) -> int:
        """Number of arguments."""

    def value(self, index: int) -> Value:
        """Return an argument of any type."""

    def argument(self, index: int, *types: AsaType) -> Value:
        """Return an argument of one of the types. A field of open type, or an element of JSON, takes the first.

        The literal NULL passes, with the first type. A bigint is cast where only FLOAT is asked for; a string literal
        passes as DATETIME.
        """

    def property_of_row(self, index: int, name: Value) -> Value | None:
        """Return a property of the whole row that an argument names; None if it is not the name of a row."""

    def kind(self, index: int) -> Expr:
        """Return the type that each value of an argument has in ASA, as text; any text for NULL (see `kinds`)."""

    def unify(self, values: list[Value]) -> tuple[list[Value], AsaType]:
        """Return values in one type, and this type, as in CASE: bigint becomes float, a string literal datetime.

        Strings and numbers each keep their type: they are strings that know their tokens.
        """

    def condition(self, index: int) -> Expr:
        """Return an argument that is a condition, as in IIF."""

    def equal(self, index: int, other: int) -> Expr:
        """Return the condition that two arguments are equal, as in NULLIF."""

    def word(self, index: int) -> str:
        """Return an argument that is a bare word, such as a date part, in lower case."""

    def error(self, index: int | None, message: str) -> DefinitionError:
        """Return the error for an argument, or with None for the whole call, for the function to raise."""


def takes(call: Call, least: int, most: int | None = None) -> None:
    """Raise DefinitionError unless a call has `least` to `most` arguments; without `most`, exactly `least`."""
    most = most or least
    if not least <= call.count <= most:
        count = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise call.error(None, f"{call.name} takes {count} {noun}, but this has {call.count}")


def computing(op: Op, *types: AsaType, to: AsaType, constants: Sequence[Constant] = ()) -> Callable[[Call], Value]:
    """Return the function that is one operation on arguments of these types, with its result."""

    def operation(call: Call) -> Value:
        takes(call, len(types))
        arguments = [call.argument(index, type_).node for index, type_ in enumerate(types)]
        return Value(Expr(op, arguments, constants), to)

    return operation
