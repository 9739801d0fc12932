"""Conversions between types: fields of open type take the type that is asked for, some values are widened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.kinds import kind_of_json
from recapture.query.analyse.tokens import has_own_types, is_dynamic, of_token, token_of
from recapture.query.analyse.values import Value
from recapture.query.parse.source import Source
from recapture.query.plan.expressions import FALSE, NULL, TRUE, bigint, call, cast_as
from recapture.query.plan.operations import Op
from recapture.time_model import timestamps

INCOMPARABLE = (AsaType.RECORD, AsaType.ARRAY)

_WIDENINGS: Mapping[tuple[AsaType, AsaType], Callable[[Value], bool]] = {
    (AsaType.BIGINT, AsaType.FLOAT): lambda value: True,
    (AsaType.BIGINT, AsaType.BIT): lambda value: value.text in ("0", "1"),
    (AsaType.STRING, AsaType.DATETIME): lambda value: value.text is not None,
}
"""Which values of a type pass as another: each bigint as float, 0 and 1 as bit, a string literal as datetime."""


@dataclass(frozen=True)
class Coercion:
    """Conversions without a CAST, as far as the types of a script's fields allow them."""

    source: Source
    types: FieldTypes

    def typed(self, value: Value, type_: AsaType, where: exp.Expr) -> Value | None:
        """Return the value as `type_` if it has this type, is NULL, is of open type or can be widened; else None."""
        is_open = self.types.are_open(value.fields)
        return self._converted(value, type_, is_open, where) if self._fits(value, type_) else None

    def required(self, value: Value, type_: AsaType, where: exp.Expr, message: str) -> Value:
        """Return what `typed` does. Raise DefinitionError, with this message or a better one, instead of None."""
        typed = self.typed(value, type_, where)
        if typed is None:
            raise self.types.disagreement(value.fields, type_, where) or self.source.error(where, message)
        return typed

    def as_number(self, value: Value, where: exp.Expr, takes: str, hint: str = "") -> Value:
        """Return a value as a bigint or a float. Raise DefinitionError, which begins with what `takes` it."""
        if value.type in (AsaType.BIGINT, AsaType.FLOAT):
            return value
        message = f"{takes}, but this is {value.type or 'NULL'}{hint}"
        if value.type is None:
            raise self.source.error(where, message)
        return self.required(value, AsaType.FLOAT, where, message)

    def unify(self, values: list[Value], where: exp.Expr, *, may_differ: bool = False) -> tuple[list[Value], AsaType]:
        """Return the values in one type, and this type.

        1, 2.5 => 1.0, 2.5 · field of open type, 1 => both float · datetime, '2026-03-01' => both datetime

        If values `may_differ`, strings and numbers each keep their type: they are strings that know their tokens.

        Raise DefinitionError if no type fits all values.
        """
        return self.types.used_together(values, lambda current: self._unified(current, where, may_differ))

    def _unified(self, values: list[Value], where: exp.Expr, may_differ: bool = False) -> tuple[list[Value], AsaType]:
        types = {value.type for value in values if value.type and not self._is_open(value)}
        if not types:
            return self._unify_open(values, where)
        type_ = self._common_type(types, values)
        if type_ is None and may_differ and has_own_types(values):
            return [of_token(replace(value, type=AsaType.STRING), token_of(value)) for value in values], AsaType.STRING
        if type_ is None:
            raise self._mismatch(types, values, where)
        opened = [self.types.are_open(value.fields) for value in values]
        unified = [self._converted(value, type_, is_open, where) for value, is_open in zip(values, opened, strict=True)]
        return unified, type_

    def _is_open(self, value: Value) -> bool:
        """Return whether a value takes any type that it is asked for: a field of open type, an element of JSON."""
        return value.is_json_element or self.types.are_open(value.fields)

    def _fits(self, value: Value, type_: AsaType) -> bool:
        if value.type is None or value.type is type_ or self._is_open(value):
            return True
        widens = _WIDENINGS.get((value.type, type_))
        return widens is not None and widens(value)

    def _common_type(self, types: set[AsaType], values: list[Value]) -> AsaType | None:
        """Return the one of `types` that fits all values; None if there is none.

        If the only type is bigint, a value of open type next to it makes all of them floats.
        """
        if types == {AsaType.BIGINT} and any(value.type and self._is_open(value) for value in values):
            return AsaType.FLOAT
        return next((type_ for type_ in sorted(types) if all(self._fits(value, type_) for value in values)), None)

    def _unify_open(self, values: list[Value], where: exp.Expr) -> tuple[list[Value], AsaType]:
        """Return values of open type as strings. If a later use decides the type of one, it is the type of all."""
        if not any(value.type for value in values):
            raise self.source.untyped_null(where)
        if not any(self.types.are_open(value.fields) for value in values):
            return values, AsaType.STRING
        fields = tuple(path for value in values for path in value.fields)
        return [replace(value, type=AsaType.STRING, fields=fields) for value in values], AsaType.STRING

    def _mismatch(self, types: set[AsaType], values: list[Value], where: exp.Expr) -> DefinitionError:
        for value in values:
            other = min(types - {value.type}, default=AsaType.STRING)
            disagreement = self.types.disagreement(value.fields, other, where)
            if disagreement is not None and len(types) > 1:
                return disagreement
        advice = "declare the types with CREATE TABLE, or CAST"
        return self.source.error(where, f"{' and '.join(sorted(types))} cannot be combined here: {advice}")

    def _converted(self, value: Value, type_: AsaType, is_open: bool, where: exp.Expr) -> Value:
        """Return the value converted to `type_`, which it must fit. A field of open type has this type from now on."""
        if value.type is type_:
            if is_open:
                self.types.note_string(value.fields)
            return value
        if value.type is None:
            return Value(NULL, type_)
        if is_open:
            self.types.decide(value.fields, type_)
            return replace(value, type=type_)
        if value.is_json_element:
            if type_ in INCOMPARABLE:
                return replace(value, type=type_, is_json_element=False)
            converted = self.cast(value, type_, lenient=False, where=where)
            return replace(converted, kind=kind_of_json(value.node)) if type_ is AsaType.FLOAT else converted
        match type_:
            case AsaType.FLOAT:
                return Value(cast_as(value.node, type_), type_)
            case AsaType.BIT:
                return Value(TRUE if value.text == "1" else FALSE, type_)
        ticks = ticks_of(value.text or "")
        if ticks is None:
            raise self.source.error(where, f"'{value.text}' is not an ISO time, such as '2026-03-01T10:00:00Z'")
        return Value(bigint(ticks), AsaType.DATETIME)

    def cast(self, value: Value, type_: AsaType, lenient: bool, where: exp.Expr) -> Value:
        """Return the CAST of a value, or its TRY_CAST if `lenient`. Raise DefinitionError for types without a cast."""
        if type_ is AsaType.BIGINT and (self.types.untyped(value) or is_dynamic(value)):
            value = Value(call(Op.BIGINT_TEXT, value.node), AsaType.STRING)
        try:
            return Value(cast(value, type_, lenient), type_)
        except DefinitionError as error:
            raise self.source.error(where, str(error)) from None


def ticks_of(text: str) -> int | None:
    """Return the ticks of an ISO time; None for any other string."""
    ticks, valid = timestamps.parse(pa.array([text]))
    return int(ticks[0]) if valid[0] else None
