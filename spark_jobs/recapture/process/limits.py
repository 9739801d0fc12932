"""Limits of the process and the machine: what a user reads instead of a traceback when one is reached."""

import errno
import os
import resource
import tempfile

from recapture.errors import SetupError

_FEWEST_FILES = 256
"""Number of files that a command may have to open at once; one with two workers needs 64."""
_ADVICE = {
    errno.EMFILE: "too many files are open: allow more, such as with ulimit -n 4096",
    errno.ENFILE: "too many files are open on this machine: end other programs, or allow more",
    errno.EAGAIN: "no further process or thread can be started: allow more, such as with ulimit -u, or end others",
    errno.ENOMEM: "no memory is left: free some, or allow more, such as with ulimit -v",
}
_NO_THREAD = ("can't start new thread", "cannot join thread before it is started")
"""What Python says if it cannot start a thread, and what a pool of processes then says when it ends."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors that a full disk, or a limit of what may be written to it, causes."""


def require_open_files() -> None:
    """Let this process open as many files as a command needs. Raise SetupError if it must not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FEWEST_FILES:
        return
    if hard != resource.RLIM_INFINITY and hard < _FEWEST_FILES:
        raise SetupError(
            f"this process may open only {hard} files: allow {_FEWEST_FILES} or more, such as with ulimit -n 4096"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FEWEST_FILES, hard))


def reached_limit(error: BaseException) -> str | None:
    """Return which limit an error says is reached, and what to do; None if the error has another reason."""
    if isinstance(error, MemoryError):
        return _ADVICE[errno.ENOMEM]
    if isinstance(error, RuntimeError) and str(error) in _NO_THREAD:
        return _ADVICE[errno.EAGAIN]
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno in NO_SPACE:
        place = error.filename or f"the folder for temporary files, {tempfile.gettempdir()}"
        return f"cannot write to {place}: {os.strerror(error.errno)}; free some space, or set TMPDIR to another folder"
    return _ADVICE.get(error.errno)
