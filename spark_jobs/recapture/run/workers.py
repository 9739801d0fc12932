"""Processes on this machine: the workers that run the tasks, and one that draws pages."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
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


def prepare() -> None:
    """Start the process that workers are forked from. It loads what they need."""
    forkserver.set_forkserver_preload(["recapture.run.preloaded"])
    with _ignored_interrupts():
        forkserver.ensure_running()


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Start processes, which are killed in the end."""
    with processes(count) as started:
        for _ in range(count):
            started.pool.submit(_be_ready)
        yield started


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Yield up to so many processes, which start when they get work and are killed in the end."""
    prepare()
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("forkserver"), _begin, (dict(os.environ),))
    started = Workers(pool, count, frozenset(multiprocessing.active_children()))
    try:
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


def _begin(environment: dict[str, str]) -> None:
    """Give this process the environment of the one that uses it, as the fork server may be older.

    Let it end when that process does, even if that is killed, and not with Ctrl-C.
    """
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _be_ready() -> None:
    """Do nothing: a pool starts its processes when it has work for them."""
