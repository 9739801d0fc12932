"""Typed expressions, which those of a query are compiled to."""

from dataclasses import dataclass

from recapture.model import AsaType
from recapture.query.parse.names import InputField
from recapture.query.plan.expressions import Expr


@dataclass(frozen=True)
class Value:
    """A scalar. A datetime is a bigint of ticks; a record or an array is its JSON text."""

    node: Expr
    type: AsaType | None
    """Type in ASA; None for the literal NULL."""
    text: str | None = None
    """Text of a literal, as written; None for other expressions."""
    fields: tuple[InputField, ...] = ()
    """Fields of the body that have this value's type."""
    undeclared: tuple[InputField, ...] = ()
    """Fields whose types nothing declares and that decide, in ASA, of which type this value is."""
    kind: Expr | None = None
    """Type of each single value in ASA, as a string; None if it has one type, or nothing asks for it (see `kinds`)."""
    token: Expr | None = None
    """Token of each single value; None if all values have one type (see `tokens`)."""
    is_json_element: bool = False
    """Whether it was taken out of JSON: it is a string, and is cast where another type is asked for."""
