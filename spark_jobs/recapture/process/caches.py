"""Folders that keep compiled code: whoever can write to one decides what this process runs."""

import os
import stat
from pathlib import Path


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


def is_private(folder: str | Path) -> bool:
    """Return whether only root and this user, with the user's own group, can write to a folder."""
    status = os.stat(folder)
    writable_by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()
    return status.st_uid in (os.geteuid(), 0) and not (writable_by_group or status.st_mode & stat.S_IWOTH)
