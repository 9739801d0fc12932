"""Read the files of an ASA job, and only those in its folder.

A project or a template may come from others, and parts of its files are written into the pipeline file. So no file
outside the folder is opened, whatever the files name and wherever links lead.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from recapture.errors import DefinitionError
from recapture.process.regular_files import read_regular

MAX_BYTES = 16 * 1024 * 1024
"""Largest size of a job's files together, in bytes. Azure takes templates of up to 4 MB."""


@dataclass
class JobFolder:
    """Folder of a job. The names of files are relative to it."""

    path: Path
    size: int = 0
    """Size of the files that were read, in bytes."""

    def has(self, name: str) -> bool:
        """Return whether the folder has a file of this name. Raise DefinitionError if the name leads out of it."""
        return os.path.exists(self._resolved(name))

    def read(self, name: str) -> str:
        """Return the text of a file. Raise DefinitionError as `read_text` does, or if the name leads out."""
        text = read_text(self._resolved(name), name, MAX_BYTES - self.size)
        self.size += len(text.encode())
        return text

    def _resolved(self, name: str) -> Path:
        """Return the path of a file without links. Raise DefinitionError if it is outside the folder."""
        try:
            folder, path = os.path.realpath(self.path), os.path.realpath(self.path / name)
        except ValueError:
            raise DefinitionError(f"{name!a} is not the name of a file: correct it in the project") from None
        if os.path.commonpath([folder, path]) != folder:
            raise DefinitionError(
                f"{name}: leads out of the job's folder, so it is not read: copy the file into the folder, and refer "
                "to the copy"
            )
        return Path(path)


def read_text(path: Path, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a file without a byte order mark, with \\n at the end of its lines.

    Raise DefinitionError if it cannot be read, is larger than `max_bytes`, or is not UTF-8. Messages call it `name`.
    """
    try:
        content = read_regular(path, max_bytes + 1)
    except OSError as error:
        raise DefinitionError(f"{name}: cannot be read ({error.strerror})") from None
    if len(content) > max_bytes:
        raise DefinitionError(
            f"{name}: the files of the job have more than {MAX_BYTES // 1024**2} MiB in all: shorten them"
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise DefinitionError(f"{name}: not UTF-8 text: save it as UTF-8") from None
