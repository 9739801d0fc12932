"""The errors of a query, which stop the run; those of a row stop it as Spark's do in ANSI mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from recapture.errors import PermanentError, QueryError

_OF_FUNCTIONS = ("udf.", "uda.", "ST_", "CREATE")
"""Beginnings of the messages of JavaScript functions and of shapes. They are complete sentences. A retry would fail
in the same way."""


class RowError(QueryError):
    """A value of a row stops the run, such as a division by zero. The reason begins with Spark's name of the error."""


class FunctionError(QueryError, PermanentError):
    """A function of the query stops the run with its own message."""


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Name the place in the errors of the query that are raised in this context."""
    try:
        yield
    except QueryError as error:
        raise error.inside(place) from None


def stop(condition: str, message: str) -> NoReturn:
    """Raise RowError."""
    raise RowError(f"[{condition}] {message}")


def stop_with(message: str) -> NoReturn:
    """Raise the error of raise_error(message)."""
    if message.startswith(_OF_FUNCTIONS):
        raise FunctionError(message)
    stop("USER_RAISED_EXCEPTION", message)


def stop_where(mask: NDArray[np.bool_], null: NDArray[np.bool_] | None, condition: str, message: str) -> None:
    """Raise RowError if a row is in the mask and is not NULL."""
    if mask.any() and (mask if null is None else mask & ~null).any():
        stop(condition, message)


def overflow(mask: NDArray[np.bool_], null: NDArray[np.bool_] | None, what: str = "bigint") -> None:
    """Raise RowError if a number of a row does not fit."""
    stop_where(mask, null, "ARITHMETIC_OVERFLOW", f"a result does not fit a {what}: CAST an operand to float")
