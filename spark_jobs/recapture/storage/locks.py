"""Tell whether the process that wrote a file or a folder is still alive: it holds a lock, which ends with it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder, and yield True; yield False if it is gone, or somebody else holds its lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
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


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the path still names what was opened."""
    try:
        now = path.stat()
    except OSError:
        return False
    opened = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino)
