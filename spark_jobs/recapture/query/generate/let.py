"""Spark SQL that uses a value more than once, and the error that a row's value raises."""

from collections.abc import Callable

from recapture.query.generate.values import quoted_name, quoted_text

_SHORT = 120
"""SQL of up to this many characters is repeated: Spark computes equal expressions once. Longer SQL is bound to a name,
since calls within calls would grow without bound; that costs about a microsecond a row."""


def let(sql: str, name: str, use: Callable[[str], str]) -> str:
    """Return what `use` makes of a value that is bound to a name; `name` is unique within one expression.

    let("f(x)", "y", lambda y: f"{y} + {y}") => transform(array(f(x)), `@@y` -> `@@y` + `@@y`)[0]
    """
    bound = quoted_name("@@" + name)
    return f"transform(array({sql}), {bound} -> {use(bound)})[0]"


def once(sql: str, name: str, use: Callable[[str], str]) -> str:
    """Return what `use` makes of a value that is computed once a row; `name` is unique within one expression."""
    return use(sql) if len(sql) <= _SHORT else let(sql, name, use)


def failure(message: str) -> str:
    """Return SQL that stops the run with a message; it fits any type."""
    return f"raise_error({quoted_text(message)})"
