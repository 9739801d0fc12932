"""Typed Spark SQL, which the expressions of a query are compiled to."""

from dataclasses import dataclass

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.parse.names import InputField


@dataclass(frozen=True)
class Value:
    """A scalar in Spark SQL. A datetime is a bigint of ticks; a record or an array is its JSON text."""

    node: exp.Expr
    """Tree of its Spark SQL."""
    type: AsaType | None
    """Type in ASA; None for the literal NULL."""
    text: str | None = None
    """Text of a literal, as written; None for other expressions."""
    fields: tuple[InputField, ...] = ()
    """Fields of the body that have this value's type."""
    undeclared: tuple[InputField, ...] = ()
    """Fields whose types nothing declares and that decide, in ASA, of which type this value is."""
    kind: exp.Expr | None = None
    """Type of each single value in ASA, as text; None if it has one type, or nothing asks for it (see `kinds`)."""
    is_json_element: bool = False
    """Whether it was taken out of JSON: it is text, and is cast where another type is asked for."""


def quoted_name(name: str) -> str:
    """Return a name in Spark SQL: a b => `a b`."""
    return "`" + name.replace("`", "``") + "`"


def unquoted_name(name: str) -> str:
    """Return the name that a name in Spark SQL stands for: `a b` => a b."""
    return name[1:-1].replace("``", "`")


def quoted_text(text: str) -> str:
    """Return a text literal in Spark SQL: it's => 'it\\'s'."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
