"""One call of a scalar function, as the function sees it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.kinds import kind_of, known_kind
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, Constant, Expr, failure
from recapture.query.plan.operations import Op

if TYPE_CHECKING:
    from recapture.query.analyse.expressions import Expressions

MANY = 1_000
"""Number of arguments that no query reaches."""


@dataclass
class Call:
    """A call. Arguments count from 0. Each method compiles one, or raises DefinitionError with its line and column.

    Asking for a type also decides the type of a field that nothing declares (see analyse.field_types).
    """

    expressions: "Expressions"
    node: exp.Anonymous
    name: str
    """Name of the function, in capitals."""
    count: int
    """Number of arguments."""

    def value(self, index: int) -> Value:
        """Return an argument of any type."""
        return self.expressions.value(self._node(index))

    def argument(self, index: int, *types: AsaType) -> Value:
        """Return an argument of one of the types. A field of open type, or an element of JSON, takes the first.

        The literal NULL passes, with the first type. A bigint is cast where only FLOAT is asked for; a string literal
        passes as DATETIME.
        """
        node = self._node(index)
        value = self.expressions.value(node)
        if value.type in types and not self.expressions.types.are_open(value.fields) and not value.is_json_element:
            return value
        for type_ in types:
            typed = self.expressions.typed(value, type_, node)
            if typed is not None:
                return typed
        advice = f": write CAST(… AS {AsaType.STRING})" if types == (AsaType.STRING,) else ""
        message = f"{self.name} takes {' or '.join(types)} here, but this is {value.type}{advice}"
        raise self.expressions.types.disagreement(value.fields, types[0], node) or self.error(index, message)

    def property_of_row(self, index: int, name: Value) -> Value | None:
        """Return a property of the whole row that an argument names; None if it is not the name of a row."""
        return self.expressions.scope.property_of_row(self._node(index), name)

    def kind(self, index: int) -> Expr:
        """Return the type that each value of an argument has in ASA, as text; any text for NULL (see `kinds`)."""
        value, types = self.value(index), self.expressions.types
        if value.is_json_element:
            advice = "test it with TRY_CAST(x AS type) IS NOT NULL"
            raise self.error(index, f"{self.name} of a value that was taken out of JSON is not supported: {advice}")
        if value.type is None:
            return NULL
        kind = known_kind(value)
        if kind is not None:
            return kind
        if not types.request_kinds(value.undeclared):
            raise self.error(index, f"the type of each value is not known here: {types.advice(value.undeclared[0])}")
        return kind_of(value.type)

    def unify(self, values: list[Value]) -> tuple[list[Value], AsaType]:
        """Return values in one type, and this type, as in CASE: bigint becomes float, a string literal datetime.

        Strings and numbers each keep their type: they are strings that know their tokens.
        """
        return self.expressions.unify(values, self.node, may_differ=True)

    def condition(self, index: int) -> Expr:
        """Return an argument that is a condition, as in IIF."""
        return self.expressions.condition(self._node(index))

    def equal(self, index: int, other: int) -> Expr:
        """Return the condition that two arguments are equal, as in NULLIF."""
        return self.expressions.comparison(Op.EQUAL, self.value(index), self.value(other), self.node)

    def word(self, index: int) -> str:
        """Return an argument that is a bare word, such as a date part, in lower case."""
        node = self._node(index)
        if not isinstance(node, exp.Column) or "." in node.sql():
            raise self.error(index, f"{self.name} takes a bare word here, such as minute")
        return node.name.lower()

    def error(self, index: int | None, message: str) -> DefinitionError:
        """Return the error for an argument, or with None for the whole call, for the function to raise."""
        return self.expressions.source.error(self.node if index is None else self._node(index), message)

    def _node(self, index: int) -> exp.Expr:
        node: exp.Expr = self.node.expressions[index]
        return node


def takes(call: Call, least: int, most: int | None = None) -> None:
    """Raise DefinitionError unless a call has `least` to `most` arguments; without `most`, exactly `least`."""
    most = most or least
    if not least <= call.count <= most:
        count = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise call.error(None, f"{call.name} takes {count} {noun}, but this has {call.count}")


def computing(
    op: Op, *types: AsaType, to: AsaType, constants: Sequence[Constant] = (), refused: str = ""
) -> Callable[[Call], Value]:
    """Return the function that is one operation on arguments of these types, with its result.

    `refused` says what is wrong with arguments that stop the run, for an operation that takes a failure.
    """

    def operation(call: Call) -> Value:
        takes(call, len(types))
        arguments = [call.argument(index, type_).node for index, type_ in enumerate(types)]
        failures = [failure(f"{call.name}: {refused}")] if refused else []
        return Value(Expr(op, [*arguments, *failures], constants), to)

    return operation
