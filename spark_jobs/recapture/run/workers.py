"""The processes that run the tasks on this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess


@dataclass(frozen=True)
class Workers:
    """A pool of processes, and their number."""

    pool: ProcessPoolExecutor
    count: int
    _others: frozenset[BaseProcess]
    """Processes that are not of the pool."""

    def kill(self) -> None:
        """End the processes at once, whatever they do."""
        for process in set(multiprocessing.active_children()) - self._others:
            process.kill()
            process.join()


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Start processes, which load meanwhile what they need. They are killed in the end."""
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _end_with_parent)
    started = Workers(pool, count, frozenset(multiprocessing.active_children()))
    try:
        with _ignored_interrupts():
            for _ in range(count):
                pool.submit(_load)
        yield started
    finally:
        started.kill()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Let processes that start in this context ignore Ctrl-C, which their parent handles."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _end_with_parent() -> None:
    """Let this process end when its parent does, even if that is killed, and not with Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _load() -> None:
    import recapture.run.panes_files  # noqa: F401, it is what the tasks need
