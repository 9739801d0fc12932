"""The processes that run the tasks on this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Workers:
    """A pool of processes, and their number."""

    pool: ProcessPoolExecutor
    count: int


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Start processes, which load meanwhile what they need. They are killed in the end, whatever they do."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _end_with_parent)
    try:
        with _ignored_interrupts():
            for _ in range(count):
                pool.submit(_load)
        yield Workers(pool, count)
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
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
    """Let this process end when its parent does, even if that is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _load() -> None:
    import recapture.run.panes_files  # noqa: F401, it is what the tasks need
