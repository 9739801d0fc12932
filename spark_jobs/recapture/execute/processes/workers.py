"""The worker processes on this machine, which run the tasks."""

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from recapture.errors import RunError
from recapture.execute.processes.heartbeats import Watch, beat, watched
from recapture.process.fork_server import forked_server, without_main_module
from recapture.process.startup import fork_server_pid
from recapture.storage.scratch import remove_abandoned, scratch_folder, temporary_folder

_LONGEST_FOLDER = 48
"""Longest path, in bytes, of a folder for temporary files in which the fork server can have its socket."""
_SOCKET = "workers"
"""Name of the folder of that socket: see `scratch_folder`."""
_NAME = "a worker"
"""What messages call one of the processes."""
_PRELOADED = ["recapture.execute.processes.preloaded"]
"""Modules that the fork server imports."""


@dataclass(frozen=True)
class Workers:
    """A pool of processes, and their number."""

    pool: ProcessPoolExecutor
    count: int
    _earlier: frozenset[BaseProcess]
    """Child processes that are older than the pool; `kill` spares them."""
    _watch: Watch

    def broken(self, advice: str) -> RunError:
        """Return the error for a pool whose process has ended. `advice` says what needs less memory."""
        reason = self._watch.reason or f"ended suddenly: if the machine had no memory left, {advice}"
        return RunError(f"{_NAME} {reason}")

    def kill(self) -> None:
        """End the processes at once, whatever they do."""
        processes = set(multiprocessing.active_children()) - self._earlier
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def prepare(*, forks: bool = False) -> None:
    """Start the fork server, which imports what the tasks need. The workers are forked from it.

    With `forks`, the server is forked from this process, which must have a single thread, so that both share what this
    process has imported. Otherwise it is a new process.
    """
    forkserver.set_forkserver_preload(_PRELOADED)
    forks = forks and fork_server_pid() is None
    if forks:
        import recapture.execute.processes.task_files  # noqa: F401, which takes long: Ctrl-C still works
    forked = forked_server(_PRELOADED) if forks else nullcontext()
    with _ignored_interrupts(), forked, _folder_of_socket():
        forkserver.ensure_running()


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Yield a pool whose processes have been started, and kill them in the end.

    A process that gives no sign of life is killed, too. No process imports the main module of this one, such as the
    command of Airflow.
    """
    prepare()
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    pool = _Pool(count, context, _begin, (dict(os.environ), sender))
    with receiver, sender, watched(receiver, _NAME) as watch, without_main_module():
        started = Workers(pool, count, frozenset(multiprocessing.active_children()), watch)
        try:
            _start(started)
            yield started
        finally:
            started.kill()
            pool.shutdown(cancel_futures=True)


def _start(workers: Workers) -> None:
    """Start the processes, which a pool does when it has work for them. Raise RunError if the fork server has ended."""
    try:
        for _ in range(workers.count):
            workers.pool.submit(os.getpid)
    except BrokenProcessPool:
        raise RunError(
            "the workers could not be started, because the process that forks them ended suddenly: if the machine had "
            "no memory left, free some; then run the same command again"
        ) from None


class _Pool(ProcessPoolExecutor):
    """A pool that raises BrokenProcessPool also if the fork server ends while a process is started for it."""

    def submit(self, *call: Any, **named: Any) -> Future[Any]:
        try:
            return super().submit(*call, **named)
        except (OSError, EOFError) as error:
            raise BrokenProcessPool("the fork server ended") from error


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Let processes that start in this context ignore Ctrl-C, which their parent handles."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _folder_of_socket() -> Iterator[None]:
    """Let the fork server have its socket in a folder of ours, in this context.

    The folder is removed when this process ends. If it is killed, the next call removes it. It is in /tmp if the folder
    for temporary files has a long path.
    """
    usual = str(temporary_folder())
    try:
        if len(os.fsencode(usual)) > _LONGEST_FOLDER:
            tempfile.tempdir = "/tmp"
        if fork_server_pid() is None:
            remove_abandoned(_SOCKET)
            with ExitStack() as stack:
                tempfile.tempdir = str(stack.enter_context(scratch_folder(_SOCKET)))
                util.Finalize(None, stack.pop_all().close, exitpriority=-200)  # after what multiprocessing removes
        yield
    finally:
        tempfile.tempdir = usual


def _begin(environment: dict[str, str], signs: Connection) -> None:
    """Copy the parent's environment, which may be newer than that of the fork server. Give signs of life.

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
    beat(signs)
