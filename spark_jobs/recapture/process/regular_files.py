"""Read files whose names come from other files: such a name may lead to a device, or to a pipe that never ends."""

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags of opening: without O_NONBLOCK, opening a pipe waits until another process writes to it."""


def read_regular(path: Path, size: int = -1) -> bytes:
    """Return the content of a regular file, or its first `size` bytes.

    Raise OSError if it cannot be read, or if it is a folder, a device, a pipe or a socket.
    """
    with open(os.open(path, _FLAGS), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(size)
