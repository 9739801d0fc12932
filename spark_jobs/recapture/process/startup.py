"""Faster imports: without packages that are not needed, when a module is first used, with less garbage collection."""

import gc
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


def collect_garbage_less_often() -> None:
    """Collect garbage less often: imports leave almost none, and looking for it takes a tenth of a start."""
    gc.set_threshold(100_000)


@contextmanager
def loaded_on_use(names: Collection[str]) -> Iterator[None]:
    """Execute modules that are first imported in this context only when one of their attributes is read."""
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def hidden(packages: Collection[str]) -> Iterator[None]:
    """Let imports of these packages in this thread fail, unless they are already imported."""
    finder = _Hider(packages, threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Hider(MetaPathFinder):
    def __init__(self, packages: Collection[str], thread: int) -> None:
        self._packages, self._thread = packages, thread

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] in self._packages and threading.get_ident() == self._thread:
            raise ImportError(f"{fullname} is hidden")


class _Finder(MetaPathFinder):
    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
