"""A folder for temporary files of a run, such as rows that Spark spills. It is removed when the run ends.

If a run is killed, the next run of the same name removes its folder.
"""

import shutil
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
    """Make a folder for temporary files, and remove it in the end."""
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
    """Remove the folders of this name whose runs have ended without removing them; return their paths."""
    removed = []
    for folder in sorted(temporary_folder().glob(f"{_PREFIX}{name}-*")):
        with locked(folder) as abandoned:
            if abandoned and folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed
