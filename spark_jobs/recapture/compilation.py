"""Numba's compiler as the modules use it whose functions it compiles. Without scipy, see `imports.hidden`.

A function is compiled when it is first called. The result is kept next to its module or in the user's folder of caches.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function. Floats are computed in the order in which they are written, and divided by zero as in C."""
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # Numba may write to none of its cache folders
        return njit(nogil=True, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function into those that call it: a call costs more than what it does."""
    return njit(inline="always", error_model="numpy")(function)
