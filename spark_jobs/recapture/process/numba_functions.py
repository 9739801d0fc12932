"""Numba's compiler, and its cache on disk. The cache saves 12 s of each process that reads Avro and applies policies.

The result is kept next to the function's module or in the user's folder of caches, unless others can write there: they
could make this process run their code.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any

from recapture.process import caches
from recapture.process.startup import hidden

# When Numba first compiles or loads a function, it looks for these packages. No function here uses them.
with hidden(["scipy", "cffi"]):
    import numba.core.typing.cffi_utils
    import numba.np.arraymath  # noqa: F401, both are what looks
    from numba import njit
    from numba.core.caching import FunctionCache
    from numba.core.compiler_lock import global_compiler_lock


def compiled(function: FunctionType, files: Iterable[str]) -> Any:
    """Return the dispatcher of a function, with a cache if its folder can be trusted.

    `files` have its code and that of the functions that it calls: after a change of one, it is compiled again.
    """
    dispatcher: Any = njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # none of Numba's folders of caches is writable
        kept = _Cache(function)  # type: ignore[no-untyped-call]
        kept.stamp(files)
        if is_trusted(kept.cache_path):
            dispatcher._cache = kept
            dispatcher.compile = kept.unlocking(dispatcher.compile)
    return dispatcher


def inlined(function: FunctionType) -> Any:
    """Return the dispatcher of a function that is compiled into those that call it."""
    return njit(forceinline=True, nogil=True, error_model="numpy")(function)


@cache
def is_trusted(folder: str) -> bool:
    """Return whether code from a folder may run. If not, log why."""
    if caches.is_private(folder):
        return True
    logging.getLogger(__name__).warning(
        "compiled code is neither read from %s nor kept there, because other users can write to it: set "
        "NUMBA_CACHE_DIR to a folder of this user",
        folder,
    )
    return False


class _Cache(FunctionCache):
    """Numba's cache of a function. What cannot be read is compiled again, and what cannot be written is not kept.

    Processes that need a function at the same time compile it once: one holds a lock, and the others wait for it.
    """

    _lock: caches.Lock | None = None

    def stamp(self, files: Iterable[str]) -> None:
        """Let the cache end when one of these files changes; Numba looks at the function's own file alone."""
        others = set(files) - {self._py_func.__code__.co_filename}
        self._cache_file._source_stamp = (*self._cache_file._source_stamp, *caches.stamps(others))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        overload = self._load(sig, target_context)
        if overload is None and self._lock is None:
            self._lock = caches.lock(self.cache_path, f"{self._impl.filename_base}.lock")
            overload = self._load(sig, target_context)
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]

    def unlocking(self, compile_overload: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return what compiles or loads an overload, and unlocks the function in the end, in one thread at a time."""

        def compile_and_unlock(sig: Any) -> Any:
            with global_compiler_lock:
                try:
                    return compile_overload(sig)
                finally:
                    if self._lock is not None:
                        self._lock.release()
                        self._lock = None

        return compile_and_unlock

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # unpickling a damaged file raises anything
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None
