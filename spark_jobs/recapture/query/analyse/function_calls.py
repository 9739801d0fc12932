"""Calls of scalar functions, as the functions see them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.kinds import (
    kind_of,
    known_kind,
)
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, Expr
from recapture.query.plan.operations import Op

if TYPE_CHECKING:
    from recapture.query.analyse.expressions import Expressions


@dataclass
class FunctionCall:
    """A call as its function sees it; see functions.call.Call."""

    expressions: "Expressions"
    node: exp.Anonymous
    name: str
    count: int

    def value(self, index: int) -> Value:
        return self.expressions.value(self._node(index))

    def argument(self, index: int, *types: AsaType) -> Value:
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
        return self.expressions.scope.property_of_row(self._node(index), name)

    def kind(self, index: int) -> Expr:
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
        return self.expressions.unify(values, self.node, may_differ=True)

    def condition(self, index: int) -> Expr:
        return self.expressions.condition(self._node(index))

    def equal(self, index: int, other: int) -> Expr:
        return self.expressions.comparison(Op.EQUAL, self.value(index), self.value(other), self.node)

    def word(self, index: int) -> str:
        node = self._node(index)
        if not isinstance(node, exp.Column) or "." in node.sql():
            raise self.error(index, f"{self.name} takes a bare word here, such as minute")
        return node.name.lower()

    def error(self, index: int | None, message: str) -> DefinitionError:
        where = self.node if index is None or index >= self.count else self.node.expressions[index]
        return self.expressions.source.error(where, message)

    def _node(self, index: int) -> exp.Expr:
        if index >= self.count:
            raise self.error(None, f"{self.name} lacks argument {index + 1}")
        node: exp.Expr = self.node.expressions[index]
        return node
