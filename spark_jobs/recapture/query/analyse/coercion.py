"""Values brought to a type, or to one type: what is open takes it, what may be widened is, the rest is refused."""

from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.generate.casts import cast
from recapture.query.generate.values import Value
from recapture.query.parse.source import Source
from recapture.time_model import timestamps

INCOMPARABLE = (AsaType.RECORD, AsaType.ARRAY)


@dataclass(frozen=True)
class Coercion:
    """What the types of a script's fields allow."""

    source: Source
    types: FieldTypes

    def typed(self, value: Value, kind: AsaType, where: exp.Expr) -> Value | None:
        """The value in a type, if it is open, may be widened or is a literal of it; else None."""
        if value.type is kind:
            return value
        if value.type is None:
            return Value("NULL", kind)
        if self.types.open(value.fields):
            self.types.want(value.fields, kind, where)
            return replace(value, type=kind)
        if value.element:
            if kind in INCOMPARABLE:
                return replace(value, type=kind, element=False)
            return self.cast(value, kind, lenient=False, where=where)
        if value.type is AsaType.BIGINT and kind is AsaType.FLOAT:
            return Value(f"CAST({value.sql} AS DOUBLE)", kind)
        if value.type is AsaType.TEXT and kind is AsaType.DATETIME and value.text is not None:
            return self._instant(value.text, where)
        if value.type is AsaType.BIGINT and kind is AsaType.BIT and value.text in ("0", "1"):
            return Value("true" if value.text == "1" else "false", kind)
        return None

    def alike(self, values: list[Value], where: exp.Expr) -> tuple[list[Value], AsaType]:
        """The values in one type: bigint widens to float, a literal text to datetime, a literal 0 or 1 to bit."""
        flexible = [value.type is None or value.element or self.types.open(value.fields) for value in values]
        kinds = {value.type for value, loose in zip(values, flexible, strict=True) if value.type and not loose}
        if not kinds and any(value.type for value in values):
            opened = tuple(path for value in values for path in value.fields if self.types.open(value.fields))
            fields = tuple(path for value in values for path in value.fields)
            alike = [replace(value, type=AsaType.TEXT, fields=fields) for value in values]
            return (alike if opened else values), AsaType.TEXT
        if not kinds:
            raise self.source.refuse(where, "NULL alone has no type here")
        for kind in _candidates(kinds, values, flexible):
            found = self._joined(values, kind, where)
            if found is not None:
                return found, kind
        for value in values:
            disagreement = self.types.disagree(value.fields, min(kinds - {value.type}, default=AsaType.TEXT), where)
            if disagreement is not None and len(kinds) > 1:
                raise disagreement
        raise self.source.refuse(
            where,
            f"{' and '.join(sorted(kinds))} do not go together here: declare the types with CREATE TABLE, or CAST",
        )

    def _joined(self, values: list[Value], kind: AsaType, where: exp.Expr) -> list[Value] | None:
        fits = [_may_be(value, kind) or value.element or self.types.open(value.fields) for value in values]
        if not all(fits):
            return None
        typed = [self.typed(value, kind, where) for value in values]
        return None if any(value is None for value in typed) else [value for value in typed if value]

    def _instant(self, text: str, where: exp.Expr) -> Value:
        found, valid = timestamps.parse(pa.array([text]))
        if not valid[0]:
            raise self.source.refuse(where, f"'{text}' is not an ISO time, such as '2026-03-01T10:00:00Z'")
        return Value(f"{int(found[0])}L", AsaType.DATETIME)

    def cast(self, value: Value, kind: AsaType, lenient: bool, where: exp.Expr) -> Value:
        """CAST or TRY_CAST; refuses types between which there is no cast."""
        if kind is AsaType.BIGINT and (value.element or self.types.by_use(value.fields)):
            value = Value(_whole(value.sql), AsaType.TEXT)
        try:
            return Value(cast(value, kind, lenient), kind)
        except DefinitionError as error:
            raise self.source.refuse(where, str(error)) from None


def _whole(json: str) -> str:
    """A value of JSON as the text of a bigint: a float without its fraction, a bit as 1 or 0; the rest as it is."""
    number = f"CAST(try_cast(try_cast({json} AS DOUBLE) AS BIGINT) AS STRING)"
    is_float = f"{json} RLIKE '^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$' AND NOT {json} RLIKE '^-?[0-9]+$'"
    bits = f"WHEN {json} = 'true' THEN '1' WHEN {json} = 'false' THEN '0'"
    return f"CASE WHEN {is_float} THEN {number} {bits} ELSE {json} END"


def _may_be(value: Value, kind: AsaType) -> bool:
    if value.type is None or value.type is kind:
        return True
    if kind is AsaType.FLOAT:
        return value.type is AsaType.BIGINT
    if kind is AsaType.DATETIME:
        return value.type is AsaType.TEXT and value.text is not None
    return kind is AsaType.BIT and value.type is AsaType.BIGINT and value.text in ("0", "1")


def _candidates(kinds: set[AsaType], values: list[Value], flexible: list[bool]) -> list[AsaType]:
    """The types to try; where a field of open type meets a number, it is a float (design, column types)."""
    loose = any(flag and value.type is not None for flag, value in zip(flexible, values, strict=True))
    if loose and kinds == {AsaType.BIGINT}:
        return [AsaType.FLOAT]
    order = [AsaType.BIGINT, AsaType.FLOAT, AsaType.DATETIME, AsaType.BIT, *AsaType]
    return [kind for kind in dict.fromkeys(order) if kind in kinds]
