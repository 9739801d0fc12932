"""Decorators that compile functions with Numba.

Import modules that use them, and call their functions, only in the context `hidden(UNUSED_BY_NUMBA)` of `imports`.

A function is compiled when it is first called. The result is kept next to its module or in the user's folder of caches.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function. Operations on floats keep their order; division by zero gives an infinity or NaN."""
    dispatcher: Any = njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # none of Numba's folders of caches is writable
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return dispatcher


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function into those that call it, as a call would cost more than the function itself."""
    return njit(inline="always", error_model="numpy")(function)


class _Cache(FunctionCache):
    """Numba's cache of a function. What cannot be read is compiled again, and what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # unpickling a damaged file raises anything
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
