"""Shortcuts at the start of the process that forks the workers, and of the workers. See also `startup`.

Each says what it saves, in CPU seconds on one machine. They use private parts of multiprocessing, as `startup` does;
`startup` is apart because it must not import multiprocessing.
"""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker, util
from typing import Any, NoReturn


@contextmanager
def forked_server(preloaded: Sequence[str]) -> Iterator[None]:
    """Let the fork server that starts in this context be a fork of this process, instead of a new Python.

    Saves 0.6 s of a backfill: the server does not import again what this process has imported. `preloaded` are the
    modules that the server imports besides.

    It is forked before there are locks and pipes that it must not hold. It gets its own as multiprocessing starts it.
    """
    resource_tracker.ensure_running()  # is started in the same way
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            server = os.fork()
            if not server:
                _serve(ours, theirs, preloaded)
        starts_python = util.spawnv_passfds

        def start(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
            socket.send_fds(ours, [b"start"], list(passfds))
            return server

        util.spawnv_passfds = start
        try:
            yield
        finally:
            util.spawnv_passfds = starts_python


def _serve(ours: socket.socket, theirs: socket.socket, preloaded: Sequence[str]) -> NoReturn:
    """Be the fork server, as soon as `theirs` gets what it listens on. End at once if it gets nothing."""
    try:
        ours.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _, descriptors, _, _ = socket.recv_fds(theirs, 16, 8)
        theirs.close()
        if descriptors:
            listener, alive, *key = descriptors
            options: dict[str, Any] = {"authkey_r": key[0]} if key else {}  # from Python 3.14 on
            forkserver.main(listener, alive, list(preloaded), **options)
    finally:
        os._exit(0)


@contextmanager
def without_main_module() -> Iterator[None]:
    """Hide from multiprocessing, in this context, from which file the main module comes.

    Otherwise each process would import it: 1.9 s of each process that a task of Airflow starts.
    """
    main: Any = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    main.__spec__ = main.__file__ = None
    try:
        yield
    finally:
        main.__spec__, main.__file__ = spec, file
