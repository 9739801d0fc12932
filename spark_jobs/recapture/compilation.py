"""Decorators that compile functions with Numba.

Import modules that use them, and call their functions, only in the context `hidden(UNUSED_BY_NUMBA)` of `imports`.

A function is compiled when it is first called. The result is kept next to its module or in the user's folder of caches.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function. Operations on floats keep their order; division by zero gives an infinity or NaN."""
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # none of Numba's cache folders is writable
        return njit(nogil=True, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function into those that call it, as a call would cost more than the function itself."""
    return njit(inline="always", error_model="numpy")(function)
