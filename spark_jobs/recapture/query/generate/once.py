"""A piece of Spark SQL that is used more than once, and the error that a row's value raises."""

from collections.abc import Callable

from recapture.query.generate.values import quoted_name, quoted_text

_SHORT = 120
"""Up to so many characters, SQL is simply repeated: Spark computes what is equal once. Beyond, calls within calls would
grow without bound, so it is bound to a name, at the price of about a microsecond a row."""


def once(sql: str, name: str, use: Callable[[str], str]) -> str:
    """What `use` makes of `sql`, in which `sql` is computed once a row; `name` is unique within one expression."""
    if len(sql) <= _SHORT:
        return use(sql)
    bound = quoted_name("@@" + name)
    return f"transform(array({sql}), {bound} -> {use(bound)})[0]"


def failure(message: str) -> str:
    """SQL that stops the run with a message; it fits any type."""
    return f"raise_error({quoted_text(message)})"
