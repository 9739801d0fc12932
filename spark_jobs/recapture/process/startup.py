"""Shortcuts at the start and the end of a process. Each says what it saves, in CPU seconds on one machine.

Modules that need more than this one have the others. `fork_server` forks the workers. `dataclass_code` keeps what
dataclasses compile. `compilation` imports Numba, which takes 0.2 s, when a compiled function is first called.
`numba_functions` keeps compiled code.
"""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, NoReturn

_USUAL = gc.get_threshold()


def collect_garbage_rarely() -> None:
    """Look for garbage a hundred times less often: 0.2 s of an update, most of it while modules are imported."""
    gc.set_threshold(70_000)


def start_no_threads_for_linear_algebra() -> None:
    """Let OpenBLAS start no threads when NumPy is imported: 0.03 s of each command on two cores, and more on many."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """Look for garbage neither in this context nor later among what exists at its end: 0.05 s of each command."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # DuckDB complains of objects that are left at the end
        gc.enable()


@contextmanager
def loaded_for_forks() -> Iterator[None]:
    """Load what forks of this process share, for good: 0.4 s of a backfill. Then look for garbage as usual.

    If the forks looked for garbage among it, they would copy the memory.
    """
    with loaded_for_good():
        yield
    gc.set_threshold(*_USUAL)


def exit_at_once(code: int) -> NoReturn:
    """End the process and the fork server without clearing imports: 0.25 s of `recapture plan`, 1 s of a backfill."""
    stop_fork_server()
    with suppress(OSError):  # it may be full
        sys.stderr.flush()
    os._exit(code)


def stop_fork_server() -> None:
    """End the fork server at once, if it runs, and remove its socket: `os._exit` does neither."""
    if (pid := fork_server_pid()) is not None:
        from multiprocessing import util

        os.kill(pid, signal.SIGKILL)
        sys.modules["multiprocessing.forkserver"]._forkserver._stop()
        util._run_finalizers()  # type: ignore[attr-defined]


def fork_server_pid() -> int | None:
    """Return the id of the process that forks the workers, or None if it does not run."""
    server: Any = sys.modules.get("multiprocessing.forkserver")
    pid: int | None = None if server is None else server._forkserver._forkserver_pid
    return pid


def leave_accumulators_running(context: Any) -> None:
    """Let a Spark context stop without its server of accumulators, which takes half a second to end."""
    context._accumulatorServer = None


def loaded_on_use(names: Collection[str]) -> AbstractContextManager[None]:
    """Execute modules that are first imported in this context only when one of their attributes is read.

    Reading `__file__` does not count: `inspect` asks every module for it. For `quality.loading`: 1 s of each audit
    with a suite.
    """
    return _asked_first(_Finder(names))


def hidden(packages: Collection[str]) -> AbstractContextManager[None]:
    """Let imports of these packages in this thread fail, unless they are already imported.

    For `quality.loading`: 1.2 s of each audit with a suite. For `formats`: 0.3 s of each command that reads blobs. For
    `numba_functions`: 0.25 s of each process that compiles or loads a function. For `preloaded`: 0.2 s of each process
    that forks workers.
    """
    return _asked_first(_Hider(packages, threading.get_ident()))


@contextmanager
def _asked_first(finder: MetaPathFinder) -> Iterator[None]:
    """Let imports in this context ask a finder before all others."""
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
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(LazyLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__class__ = _unloaded(type(module))


def _unloaded(lazy: type[ModuleType]) -> type[ModuleType]:
    """Return the class of a module that has its `__file__` without being loaded; reading another attribute loads it."""

    class Unloaded(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            if name == "__file__":
                return super().__getattribute__(name)
            object.__setattr__(self, "__class__", lazy)
            return getattr(self, name)

    return Unloaded
