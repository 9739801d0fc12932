"""Marks of runs that ended after their audit without publishing anything, in one small file each.

The files are next to the run files, so that one listing finds all runs of a kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recapture.errors import FormatError
from recapture.run_files.files import FOLDER, RunFiles, range_of_run
from recapture.run_files.json_file import DamagedFileError, JsonFile
from recapture.storage import Blob, Container


@dataclass(frozen=True)
class Mark:
    """A run that ended after its audit without publishing anything."""

    run: str
    start: int
    """Start of the run's range, in ticks."""
    end: int
    at: datetime
    """Time of the run's last audit, in UTC."""


@dataclass(frozen=True)
class Unpublished:
    """What a run that published nothing had read, with which definition, and what was published at that time."""

    at: str
    """Time of the audit, ISO 8601."""
    parts: Mapping[str, str]
    """Parts of the definition and of the suite, as `run.outdated.parts_of`."""
    read: Mapping[str, str]
    """What each slice read (`archive.manifest.slice_read`), by slice_start."""
    held: Mapping[str, str | None] | None = None
    """Run that each slice held when the audit began, by slice_start; None if an older version wrote the file."""
    incomplete: tuple[str, ...] | None = None
    """Starts of the slices of which Capture may not have written all; None if an older version wrote the file."""


@dataclass(frozen=True)
class Marks:
    """The marks of one kind of runs."""

    folder: str

    def record(self, files: RunFiles, run: Unpublished) -> None:
        """Mark a run."""
        file = self._file(files.id)
        files.container.write(file.name, file.encode(run))

    def read(self, container: Container, run: str) -> Unpublished | None:
        """Return what a marked run had read; None if it is not known."""
        file = self._file(run)
        document = container.read_current(file.name)
        try:
            return None if document is None else file.decode(document, file.name)
        except (DamagedFileError, FormatError):  # an older version wrote a sentence
            return None

    def runs(self, container: Container) -> list[Mark]:
        """Return the marked runs, oldest first; `container` is the first output's table.

        Of those of the same second, the shortest is the last: a longer one is divided into shorter ones.
        """
        marks = []
        for run, blob in self.blobs(container).items():
            if range_ := range_of_run(run):
                marks.append(Mark(run, *range_, blob.last_modified))
        return sorted(marks, key=lambda mark: (mark.at, mark.start - mark.end))

    def blobs(self, container: Container) -> dict[str, Blob]:
        """Return the files of the marks, by run."""
        return {blob.name.removeprefix(self.folder): blob for blob in container.list(self.folder)}

    def remove(self, container: Container, run: str) -> None:
        """Remove the mark of a run, if it has one."""
        for blob in container.list(f"{self.folder}{run}"):
            container.remove(blob)

    def _file(self, run: str) -> JsonFile[Unpublished]:
        return JsonFile(f"{self.folder}{run}", Unpublished)


STOPPED_RUNS = Marks(f"{FOLDER}/blocked/")
"""Runs that their audits stopped."""
STAGED_RUNS = Marks(f"{FOLDER}/staged/")
"""Runs that passed their audits, and wait for a person who publishes or discards them."""
