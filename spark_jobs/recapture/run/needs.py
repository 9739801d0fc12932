"""What is still needed of the runs of some slices: for the publications, for rollback, and by runs that may publish."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from recapture.archive.manifest import Manifest
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.run_files.contents import AUDIT, OUTCOME
from recapture.run_files.files import FOLDER, RunFiles, range_of_run
from recapture.run_files.marks import STAGED_RUNS
from recapture.storage import Container, in_parallel
from recapture.storage.container import Blob
from recapture.table.files import folder_of, is_for_input
from recapture.table.publications import Entry, Publications
from recapture.table.writable import RETENTION
from recapture.time_model import ticks


@dataclass(frozen=True)
class StoredRun:
    """The run files of a run."""

    id: str
    start: int
    """Start of the run's range, in ticks."""
    end: int
    blobs: tuple[Blob, ...]

    def slice_starts(self, length: int) -> range:
        """Return the starts of its slices, in ticks; `length` is that of a slice."""
        return range(self.start, self.end, length)

    def covers(self, start: int) -> bool:
        """Return whether the slice with this start, in ticks, is in the run's range, whatever its length is."""
        return self.start <= start < self.end

    def written(self, name: str) -> datetime | None:
        """Return when a run file was written; None if there is no such file."""
        return next((blob.last_modified for blob in self.blobs if blob.name == f"{FOLDER}/{self.id}/{name}"), None)

    def is_recent(self, oldest: datetime) -> bool:
        """Return whether a file was written at this time or later: the run may be in progress."""
        return any(blob.last_modified >= oldest for blob in self.blobs)

    @property
    def unpublished_since(self) -> datetime | None:
        """Time of the audit of a run that was not published since; None if it was, or if it was never audited."""
        audited, published = self.written(AUDIT.name), self.written(OUTCOME.name)
        return None if audited is None or (published is not None and published >= audited) else audited

    def is_undecided(self, entries: Iterable[Entry]) -> bool:
        """Return whether a person, or a later command, may still publish the audited run.

        That is so until it is published, or until something is published in each of its slices. `entries` are theirs.
        """
        audited = self.unpublished_since
        return audited is not None and any(
            entry.current is None or entry.current.published < audited for entry in entries
        )


@dataclass(frozen=True)
class Needs:
    """What is needed of some slices and runs."""

    runs: Mapping[str, StoredRun]
    """The runs that were looked at, by id."""
    needed_runs: Collection[str]
    """Ids of those whose run files are needed."""
    paths: Collection[str]
    """Paths of the files that the publications and rollback need."""
    digests: Mapping[int, Collection[str]]
    """Digests of the input of slices that a run may still publish, by their starts in ticks."""
    unreadable: Collection[StoredRun] = ()
    """Runs that may still publish any file, because their manifests cannot be read."""

    def needs_file(self, start: int, path: str) -> bool:
        """Return whether a file of a slice is needed; `start` is that of the slice, in ticks."""
        return (
            path in self.paths
            or any(is_for_input(path, digest) for digest in self.digests.get(start, ()))
            or any(run.covers(start) for run in self.unreadable)
        )


def needs_of(
    container: Container,
    publications: Publications,
    slice_starts: Collection[int],
    run_ids: Collection[str],
    length: int,
    oldest: datetime,
) -> Needs:
    """Read what is needed now of some slices, of the runs that have one of them, and of other runs.

    `container` is that of the run files. `slice_starts` and the `length` of a slice are in ticks. A run with a file
    that was written at `oldest` or later may be in progress. A run that was staged before expired.
    """
    publications.table.refresh()
    expired = {run for run, mark in STAGED_RUNS.blobs(container).items() if mark.last_modified < oldest}
    runs = [
        run for run in stored_runs(container) if run.id in run_ids or any(run.covers(start) for start in slice_starts)
    ]
    runs = in_parallel(lambda run: with_files(container, run), runs)
    starts = {*slice_starts, *(start for run in runs for start in run.slice_starts(length))}
    ever_published = {_instant(text): text for text in publications.table.held()}
    starts |= {start for start in ever_published if start is not None and any(run.covers(start) for run in runs)}
    texts = {start: ever_published.get(start) or ticks.to_text(start) for start in starts}
    by_text = publications.entries(sorted(texts.values()))
    entries = {start: by_text[text] for start, text in texts.items()}
    active = [
        run
        for run in runs
        if run.is_recent(oldest)
        or (run.id not in expired and run.is_undecided(entries[start] for start in run.slice_starts(length)))
    ]
    named = {name for entry in entries.values() for name in runs_of(entry)}
    manifests = in_parallel(lambda run: _manifest(container, run), active)
    digests: dict[int, set[str]] = {}
    for manifest in manifests:
        for run_slice in () if manifest is None else manifest.slices:
            digests.setdefault(run_slice.slice.start, set()).add(run_slice.digest)
    return Needs(
        runs={run.id: run for run in runs},
        needed_runs={run.id for run in active} | named,
        paths=paths_of(entries.values()),
        digests=digests,
        unreadable=[run for run, manifest in zip(active, manifests, strict=True) if manifest is None],
    )


def longest_wait(pipeline: Pipeline) -> timedelta:
    """Return how long a run may be in progress, or be staged, before its files are removed."""
    approval = pipeline.approval
    return max(RETENTION, timedelta(hours=approval.wait_hours) if approval else timedelta())


def stored_runs(container: Container) -> list[StoredRun]:
    """Return the runs that have run files, without listing these."""
    runs = []
    for folder in container.list_folders(f"{FOLDER}/"):
        name = folder.split("/")[1]
        if bounds := range_of_run(name):
            runs.append(StoredRun(name, *bounds, ()))
    return runs


def runs_of(entry: Entry) -> set[str]:
    """Return the runs that an entry names."""
    publications = [publication for publication in (entry.current, *entry.earlier) if publication is not None]
    return {publication.run for publication in publications} | ({entry.taken_back} if entry.taken_back else set())


def paths_of(entries: Iterable[Entry]) -> set[str]:
    """Return the paths of the files that entries name, in any table."""
    publications = (publication for entry in entries for publication in (entry.current, *entry.earlier))
    named = (publication.files.values() for publication in publications if publication is not None)
    return {file.path for files in named for file in files if file is not None}


def slice_of(path: str) -> int | None:
    """Return the start of the slice of a file that `write_slice_file` wrote, in ticks; None if it is no such path."""
    folder = path.split("/")[0]
    try:
        start = ticks.from_compact_text(folder.partition("=")[2])
    except ValueError:
        return None
    return start if path.startswith(folder_of(start)) else None


def _instant(text: str) -> int | None:
    """Return the start of a slice in ticks; None if another program wrote the row."""
    try:
        return ticks.from_text(text)
    except ValueError:
        return None


def with_files(container: Container, run: StoredRun) -> StoredRun:
    """Return a run with a new listing of its run files."""
    return StoredRun(run.id, run.start, run.end, tuple(container.list(f"{FOLDER}/{run.id}/")))


def _manifest(container: Container, run: StoredRun) -> Manifest | None:
    try:
        return RunFiles(container, run.id).find_manifest()
    except RunError:
        return None
