"""Typed Spark SQL: what an expression of ASAQL becomes."""

from dataclasses import dataclass

from recapture.model import AsaType
from recapture.query.parse.names import Path


@dataclass(frozen=True)
class Value:
    """A scalar in Spark SQL.

    A datetime is a bigint of ticks (time_model.ticks), a record or an array is its JSON text.
    """

    sql: str
    type: AsaType | None
    """None for the literal NULL."""
    text: str | None = None
    """What a literal says."""
    fields: tuple[Path, ...] = ()
    """The fields of the body whose type this type is."""
    element: bool = False
    """Whether it was taken out of JSON as text, and is cast where another type is asked for."""


def quoted_name(name: str) -> str:
    """A name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A text literal for Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
