"""Runs that their audits stopped: one small file each, next to the run files, so that one listing finds all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recapture.errors import FormatError
from recapture.run_files.files import FOLDER, RunFiles, range_of_run
from recapture.run_files.json_file import DamagedFileError, JsonFile
from recapture.storage import Blob, Container

_FILES = f"{FOLDER}/blocked/"


@dataclass(frozen=True)
class Block:
    """A run that its audit stopped."""

    run: str
    start: int
    """Start of the run's range, in ticks."""
    end: int
    at: datetime
    """Time of the run's last failed audit, in UTC."""


@dataclass(frozen=True)
class StoppedRun:
    """What a run that its audit stopped had read, and with which definition."""

    at: str
    """Time of the audit, ISO 8601."""
    parts: Mapping[str, str]
    """Parts of the definition and of the suite, as `run.outdated.parts_of`."""
    read: Mapping[str, str]
    """What each slice read (`archive.manifest.slice_read`), by slice_start."""
    held: Mapping[str, str | None] | None = None
    """Run that each slice held when the audit began, by slice_start; None if an older version wrote the file."""


def record_block(files: RunFiles, stopped: StoppedRun) -> None:
    """Record that the audit stopped a run."""
    file = _file(files.id)
    files.container.write(file.name, file.encode(stopped))


def read_block(container: Container, run: str) -> StoppedRun | None:
    """Return what a run that its audit stopped had read; None if it is not known."""
    file = _file(run)
    document = container.read_current(file.name)
    try:
        return None if document is None else file.decode(document, file.name)
    except (DamagedFileError, FormatError):  # an older version wrote a sentence
        return None


def _file(run: str) -> JsonFile[StoppedRun]:
    return JsonFile(f"{_FILES}{run}", StoppedRun)


def blocks_in(container: Container) -> list[Block]:
    """Return the runs that their audits stopped, oldest first; `container` is the first output's table.

    Of those of the same second, the shortest is the last: a longer one is divided into shorter ones.
    """
    blocks = []
    for run, mark in marks_in(container).items():
        if range_ := range_of_run(run):
            blocks.append(Block(run, *range_, mark.last_modified))
    return sorted(blocks, key=lambda block: (block.at, block.start - block.end))


def marks_in(container: Container) -> dict[str, Blob]:
    """Return the files that mark the runs in `blocks_in`, by run."""
    return {blob.name.removeprefix(_FILES): blob for blob in container.list(_FILES)}
