"""Folders and files that keep compiled code: whoever can write to one decides what this process runs."""

import fcntl
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

LONGEST_WAIT = 60.0
"""How long a process waits for another one that compiles the same function; seconds."""
_LOOK = 0.02
"""Time between two looks at a lock; seconds."""
_DIGEST = sha256().digest_size


def user_folder(name: str) -> Path | None:
    """Create and return this user's cache folder of this name; None if it cannot be used.

    The folder is not among the temporary files: there, somebody else may take the name first.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recapture" / name
        folder.mkdir(0o700, parents=True, exist_ok=True)
        return folder if is_private(folder) else None
    except (OSError, RuntimeError):  # there is no home folder, or it is not writable
        return None


def read(file: Path) -> bytes | None:
    """Return what `write` kept in a file; None if it is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, kept = content[:_DIGEST], content[_DIGEST:]
    return kept if digest == sha256(kept).digest() else None


def write(file: Path, content: bytes) -> None:
    """Keep content in a file, after its digest, if the file can be written."""
    with suppress(OSError):
        file.write_bytes(sha256(content).digest() + content)


def is_private(folder: str | Path) -> bool:
    """Return whether only root and this user, with the user's own group, can write to a folder."""
    status = os.stat(folder)
    writable_by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()
    return status.st_uid in (os.geteuid(), 0) and not (writable_by_group or status.st_mode & stat.S_IWOTH)


def stamps(files: Iterable[str]) -> tuple[tuple[float, int], ...]:
    """Return what changes when one of these files changes."""
    return tuple((status.st_mtime, status.st_size) for status in map(os.stat, sorted(files)))


@dataclass(frozen=True)
class Lock:
    """A locked file. The lock also ends with this process."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Remove the file and release the lock. Whoever waits for it gets the lock of the removed file."""
        with suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)


def lock(folder: str | Path, name: str) -> Lock | None:
    """Create a file and wait for its lock.

    Return None if the file cannot be locked, or if another process holds the lock for longer than `LONGEST_WAIT`.
    """
    path = Path(folder, name)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    end = time.monotonic() + LONGEST_WAIT
    try:
        while not _is_locked(descriptor):
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(_LOOK)
    except OSError:
        os.close(descriptor)
        return None
    return Lock(path, descriptor)


def _is_locked(descriptor: int) -> bool:
    """Lock a file and return True; return False if another process holds its lock. Raise OSError if it has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
