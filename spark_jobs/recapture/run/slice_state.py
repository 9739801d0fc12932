"""The state of a slice: what is published for it, and whether that can still be trusted."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, cached_property

from recapture.definition.pipeline import Pipeline
from recapture.errors import PermanentError, SetupError
from recapture.run.approval import APPROVED
from recapture.run.needs import longest_wait
from recapture.run.outdated import is_outdated, outdated_slices, parts_of
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.run_files.changes import Changes, read_changes
from recapture.run_files.marks import STAGED_RUNS, STOPPED_RUNS, Mark, Unpublished
from recapture.run_files.planned import PlannedRun
from recapture.run_files.work import WORK, Failure, Work
from recapture.storage import Container, open_container
from recapture.table.delta import OpenTable
from recapture.table.publications import NOTHING_SHOWN, ShownEntry, shown_entries
from recapture.time_model import ticks


class State(StrEnum):
    """State of a slice. The first ones need attention most."""

    AWAITING = "awaiting a decision"
    BLOCKED = "blocked"
    FAILED = "failed"
    PROVISIONAL = "published provisionally"
    STALE = "stale"
    OUTDATED = "outdated"
    UNCHECKED = "cannot be checked"
    MISSING = "missing"
    PAUSED = "paused"
    RUNNING = "running"
    QUEUED = "queued"
    INCOMPLETE = "capture incomplete"
    APPROVED = "published after approval"
    WARNINGS = "published with warnings"
    PUBLISHED = "published"

    @property
    def meaning(self) -> str:
        """Meaning in a sentence."""
        return _MEANINGS[self]


STANDING_STATES = (
    State.BLOCKED,
    State.FAILED,
    State.PROVISIONAL,
    State.STALE,
    State.OUTDATED,
    State.UNCHECKED,
    State.APPROVED,
    State.WARNINGS,
    State.PUBLISHED,
)
"""States that `Standing.state` returns. The others also depend on the archive or on Airflow's DAG runs."""

_MEANINGS = {
    State.AWAITING: "A person is asked whether to publish the run: it is staged, or its audit stopped it.",
    State.BLOCKED: "The audit stopped the last run, so nothing new was published.",
    State.FAILED: "The last run failed before it published anything: see its error, or the log of its task.",
    State.PROVISIONAL: "Published before Capture had written everything: an update computes it again later.",
    State.STALE: "Published, but blobs were added, modified or deleted since they were read.",
    State.OUTDATED: "Published, but with another query, policy, function, input, container or suite than the pipeline "
    "has now.",
    State.UNCHECKED: "Published, but the record of the checks, or the manifest of its run, cannot be read, so it is "
    "unknown whether its blobs changed.",
    State.MISSING: "Capture is complete, nothing is published, and no run will compute the slice: backfill it.",
    State.PAUSED: "The DAG is paused: no run computes the slice before the DAG is unpaused.",
    State.RUNNING: "A run computes the slice now.",
    State.QUEUED: "A run will compute the slice when its turn comes.",
    State.INCOMPLETE: "Capture has not written everything yet.",
    State.APPROVED: "Published by a person's decision, although the audit stopped the run.",
    State.WARNINGS: "Published, and the audit warned.",
    State.PUBLISHED: "Published, and the audit passed.",
}
NO_WORK = Work()
_SAME_TIME = timedelta(seconds=2)
"""Distance below which two times, in whole seconds and of two clocks, do not tell what came first."""
_WAITING_FOR_A_RUN = (None, State.PROVISIONAL, State.STALE, State.OUTDATED)
"""States of what is published that the run of an update ends."""
_BY_QUALITY = {"passed": State.PUBLISHED, "passed with warnings": State.WARNINGS, APPROVED: State.APPROVED}


@dataclass(frozen=True)
class Standing:
    """What is published for the slices of a pipeline, and what is known about it; mappings are keyed by slice_start."""

    entries: Mapping[str, ShownEntry]
    """Entries of the publications' snapshot."""
    blocked: Mapping[str, str]
    """Last run that its audit stopped, for slices of which nothing was published since."""
    changes: Changes
    """What the checks for changed blobs found."""
    outdated: Mapping[str, tuple[str, ...]]
    """Parts of the definition that differ from the pipeline's present ones, for published slices."""
    work: Work = NO_WORK
    """What updates compute now, and what they failed at."""
    problems: tuple[str, ...] = ()
    """Why records of updates and checks cannot be read; none if they can."""
    staged: Mapping[str, str] = field(default_factory=dict)
    """Run that passed its audit after the one that blocks a slice was stopped, and waits for a person."""

    @property
    def published(self) -> dict[str, ShownEntry]:
        """Entries of the slices that hold a publication, by slice_start."""
        return {start: entry for start, entry in self.entries.items() if entry.run is not None}

    @cached_property
    def failures(self) -> dict[str, Failure]:
        """Last run of an update that failed, for slices of which nothing was published since, by slice_start."""
        return {
            text: failure
            for failure in self.work.failures
            for text in map(ticks.to_text, failure.slices)
            if self.entries.get(text, NOTHING_SHOWN).run == failure.runs.get(text)
        }

    def state(self, start: str) -> State | None:
        """Return the state of a slice; None if nothing is published, blocked or failed."""
        if start in self.blocked:
            return State.BLOCKED
        state = self._published_state(start)
        return State.FAILED if start in self.failures and state in _WAITING_FOR_A_RUN else state

    def _published_state(self, start: str) -> State | None:
        """Return the state of what is published; None if nothing is."""
        entry = self.entries.get(start, NOTHING_SHOWN)
        if entry.run is None:
            return None
        if entry.provisional:
            return State.PROVISIONAL
        if self.changes.slices.get(start) == entry.run:
            return State.STALE
        if is_outdated(self.outdated.get(start, ())):
            return State.OUTDATED
        if not self.changes.can_tell(start):
            return State.UNCHECKED
        return _BY_QUALITY.get(entry.quality or "", State.WARNINGS)


def standing_of(pipeline: Pipeline, publications: OpenTable | None = None) -> Standing:
    """Return the standing of a pipeline's slices. The table of the publications is read, unless it is given."""
    publications = publications or OpenTable(tables_of(pipeline).publications)
    container = open_container(pipeline.outputs[0].table)
    return read_standing(publications, container, parts_of(pipeline), slice_length(pipeline), longest_wait(pipeline))


def read_standing(
    publications: OpenTable,
    container: Container,
    parts: Mapping[str, str],
    length: int,
    wait: timedelta | None = None,
) -> Standing:
    """Return what is published for the slices of a pipeline, and what is known about it.

    `container` is that of the run files, `parts` are the pipeline's present parts, and `length` is that of a slice, in
    ticks. `wait` is how long a staged run waits before it expires; without it, staged runs are not looked for.
    """
    entries = shown_entries(publications)
    try:
        blocked, changes = blocked_in(container, entries, length), _changes(container)
        staged = {} if wait is None or not blocked else staged_in(container, blocked, length, wait)
        work, damaged = _work(container)
    except SetupError:  # there is no container before the first run
        if publications.version is not None:
            raise
        blocked, staged, changes, work, damaged = {}, {}, Changes(), NO_WORK, None
    problems = tuple(problem for problem in (changes.problem, damaged) if problem is not None)
    return Standing(entries, blocked, changes, outdated_slices(parts, entries), work, problems, staged)


def blocked_in(container: Container, entries: Mapping[str, ShownEntry], length: int) -> dict[str, str]:
    """Return the slices that are blocked, as `blocked_slices`; `container` is that of the run files."""

    def stopped(run: str) -> Unpublished | None:
        return STOPPED_RUNS.read(container, run)

    return blocked_slices(entries, STOPPED_RUNS.runs(container), length, stopped)


def staged_in(container: Container, blocked: Mapping[str, str], length: int, wait: timedelta) -> dict[str, str]:
    """Return the blocked slices for which another run was staged later, each with the last one; `blocked` has all.

    A run that was staged `wait` ago has expired, and does not count.
    """
    oldest = container.clock() - wait
    stopped_at = {mark.run: mark.at for mark in STOPPED_RUNS.runs(container)}
    staged: dict[str, str] = {}
    for mark in STAGED_RUNS.runs(container):
        for start in map(ticks.to_text, range(mark.start, mark.end, length)):
            at = stopped_at.get(blocked.get(start, ""))
            if at is not None and max(at, oldest) <= mark.at:
                staged[start] = mark.run
    return staged


def blocked_slices(
    entries: Mapping[str, ShownEntry],
    blocks: Iterable[Mark],
    length: int,
    stopped: Callable[[str], Unpublished | None],
) -> dict[str, str]:
    """Return the slices that are blocked, each with the last run that its audit stopped; `length` is that of a slice.

    `entries` are those of the publications' snapshot, by slice_start. A slice is blocked until something is published
    for it. A run that was published or rolled back in spite of an earlier audit does not block. The exception is a run
    that was published for a provisional slice, and that its audit stopped again once the slice was complete.

    `stopped` returns what is known of a stopped run, or None. Where the times do not tell whether the publication or
    the stop came first, what the slices held when the audit began does.
    """
    blocked: dict[str, str] = {}
    stopped = cache(stopped)
    for block in blocks:
        for instant in range(block.start, block.end, length):
            start = ticks.to_text(instant)
            entry = entries.get(start, NOTHING_SHOWN)
            if block.run in (entry.run, entry.taken_back) and not _is_stopped_again(start, entry, block, stopped):
                blocked.pop(start, None)
            elif _is_published_before(start, entry, block, stopped):
                blocked[start] = block.run
    return blocked


def _is_stopped_again(start: str, entry: ShownEntry, block: Mark, stopped: Callable[[str], Unpublished | None]) -> bool:
    """Return whether the audit of a provisionally published run stopped it once the slice was complete."""
    if block.run != entry.run or not entry.provisional or (unpublished := stopped(block.run)) is None:
        return False
    return unpublished.incomplete is not None and start not in unpublished.incomplete


def _is_published_before(
    start: str, entry: ShownEntry, block: Mark, stopped: Callable[[str], Unpublished | None]
) -> bool:
    """Return whether the audit of a run stopped it after the publication of a slice."""
    if entry.published is None:
        return True
    published = datetime.fromisoformat(entry.published)
    if abs(published - block.at) < _SAME_TIME:
        unpublished = stopped(block.run)
        if unpublished is not None and unpublished.held is not None:
            return unpublished.held.get(start) == entry.run
    return published < block.at


def blocked_slices_of(run: PlannedRun) -> list[str]:
    """Return the slices of a run that are blocked now."""
    entries = shown_entries(OpenTable(tables_of(run.pipeline).publications))
    blocked = blocked_in(run.files.container, entries, slice_length(run.pipeline))
    return [start for start in run.slices if start in blocked]


def _changes(container: Container) -> Changes:
    """Return what the checks found. If their record cannot be read, say so instead: the rest can still be shown."""
    try:
        return read_changes(container)
    except PermanentError as error:
        return Changes(problem=str(error))


def _work(container: Container) -> tuple[Work, str | None]:
    """Return what updates do, and None; or nothing, and why their record cannot be read."""
    try:
        return WORK.read(container), None
    except PermanentError as error:
        return NO_WORK, str(error)
