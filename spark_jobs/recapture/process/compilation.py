"""Decorators that compile functions with Numba.

Import modules that use them, and call their functions, only in the context `hidden(UNUSED_BY_NUMBA)` of `startup`.

A function is compiled when it is first called. The result is kept next to its module or in the user's folder of caches,
unless others can write there: they could make this process run their code.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from recapture.process.caches import is_private


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function. Operations on floats keep their order; division by zero gives an infinity or NaN."""
    dispatcher: Any = njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # none of Numba's folders of caches is writable
        kept = _Cache(function)  # type: ignore[no-untyped-call]
        if is_trusted(kept.cache_path):
            dispatcher._cache = kept
    return dispatcher


@cache
def is_trusted(folder: str) -> bool:
    """Return whether code from a folder may run. If not, log why."""
    if is_private(folder):
        return True
    logging.getLogger(__name__).warning(
        "compiled code is neither read from %s nor kept there, because other users can write to it: set "
        "NUMBA_CACHE_DIR to a folder of this user",
        folder,
    )
    return False


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
