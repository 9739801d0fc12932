"""A folder for temporary files of a run, such as rows that Spark spills. It is removed when the run ends.

If a run is killed, the next run of the same name removes its folder.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recapture.errors import SetupError
from recapture.storage.locks import locked

_PREFIX = "recapture-"


def temporary_folder() -> Path:
    """Return the folder for temporary files. Raise SetupError if there is none."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        raise SetupError("no folder for temporary files is writable: set TMPDIR to a writable one") from None


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Make a folder for temporary files that only this user can enter, and remove it in the end."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=temporary_folder()))
        with locked(folder) as ours:
            if not ours:
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def remove_abandoned(name: str) -> list[Path]:
    """Remove the folders of this name whose runs have ended without removing them; return their paths.

    Others may use the folder for temporary files: what another user owns, or what is not a folder, is left alone.
    """
    removed = []
    for folder in sorted(temporary_folder().glob(f"{_PREFIX}{name}-*")):
        with locked(folder) as abandoned:
            if abandoned and _is_own_folder(folder):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    removed.append(folder)
    return removed


def _is_own_folder(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
