"""Publish the slices of a run in every table of a pipeline, or roll them back.

Delta has no commit over several tables. One table therefore decides: a run is published by its commit to the
publications, and every other table is then brought in line with them. To do so, read the table, then the publications;
commit only if the table has not changed since; repeat until they agree. Other publishers and rollbacks may run at the
same time: every table ends with the files that the publications name. If a publisher is killed, some tables lag until
the next publisher of the same slices.

Before the commit to the publications, every table is claimed for the pipeline, and every file that the commits will
name is looked at: what was lost, damaged or vacuumed since it was staged is never published.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recapture.errors import InterruptedRunError, PermanentError, RecaptureError, RunError, UnfinishedError
from recapture.table.delta import TRY_LATER, OpenTable, Table
from recapture.table.publications import Entry, Publication, Publications
from recapture.table.snapshot import File, HeldFile
from recapture.table.stored import Look
from recapture.table.unchanged import with_kept_files

TRIES = 10
"""Maximum number of attempts to commit while other writers commit first."""


@dataclass(frozen=True)
class Tables:
    """Tables of a pipeline."""

    publications: Table
    others: Mapping[str, Table]
    """Other tables by their name in `Publication.files`, in the order of the commits."""

    def require_publishable(self, take_over: bool = False) -> None:
        """Raise DefinitionError if a table takes no rows of the pipeline: see `OpenTable.require_publishable`."""
        for table in (self.publications, *self.others.values()):
            self.open(table).require_publishable(take_over)

    def open(self, table: Table) -> OpenTable:
        """Return one of the tables as it is now."""
        return OpenTable(table)

    def open_publications(self) -> Publications:
        """Return the publications as they are now."""
        return Publications(self.publications)

    def look(self, remedy: str) -> Look:
        """Return a look at the files of the tables."""
        return Look(remedy)


@dataclass
class Outcome:
    """Result of a publication or rollback."""

    recorded: list[str] = field(default_factory=list)
    """Slices whose entry in the publications changed."""
    changed: dict[str, list[str]] = field(default_factory=dict)
    """Slices whose file changed, by the name of the table."""
    versions: dict[str, int | None] = field(default_factory=dict)
    """Versions by the name of the table; None if the table does not exist because nothing was ever written to it."""
    repaired: list[str] = field(default_factory=list)
    """Slices whose change an earlier call had left unfinished in some table."""
    superseded: dict[str, str | None] = field(default_factory=dict)
    """Run that a slice holds now, for slices that another call has published or rolled back since."""
    whole_in_feed: dict[str, list[str]] = field(default_factory=dict)
    """Slices whose rows the change data feed of a table deletes and inserts all, as they could not be compared."""
    entries: dict[str, Entry] = field(default_factory=dict)
    """Entries of the slices at the end of the call."""


Change = Callable[[Mapping[str, Entry]], dict[str, Entry]]
"""Function from the entries of slices before a change to those after it."""


def publish(
    tables: Tables,
    publications: Mapping[str, Publication],
    *,
    take_over: bool = False,
    unless_newer_than: Mapping[str, str | None] | None = None,
) -> Outcome:
    """Publish slices in every table; `publications` is keyed by slice_start.

    A slice that already holds its publication does not change, and a slice keeps its file in each table in which its
    rows are unchanged (see `table.unchanged`). With `take_over`, the tables of another pipeline become this pipeline's.
    Raise PermanentError if another run was published for a slice after the run in `unless_newer_than`, by slice_start.
    Raise RunError if a file is gone or damaged, and DefinitionError if a table takes no rows of the pipeline. Raise
    UnfinishedError or InterruptedRunError if some table may have the publications already. After any other error
    nothing is published.
    """

    def change(before: Mapping[str, Entry]) -> dict[str, Entry]:
        if unless_newer_than is not None:
            for start, publication in publications.items():
                require_none_newer(publication.run, start, before[start], unless_newer_than.get(start))
        new = with_kept_files(publications, before, tables.others, look)
        return {start: before[start].after_publishing(publication) for start, publication in new.items()}

    runs = sorted({publication.run for publication in publications.values()})
    what = f"the publication of run {', '.join(runs)}"
    again = "repeat the backfill; in Airflow, clear the DAG run's task order_and_aggregate"
    look = tables.look(again)
    return _change(tables, list(publications), change, what, look, is_new=True, take_over=take_over)


def require_none_newer(run: str, start: str, entry: Entry, held: str | None) -> None:
    """Raise PermanentError if a slice holds another run than `run`, published after the run that it `held` once."""
    if entry.run != run and entry.is_newer(held):
        raise PermanentError(
            f"run {run} cannot be published any more: run {entry.run} was published for slice {start} after its audit; "
            "to replace what is published, backfill the slice again"
        )


def rollback(tables: Tables, slice_starts: Sequence[str], run: str | None = None) -> Outcome:
    """Restore in every table what the slices held before their publication by `run`.

    Without `run`, the last publication of each slice is rolled back, unless the last change of the slice was a
    rollback. So a repeated call goes back only once. Raise RunError if a slice holds another run, or if nothing is
    published for it; then nothing has changed. Other errors are as in `publish`.
    """

    def change(before: Mapping[str, Entry]) -> dict[str, Entry]:
        return {start: _rolled_back(tables, start, entry, run) for start, entry in before.items()}

    return _change(tables, slice_starts, change, "the rollback", tables.look("backfill the slice again instead"))


def bring_in_line(tables: Tables, slice_starts: Sequence[str]) -> Outcome:
    """Make every table hold what is published for these slices, after a change that was interrupted.

    Errors are as in `publish`.
    """
    return _change(tables, slice_starts, dict, "the repair", tables.look("backfill the slice again"))


def _rolled_back(tables: Tables, start: str, entry: Entry, run: str | None) -> Entry:
    """Return the entry after its rollback. Raise PermanentError if the slice holds another run, or none."""
    if entry.taken_back is not None and run in (None, entry.taken_back):
        return entry
    if entry.current is None:
        raise PermanentError(
            f"nothing is published for slice {start} in {tables.publications.url}: see recapture status"
        )
    if run not in (None, entry.current.run):
        raise PermanentError(f"slice {start} holds run {entry.current.run}, not {run}: see recapture status")
    return entry.after_rollback()


def _change(
    tables: Tables,
    starts: Sequence[str],
    change: Change,
    what: str,
    look: Look,
    *,
    is_new: bool = False,
    take_over: bool = False,
) -> Outcome:
    """Change the publications of slices, then bring every table in line with them.

    `is_new` says whether the files have the columns of `Table`; else they are files of before, which another query may
    have written.
    """
    new_entries: dict[str, Entry] = {}
    with _progress_in_errors(tables, new_entries, what):
        others = {name: tables.open(table) for name, table in tables.others.items()}
        publications = tables.open_publications()
        for table in (publications.table, *others.values()):
            (table.require_publishable if is_new else table.require_writable)(take_over)
        _require_same_names(tables, change(publications.entries(starts)))  # refuses before anything is written

        def write_new_entries() -> dict[str, File | None]:
            publications.table.claim(take_over)
            before = publications.entries(starts)
            after = change(before)
            _require_same_names(tables, after)
            for name, table in others.items():
                files = _files(after, name)
                if files or table.version is not None:
                    earlier = None if is_new else look.columns(table.table.url, _of_each_definition(after, name))
                    table.claim(take_over, earlier)
                look.secure(table, files)
            new_entries.update(after)
            hidden = publications.hidden(starts)
            changed_entries = {
                start: entry for start, entry in after.items() if entry != before[start] or start in hidden
            }
            entry_files = publications.write(changed_entries)
            look.secure(publications.table, entry_files)
            return {**entry_files}

        changed = _settle(publications.table, write_new_entries, lambda slices: _metadata(new_entries, slices))
        outcome = Outcome(recorded=sorted(changed))
        for name, table in others.items():
            outcome.changed[name] = sorted(_bring_in_line(table, name, publications, starts))
            outcome.versions[name] = table.version
            if table.whole_in_feed:
                outcome.whole_in_feed[name] = sorted(table.whole_in_feed)
        outcome.entries = publications.entries(starts)
        look.again()
    for start, entry in outcome.entries.items():
        if entry != new_entries[start]:
            outcome.superseded[start] = entry.run
    moved = {start for slices in outcome.changed.values() for start in slices}
    outcome.repaired = sorted(moved - changed - set(outcome.superseded))
    return outcome


def _require_same_names(tables: Tables, entries: Mapping[str, Entry]) -> None:
    """Raise PermanentError if an entry has files of a table that may have another name now: its rows would be removed.

    An output without files is new, and files without an output are those of one that the query no longer has. If there
    are both, the output may have been renamed.
    """
    for start, entry in entries.items():
        names = {} if entry.current is None else entry.current.files
        new, gone = [name for name in tables.others if name not in names], [*(names.keys() - tables.others.keys())]
        if entry.current is not None and new and gone:
            raise PermanentError(
                f"slice {start} has a publication with the outputs {', '.join(sorted(gone))}, and none with "
                f"{', '.join(new)}: use the pipeline file of that time, or backfill the slice"
            )


def _files(entries: Mapping[str, Entry], name: str) -> dict[str, File]:
    """Return the files of a table that the entries name, by slice_start."""
    return {start: file for start, entry in entries.items() if (file := entry.file(name)) is not None}


def _of_each_definition(entries: Mapping[str, Entry], name: str) -> dict[str, File]:
    """Return a file of a table for each definition, by slice_start: the files of a definition have the same columns."""
    files = {
        entry.current.definition: (start, file)
        for start, entry in entries.items()
        if entry.current is not None and (file := entry.file(name)) is not None
    }
    return dict(files.values())


def _bring_in_line(table: OpenTable, name: str, publications: Publications, starts: Sequence[str]) -> set[str]:
    """Make a table hold the files that the publications name, and return the slices that changed."""

    def named_files() -> dict[str, File | None]:
        publications.table.refresh()
        return {start: entry.file(name) for start, entry in publications.entries(starts).items()}

    table.refresh()
    return _settle(table, named_files, lambda slices: _metadata(publications.entries(slices), slices))


def _settle(
    table: OpenTable,
    expected: Callable[[], Mapping[str, File | None]],
    metadata: Callable[[Sequence[str]], Mapping[str, Any]],
) -> set[str]:
    """Commit until slices hold the expected files, and return the slices that changed.

    `expected` is called again after every read of the table, so commits of other writers are noticed, and so is a
    commit whose acknowledgement was lost. If writing to the table fails once, it is attempted again. Raise RunError if
    it fails twice, if a read fails, or after TRIES attempts.
    """
    changed: set[str] = set()
    has_failed = False
    for attempt in range(TRIES):
        files = expected()
        table.require_writable()
        held = table.held(files)
        differing = {start: file for start, file in files.items() if not _holds(held.get(start, ()), file)}
        if not differing:
            return changed
        try:
            if table.version is None:
                table.create()
                continue
            changed |= differing.keys()
            batch = table.replaceable(differing) or differing
            if not table.commit(batch, metadata(sorted(batch))):
                time.sleep(0.1 * 2**attempt * random.uniform(0.5, 1.5))
        except RunError:
            if has_failed:
                raise
            has_failed = True
        table.refresh()
    raise RunError(f"other writers kept committing to {table.table.url}: {TRY_LATER}")


def _holds(held: Sequence[HeldFile], file: File | None) -> bool:
    """Return whether a slice holds the file and nothing else; None is no file."""
    return not held if file is None else len(held) == 1 and held[0].is_file(file)


def _metadata(entries: Mapping[str, Entry], slices: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a commit: its slices, and the runs, manifests and definitions that they hold now.

    If a person approved one of the runs, the metadata also has who, when and why.
    """
    current = [publication for start in slices if (publication := entries[start].current) is not None]
    approvals = {publication.run: publication.approval for publication in current if publication.approval}
    metadata: dict[str, Any] = {
        "slices": list(slices),
        "runs": sorted({publication.run for publication in current}),
        "manifests": sorted({publication.manifest for publication in current}),
        "definitions": sorted({publication.definition for publication in current}),
    }
    if approvals:
        metadata["approvals"] = [{"run": run, **approval.to_dict()} for run, approval in sorted(approvals.items())]
    return metadata


@contextmanager
def _progress_in_errors(tables: Tables, new_entries: Mapping[str, Entry], what: str) -> Iterator[None]:
    """Re-raise failures and interrupts, with a message that says how far the change got."""
    try:
        yield
    except (RecaptureError, KeyboardInterrupt) as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        kind = InterruptedRunError if interrupted else UnfinishedError
        reason = "interrupted" if interrupted else str(error)
        again = "run the same command again to finish it"
        try:
            lagging = _lagging(tables, new_entries)
        except (RecaptureError, KeyboardInterrupt):
            unknown = f"cannot tell how far {what} got, because the storage does not answer"
            raise kind(f"{reason}; {unknown}; {again}") from error
        if lagging is None:
            raise
        if lagging:
            raise kind(f"{reason}; {what} is unfinished: {', '.join(lagging)} not updated yet; {again}") from error
        reported = "run the same command again for its report"
        raise kind(f"{reason}; {what} is complete in every table, but did not end normally; {reported}") from error


def _lagging(tables: Tables, new_entries: Mapping[str, Entry]) -> list[str] | None:
    """Return the urls of the tables that do not hold the new entries; None if the publications do not hold them."""
    publications = tables.open_publications()
    if not new_entries or publications.entries(list(new_entries)) != new_entries:
        return None
    lagging = []
    for name, table in tables.others.items():
        held = tables.open(table).held(new_entries)
        if not all(_holds(held.get(start, ()), entry.file(name)) for start, entry in new_entries.items()):
            lagging.append(table.url)
    return lagging
