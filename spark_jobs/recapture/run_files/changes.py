"""The record of the checks for changed blobs: one file for all runs of a pipeline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from recapture.run_files.files import FOLDER
from recapture.run_files.json_file import JsonFile
from recapture.run_files.shared_file import SharedFile
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
    """Time at which these slices were first found changed since they were published, ISO 8601, by slice_start."""
    published: Mapping[str, str] = field(default_factory=dict)
    """Time at which these slices were published, ISO 8601, by slice_start: the same run may be published again."""
    last_changes: Mapping[str, str] = field(default_factory=dict)
    """Time of the last change that was found of these slices' blobs, ISO 8601, by slice_start."""
    released: Mapping[str, str] = field(default_factory=dict)
    """Time at which an update found other blobs than a stopped run had read, ISO 8601, by slice_start."""
    finished: int | None = None
    """Version of the publications up to which every change is finished in every table; None if that is not known.

    It is -1 if there were no publications.
    """
    since: str | None = None
    """Start of the first slice that updates keep, ISO 8601, if the pipeline file does not say it."""
    turn: str | None = None
    """Start of the last older slice that an update compared in turn, ISO 8601."""
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


RECORD = SharedFile(
    JsonFile(f"{FOLDER}/changed.json", Changes),
    Changes(),
    "the record of the checks for changed blobs, is damaged: restore it, or delete it and check all published slices "
    "again",
)


def read_changes(container: Container) -> Changes:
    """Return what the checks found; `container` is the first output's table. Raise PermanentError if it is damaged."""
    return RECORD.read(container)


def change_record(container: Container, change: Callable[[Changes], Changes]) -> Changes:
    """Change what is recorded of the checks, and return the new record. Errors are those of `SharedFile.change`."""
    return RECORD.change(container, change)
