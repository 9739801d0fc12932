"""Remove what nothing needs any more: files of slices, change data, run files and marks of stopped runs."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from recapture.definition.pipeline import Pipeline
from recapture.errors import SetupError
from recapture.run.needs import Needs, StoredRun, longest_wait, needs_of, slice_of, stored_runs
from recapture.run.slice_state import blocked_in
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.run_files.computed import STAGED
from recapture.run_files.files import FOLDER, MANIFEST
from recapture.run_files.marks import STAGED_RUNS, STOPPED_RUNS
from recapture.storage import Container, in_parallel, open_container
from recapture.storage.container import Blob
from recapture.table.delta import OpenTable, Table
from recapture.table.publications import shown_entries
from recapture.table.publish import Tables
from recapture.table.unused import CHANGE_DATA, unused_files
from recapture.table.writable import RETENTION

Item = TypeVar("Item")
AT_ONCE = 24
"""Number of slices, or of runs, whose needs are read together, right before what they do not need is deleted."""


@dataclass
class Removal:
    """Files of one kind in one place that are removed, or would be."""

    where: str
    """Address of the table."""
    what: str
    files: int = 0
    bytes: int = 0
    """Size of the files."""


FILES = "files of slices that no version within the retention, no publication and no run needs"
CHANGES = "files of change data that are older than the retention"
ENTRIES = "files of publications that no version within the retention names"
RUNS = "run files of runs that no publication names and that cannot be published any more"
MARKS = "marks of stopped runs whose slices were published since"
STAGED_MARKS = "marks of staged runs that have expired"


@dataclass
class _Removals:
    """Deletes files, unless it is a dry run, and counts them."""

    dry_run: bool
    counted: dict[tuple[str, str], Removal] = field(default_factory=dict)

    def remove(self, container: Container, what: str, blobs: Sequence[Blob]) -> None:
        """Delete blobs, one after the other in any order, and count those that were still as they were listed."""
        deleted = [True] * len(blobs) if self.dry_run else in_parallel(container.remove, blobs)
        removal = self.counted.setdefault((container.url, what), Removal(container.url, what))
        for blob, was_there in zip(blobs, deleted, strict=True):
            removal.files += was_there
            removal.bytes += blob.size if was_there else 0


def clean(pipeline: Pipeline, *, dry_run: bool) -> list[Removal]:
    """Remove what nothing needs of the tables and the run files of a pipeline: see `clean_tables`."""
    run_files = open_container(pipeline.outputs[0].table)
    return clean_tables(
        tables_of(pipeline), run_files, slice_length(pipeline), wait=longest_wait(pipeline), dry_run=dry_run
    )


def clean_tables(
    tables: Tables, run_files: Container, length: int, *, wait: timedelta = RETENTION, dry_run: bool = False
) -> list[Removal]:
    """Remove what no reader, rollback, report or run needs any more, and return it; `dry_run` removes nothing.

    `length` is that of a slice, in ticks, and `wait` is how long a run may be in progress, or be staged. Runs,
    rollbacks and readers may work at the same time: what is needed is read again right before each deletion, and a file
    that was written again stays. A call that was interrupted leaves nothing that another cannot remove. Raise
    DefinitionError if the tables belong to another pipeline, and RunError if the storage refuses.
    """
    for table in (tables.publications, *tables.others.values()):
        OpenTable(table).require_writable()
    publications = tables.open_publications()
    if publications.table.version is None and not _exists(run_files):
        return []
    removals, oldest = _Removals(dry_run), run_files.clock() - wait

    def needs(starts: Collection[int] = (), runs: Collection[str] = ()) -> Needs:
        return needs_of(run_files, publications, starts, runs, length, oldest)

    for table in tables.others.values():
        _clean_table(removals, table, needs)
    removals.remove(open_container(tables.publications.url), ENTRIES, unused_files(tables.publications))
    removed = _clean_runs(removals, run_files, publications.table, needs)
    _clean_marks(removals, run_files, publications.table, length, oldest, removed)
    return [removal for removal in removals.counted.values() if removal.files]


def _exists(container: Container) -> bool:
    try:
        next(iter(container.list_folders(f"{FOLDER}/")), None)
    except SetupError:
        return False
    return True


def _clean_table(removals: _Removals, table: Table, needs: Callable[[Collection[int]], Needs]) -> None:
    """Remove the unused files of a table whose slices do not need them."""
    container = open_container(table.url)
    by_slice: dict[int, list[Blob]] = {}
    change_data = []
    for blob in unused_files(table):
        start = slice_of(blob.name)
        if blob.name.startswith(CHANGE_DATA):
            change_data.append(blob)
        elif start is not None:
            by_slice.setdefault(start, []).append(blob)
    removals.remove(container, CHANGES, change_data)
    for starts in batched(sorted(by_slice)):
        needed = needs(starts)
        files = ((start, blob) for start in starts for blob in by_slice[start])
        removals.remove(container, FILES, [blob for start, blob in files if not needed.needs_file(start, blob.name)])


def _clean_runs(
    removals: _Removals, container: Container, publications: OpenTable, needs: Callable[..., Needs]
) -> set[str]:
    """Remove the run files of runs that nothing needs, and return their ids."""
    shown = shown_entries(publications).values()
    named = {run for entry in shown for run in (entry.run, entry.taken_back)}
    removed = set()
    for ids in batched([run.id for run in stored_runs(container) if run.id not in named]):
        needed = needs(runs=ids)
        for run in ids:
            if run in needed.runs and run not in needed.needed_runs:
                for blobs in in_order(needed.runs[run]):
                    removals.remove(container, RUNS, blobs)
                removed.add(run)
    return removed


def in_order(run: StoredRun) -> Iterator[list[Blob]]:
    """Yield the run files in the order in which they are deleted.

    A run without the list of its staged files cannot be published, and one with a manifest can be repeated.
    """
    first, last = (f"{FOLDER}/{run.id}/{name}" for name in (STAGED.name, MANIFEST))
    yield [blob for blob in run.blobs if blob.name == first]
    yield [blob for blob in run.blobs if blob.name not in (first, last)]
    yield [blob for blob in run.blobs if blob.name == last]


def _clean_marks(
    removals: _Removals,
    container: Container,
    publications: OpenTable,
    length: int,
    oldest: datetime,
    removed: Collection[str],
) -> None:
    """Remove the marks of stopped runs that neither block a slice nor have run files; `removed` lost theirs.

    Also remove the marks of staged runs that have expired, unless a run of the same name is in progress.
    """
    publications.refresh()
    blocking = set(blocked_in(container, shown_entries(publications), length).values())
    stopped = STOPPED_RUNS.runs(container)
    old = [mark.run for mark in stopped if mark.at < oldest and mark.run not in blocking]
    without_files = {run for run in old if run in removed or not any(container.list(f"{FOLDER}/{run}/"))}
    removals.remove(
        container, MARKS, [mark for run, mark in STOPPED_RUNS.blobs(container).items() if run in without_files]
    )
    expired = {run: mark for run, mark in STAGED_RUNS.blobs(container).items() if mark.last_modified < oldest}
    files = {run: [*container.list(f"{FOLDER}/{run}/")] for run in expired}
    working = {run for run, blobs in files.items() if any(blob.last_modified >= oldest for blob in blobs)}
    removals.remove(container, STAGED_MARKS, [mark for run, mark in expired.items() if run not in working])


def batched(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield items, AT_ONCE at a time."""
    for number in range(0, len(items), AT_ONCE):
        yield items[number : number + AT_ONCE]
