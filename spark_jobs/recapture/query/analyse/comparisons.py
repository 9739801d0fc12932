"""Comparisons of values, both sides in one type."""

from dataclasses import dataclass

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.coercion import INCOMPARABLE, Coercion
from recapture.query.analyse.tokens import COMPARABLE, compared, is_dynamic, needs_tokens, with_token_of_part
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import Expr, call
from recapture.query.plan.operations import Op

_ORDERED = {Op.GREATER: ">", Op.GREATER_OR_EQUAL: ">=", Op.LESS: "<", Op.LESS_OR_EQUAL: "<="}
"""Comparisons that need an order, with their signs."""


@dataclass(frozen=True)
class Comparisons(Coercion):
    """Comparisons of the values of a scope."""

    def comparison(self, comparison: Op, left: Value, right: Value, where: exp.Expr) -> Expr:
        """Return a comparison, both sides in one type. Raise DefinitionError if they have none.

        x = 1 => equal(x, cast(1) to a float)
        """
        return self.types.used_together([left, right], lambda sides: self._comparison(comparison, sides, where))

    def _comparison(self, comparison: Op, sides: list[Value], where: exp.Expr) -> Expr:
        if self._have_own_types(sides):
            return compared(comparison, *sides)
        parts = self._of_own_types(sides)
        if parts is not None:
            return compared(comparison, *parts)
        return call(comparison, *(side.node for side in self._comparable(sides, comparison, where)))

    def _comparable(self, values: list[Value], comparison: Op, where: exp.Expr) -> list[Value]:
        if any(value.type is None for value in values):
            raise self.source.error(where, "nothing is equal to NULL: write IS NULL or IS NOT NULL")
        if self.types.closed and all(map(self.types.untyped, values)):
            raise self.source.error(where, "the type of the values that are compared here is not known: CAST them")
        unified, type_ = self._unified(values, where)
        if type_ in INCOMPARABLE:
            parts = "properties" if type_ is AsaType.RECORD else "elements"
            raise self.source.error(where, f"{type_}s cannot be compared: compare their {parts}")
        is_open = any(self.types.are_open(value.fields) for value in values)
        if type_ is AsaType.BIT and comparison in _ORDERED and not is_open:
            raise self.source.error(where, f"{type_} is compared with = and <> only, not with {_ORDERED[comparison]}")
        return unified

    def _have_own_types(self, values: list[Value]) -> bool:
        """Return whether values are compared by the type that each of them has, and numbers exactly.

        A field of open type that is compared with a number is published as a float. In CSV, it is one.
        """
        fields = tuple(field for value in values if is_dynamic(value) for field in value.fields)
        others = [value for value in values if not is_dynamic(value)]
        if not self._have_tokens(others):
            return False
        if len(others) == len(values):
            return needs_tokens(values)
        types = {value.type for value in others}
        if types & {AsaType.BIGINT, AsaType.FLOAT}:
            if self.types.are_of_strings(fields):
                return False
            self.types.suggest(fields, AsaType.FLOAT)
        elif any(self.types.suggested([field]) for field in fields):
            self.types.suggest(fields, AsaType.FLOAT)
        if AsaType.STRING in types:
            self.types.note_string(fields)
        return True

    def _of_own_types(self, values: list[Value]) -> list[Value] | None:
        """Return values of which nothing decides the types, and parts of JSON among them, with their tokens.

        Return None while a use may still decide a type, and if a part of JSON has lost its own.
        """
        if not self.types.closed or not all(map(self.types.untyped, values)):
            return None
        parts = [with_token_of_part(value) if value.is_json_element else value for value in values]
        return [part for part in parts if part is not None] if all(parts) else None

    def _have_tokens(self, values: list[Value]) -> bool:
        return all(value.type in COMPARABLE and not value.is_json_element for value in values)
