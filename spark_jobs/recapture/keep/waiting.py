"""Runs that wait for a person who publishes or discards them: they were staged, or their audits stopped them.

No update publishes a staged run, or waits for it. A staged run expires; a run that its audit stopped does not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recapture.archive.manifest import Manifest, arrivals_read
from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, DefinitionError, PermanentError
from recapture.keep.archived import archived_slices
from recapture.keep.due import Difference
from recapture.keep.sources import sources_of
from recapture.run.approval import approval_of
from recapture.run.clean import in_order
from recapture.run.needs import StoredRun, longest_wait, runs_of, with_files
from recapture.run.outdated import in_words
from recapture.run.slice_state import blocked_in
from recapture.run_files.contents import AUDIT
from recapture.run_files.files import REPORT_PAGE, RunFiles, range_of_run
from recapture.run_files.marks import STAGED_RUNS, STOPPED_RUNS, Mark, Unpublished
from recapture.run_files.planned import require_same_definition
from recapture.storage import in_parallel
from recapture.table.publications import NOTHING_SHOWN, Entry, Publications, shown_entries
from recapture.time_model import ticks

SHOWN = 3
"""Number of slices that an obstacle names."""
AGAIN = "backfill its range again, with --stage to look at it first"


@dataclass(frozen=True)
class WaitingRun:
    """A run that waits for a person."""

    run: str
    start: int
    """Start of its range, in ticks."""
    end: int
    slices: int
    """Number of its slices."""
    verdict: str
    """Verdict of its audit."""
    reason: str
    """Why its audit stopped it; empty if it passed."""
    is_approved: bool
    """Whether a person approved it although its audit stopped it."""
    at: datetime
    """Time of its audit, in UTC."""
    expires: datetime | None
    """Time from which it cannot be published any more; None if its audit stopped it."""
    report: str | None
    """Address of its report; None if it has none."""
    obstacles: tuple[str, ...] = ()
    """Why it cannot be published any more, a sentence each."""

    @property
    def needs_approval(self) -> bool:
        """Whether its audit stopped it, and nobody has approved it."""
        return self.verdict == "failed" and not self.is_approved

    def require_publishable(self) -> None:
        """Raise PermanentError if it cannot be published any more, and AuditError if it needs an approval."""
        if self.obstacles:
            raise PermanentError(f"run {self.run} cannot be published any more: {'; '.join(self.obstacles)}; {AGAIN}")
        if self.needs_approval:
            raise AuditError(
                f"run {self.run} was stopped by its audit, nothing was published: {self.reason}; correct the cause and "
                f"{AGAIN}; or let a person approve it in Airflow (docs/coverage.md, Approval)"
            )

    def to_dict(self, now: datetime) -> dict[str, Any]:
        """Return the run in JSON types."""
        return {
            "run": self.run,
            "from": ticks.to_text(self.start),
            "to": ticks.to_text(self.end),
            "slices": self.slices,
            "audit": self.verdict,
            "reason": self.reason,
            "approved": self.is_approved,
            "needs_approval": self.needs_approval,
            "at": ticks.whole_seconds(self.at),
            "age_seconds": max(0, round((now - self.at).total_seconds())),
            "expires": None if self.expires is None else ticks.whole_seconds(self.expires),
            "publishable": not (self.obstacles or self.needs_approval),
            "obstacles": list(self.obstacles),
            "report": self.report,
        }


class Waiting:
    """The runs of a pipeline that wait for a person, as they are when this is made."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._sources = pipeline, sources_of(pipeline)
        self._container = self._sources.run_files
        self._publications = Publications(self._sources.publications.table)
        self._entries = shown_entries(self._publications.table)
        self.now = self._container.clock()
        """Time of the storage that has the run files."""

    def runs(self) -> list[WaitingRun]:
        """Return the runs, oldest first, with what keeps each from being published."""
        blocking = set(blocked_in(self._container, self._entries, self._sources.length).values())
        stopped = [mark for mark in STOPPED_RUNS.runs(self._container) if mark.run in blocking]
        found = self._found([*stopped, *STAGED_RUNS.runs(self._container)])
        return [self._with_obstacles(self._described(*marked)) for marked in found]

    def require_publishable(self, id: str) -> None:
        """Raise the errors of `WaitingRun.require_publishable`, and PermanentError if the run does not wait.

        A run that all of its slices hold may be published again, so that a call that was interrupted can be repeated.
        """
        bounds = range_of_run(id)
        held = {self._entries.get(text, NOTHING_SHOWN).run for text in self._texts(*bounds)} if bounds else set()
        if held != {id}:
            self._with_obstacles(self._described(*self._found_run(id))).require_publishable()

    def discard(self, id: str) -> WaitingRun:
        """Remove the run files of one of the runs, so that it cannot be published, and return it without obstacles.

        Those that a publication needs stay. Slices that it blocks stay blocked. `clean` removes the staged rows. Raise
        PermanentError if the run does not wait.
        """
        mark, stored = self._found_run(id)
        discarded = self._described(mark, stored)
        entries = self._publications.entries(self._texts(discarded.start, discarded.end))
        if not any(id in runs_of(entry) for entry in entries.values()):
            for blobs in in_order(stored):
                in_parallel(self._container.remove, blobs)
        STAGED_RUNS.remove(self._container, id)
        return discarded

    def _found_run(self, id: str) -> tuple[Mark, StoredRun]:
        marks = [*STOPPED_RUNS.runs(self._container), *STAGED_RUNS.runs(self._container)]
        for found in self._found([mark for mark in marks if mark.run == id]):
            return found
        raise PermanentError(
            f"run {id} does not wait for a decision: it was published, discarded or removed, or its name is wrong; "
            f"see recapture staged {self._pipeline.file.name}"
        )

    def _found(self, marks: Iterable[Mark]) -> list[tuple[Mark, StoredRun]]:
        """Return the marked runs that were audited and not published since, oldest first."""
        last = {mark.run: mark for mark in sorted(marks, key=lambda mark: mark.at)}

        def listed(mark: Mark) -> StoredRun:
            return with_files(self._container, StoredRun(mark.run, mark.start, mark.end, ()))

        runs = zip(last.values(), in_parallel(listed, last.values()), strict=True)
        return [(mark, stored) for mark, stored in runs if stored.unpublished_since is not None]

    def _described(self, mark: Mark, stored: StoredRun) -> WaitingRun:
        """Return a run without its obstacles."""
        files = RunFiles(self._container, mark.run)
        audited = files.read(AUDIT)
        is_stopped = audited.verdict == "failed"
        return WaitingRun(
            run=mark.run,
            start=mark.start,
            end=mark.end,
            slices=len(stored.slice_starts(self._sources.length)),
            verdict=audited.verdict,
            reason=audited.reason,
            is_approved=approval_of(files, audited) is not None,
            at=mark.at,
            expires=None if is_stopped else mark.at + longest_wait(self._pipeline),
            report=f"{self._container.url}/{files.name(REPORT_PAGE)}" if stored.written(REPORT_PAGE) else None,
        )

    def _with_obstacles(self, run: WaitingRun) -> WaitingRun:
        return replace(run, obstacles=tuple(self._obstacles(run)))

    def _obstacles(self, run: WaitingRun) -> Iterator[str]:
        if run.expires is not None and self.now >= run.expires:
            yield f"it expired at {ticks.whole_seconds(run.expires)}"
        marks = STOPPED_RUNS if run.verdict == "failed" else STAGED_RUNS
        unpublished = marks.read(self._container, run.run)
        yield from later_publications(run.run, self._publications.entries(self._texts(run.start, run.end)), unpublished)
        try:
            manifest = RunFiles(self._container, run.run).manifest()
            require_same_definition(self._pipeline, manifest)
        except (DefinitionError, PermanentError) as error:
            yield str(error)
            return
        parts = self._sources.parts
        if unpublished is not None and unpublished.parts != parts:
            differing = [name for name, value in parts.items() if unpublished.parts.get(name) != value]
            yield f"{self._pipeline.file.name} has changed since: {in_words([differing])}"
        else:
            yield from self._archive_changes(manifest)

    def _archive_changes(self, manifest: Manifest) -> Iterator[str]:
        """Yield which slices of a manifest would read other blobs now."""
        reads = {run_slice.slice: read for run_slice, read in zip(manifest.slices, manifest.reads, strict=True)}
        definition, containers = self._sources.definition, self._sources.containers
        archived = archived_slices(definition, containers, reads, self.now, lambda slice_: arrivals_read(reads[slice_]))
        changes = {
            ticks.to_text(now.slice.start): difference
            for now in archived
            if (difference := now.difference_from(manifest, 0)) is not None and self._counts(difference)
        }
        if changes:
            shown = [f"{text} ({difference})" for text, difference in changes.items()]
            yield f"the archive has changed since, for slice {_first(shown)}"

    def _counts(self, difference: Difference) -> bool:
        """Return whether a difference matters. If every later arrival counts, there are always more blobs later."""
        others = difference.modified or difference.deleted or difference.references
        return bool(others) or not self._sources.is_never_final

    def _texts(self, start: int, end: int) -> list[str]:
        return [ticks.to_text(instant) for instant in range(start, end, self._sources.length)]


def later_publications(run: str, entries: Mapping[str, Entry], unpublished: Unpublished | None) -> Iterator[str]:
    """Yield for which slices another run was published after a run was audited; `entries` are those of its slices."""
    if unpublished is None or unpublished.held is None:
        return
    held = unpublished.held
    newer = [
        f"{start} by run {entry.run}"
        for start, entry in entries.items()
        if entry.run != run and entry.is_newer(held.get(start))
    ]
    if newer:
        yield f"another run was published after its audit, for slice {_first(newer)}"


def _first(items: Sequence[str]) -> str:
    more = f", and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return f"{', '.join(items[:SHOWN])}{more}"
