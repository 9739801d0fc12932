"""Pools of processes on this machine: the workers that run the tasks, and the process that draws pictures."""

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
    _earlier: frozenset[BaseProcess]
    """Child processes that are older than the pool; `kill` spares them."""

    def kill(self) -> None:
        """End the processes at once, whatever they do."""
        for process in set(multiprocessing.active_children()) - self._earlier:
            process.kill()
            process.join()


def prepare() -> None:
    """Start the fork server, which imports what the tasks need. The processes of all pools are forked from it."""
    forkserver.set_forkserver_preload(["recapture.run.preloaded"])
    with _ignored_interrupts():
        forkserver.ensure_running()


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Yield a pool whose processes have been started, and kill them in the end."""
    with processes(count) as started:
        for _ in range(count):
            started.pool.submit(_be_ready)
        yield started


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Yield a pool of up to `count` processes, which start when they get work; kill them in the end."""
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
    """Copy the parent's environment, which may be newer than that of the fork server.

    Ignore Ctrl-C, and end when the parent does, even if that is killed.
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
