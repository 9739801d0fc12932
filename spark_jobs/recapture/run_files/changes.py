"""The record of the checks for changed blobs: one file for all runs of a pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from recapture.errors import PermanentError
from recapture.run_files.files import FOLDER
from recapture.run_files.json_file import DamagedFileError, JsonFile
from recapture.storage import Container


@dataclass(frozen=True)
class Changes:
    """What the checks of an archive found so far."""

    slices: Mapping[str, str] = field(default_factory=dict)
    """Run whose blobs have changed since it read them, by slice_start."""
    checked: str | None = None
    """Time of the last check, ISO 8601; None if there was none."""
    start: str | None = None
    """Start of the range of the last check, ISO 8601."""
    end: str | None = None
    unknown: tuple[str, ...] = ()
    """Starts of the slices that the last check could not compare, because the manifest of their run cannot be read."""
    noticed: Mapping[str, str] = field(default_factory=dict)
    """Time at which an update first found these slices changed, ISO 8601, by slice_start."""
    released: Mapping[str, str] = field(default_factory=dict)
    """Time at which an update found other blobs than a stopped run had read, ISO 8601, by slice_start."""
    in_line: Mapping[str, int] = field(default_factory=dict)
    """Versions of the tables when they last held what is published, by name; that of the publications is empty.

    The version of a table that does not exist is -1. Nothing is here if a table did not hold what is published.
    """
    updated: str | None = None
    """Time of the last update, ISO 8601, which compared all slices that could have changed; None if there was none."""
    problem: Annotated[str | None, Field(exclude=True)] = None
    """Why nothing is known of what the checks found; None if it is."""

    def can_tell(self, start: str) -> bool:
        """Return whether the slice would be known to be stale if the last check had found it so."""
        return self.problem is None and start not in self.unknown

    def covers(self, start: str, end: str) -> bool:
        """Return whether the last check compared all slices of a range; the bounds are ISO 8601."""
        if self.start is None or self.end is None:
            return False
        return self.start <= start and end <= self.end and not any(start <= slice_ < end for slice_ in self.unknown)


_CHANGES = JsonFile(f"{FOLDER}/changed.json", Changes)


def read_changes(container: Container) -> Changes:
    """Return what the checks found; `container` is the first output's table. Raise PermanentError if it is damaged."""
    document = container.read_current(_CHANGES.name)
    if document is None:
        return Changes()
    where = f"{container.url}/{_CHANGES.name}"
    try:
        return _CHANGES.decode(document, where)
    except DamagedFileError:
        raise PermanentError(
            f"{where}, the record of the checks for changed blobs, is damaged: restore it, or delete it and check all "
            "published slices again"
        ) from None


def write_changes(container: Container, changes: Changes) -> None:
    """Record what the checks found."""
    container.write(_CHANGES.name, _CHANGES.encode(changes))
