"""Locks of files and folders, which end with the process that holds them."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder and yield True; yield False if it is gone, or if another process holds it.

    Yield False also for links and pipes, which no writer makes: somebody else may have put one at a name of ours.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield _is_at(path, descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, and wait until it is free. Raise OSError if the folder cannot be opened."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the path still names the file or folder that was opened."""
    try:
        current = path.lstat()
    except OSError:
        return False
    opened = os.fstat(descriptor)
    if not (stat.S_ISREG(opened.st_mode) or stat.S_ISDIR(opened.st_mode)):
        return False
    return (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino)
