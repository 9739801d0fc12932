"""Read the state from which `keep.due` decides, with a number of requests that does not grow with the history."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from recapture.definition.pipeline import Pipeline
from recapture.errors import PermanentError
from recapture.keep.compare import Comparison
from recapture.keep.due import SliceFacts, State, is_up_to_date, tick
from recapture.keep.interrupted import recent_changes
from recapture.keep.record import merged
from recapture.keep.scope import Candidates, Scope, scope
from recapture.keep.sources import Sources
from recapture.keep.stops import Stops
from recapture.run.progress import storage_time
from recapture.run.slice_state import Standing, read_standing
from recapture.run_files.changes import Changes, change_record
from recapture.time_model import ticks

_UP_TO_DATE = SliceFacts(run="published")
"""Facts of a published slice about which nothing else is known; its run does not matter."""


@dataclass(frozen=True)
class Reading:
    """The state, what it was read from, and the record of what was compared."""

    state: State
    standing: Standing
    changes: Changes
    is_compared: bool
    """Whether published slices were compared with the archive: without a late limit, they cannot be."""

    def record(self, sources: Sources) -> None:
        """Record which slices are stale, as `recapture check` does, so that every page and command shows it."""
        before = self.standing.changes
        change_record(sources.run_files, lambda theirs: merged(before, self.changes, theirs))


def read_state(pipeline: Pipeline, sources: Sources, now: datetime) -> Reading:
    """Return the state at `now`, or at the storage's time if that is earlier.

    Raise RunError if it cannot be read, and DefinitionError if the tables belong to another pipeline.
    """
    sources.publications.require_writable()
    return reading_of(sources, storage_time(pipeline, now))


def reading_of(sources: Sources, now: datetime) -> Reading:
    """Return the state at this time. Raise RunError if it cannot be read."""
    standing = read_standing_of(sources)
    return _Reader(sources, standing, now.astimezone(UTC)).reading()


def read_standing_of(sources: Sources) -> Standing:
    """Return what is published and what is known about it. Raise PermanentError if a record of that is damaged."""
    standing = read_standing(sources.publications, sources.run_files, sources.parts, sources.length)
    for problem in standing.problems:
        raise PermanentError(problem)
    return standing


class _Reader:
    """Reads the state of a pipeline at a time."""

    def __init__(self, sources: Sources, standing: Standing, now: datetime) -> None:
        self.sources, self.standing, self.work = sources, standing, standing.work
        self.now, self.instant = ticks.whole_seconds(now), ticks.from_datetime(now)
        self.length, self.end = sources.length, self.instant // sources.length * sources.length
        until = sources.schedule.until
        self.until = self.end if until is None else min(self.end, ticks.from_datetime(until))
        """End of the last slice that has ended and is kept."""
        self.comparison, self.stops = Comparison(sources, standing, now), Stops(sources, standing)
        self.published = dict(_slices(standing.entries, self.length, self.end))
        """Slices that were ever published, by their starts in ticks, with slice_start."""
        self.stopped = dict(_slices(self.stops.starts, self.length, self.end))
        """Slices whose last run ended without publishing anything, likewise."""
        self.recent = recent_changes(sources, standing.entries, standing.changes.finished)

    def reading(self) -> Reading:
        """Return the state, and the record of what was compared."""
        since, listed = self._since(), self._scope()
        facts, complete = self._unlisted(), self.until
        unknown: set[str] = set()
        released: dict[str, str] = {}
        for archived in self.comparison.archived(listed.starts):
            start, slice_start = archived.slice.start, ticks.to_text(archived.slice.start)
            is_final = not self.sources.is_never_final
            difference, is_known = self.comparison.difference(slice_start, archived) if is_final else (None, True)
            facts[start] = replace(
                self._facts(start, slice_start),
                difference=difference,
                stop=self.stops.stop(start, archived),
                waits_for=archived.waits_for,
                size=archived.size,
                read=archived.read,
            )
            unknown |= set() if is_known else {slice_start}
            released |= (
                {slice_start: self._released(slice_start)} if self.stops.is_released(slice_start, archived) else {}
            )
            complete = complete if archived.waits_for else start
        since = (complete if complete < self.until else None) if since is None else since
        changes = self._changes(facts, listed, unknown, released, since)
        state = State(
            now=self.instant,
            since=self.until if since is None else since,
            end=self.end,
            until=self.until,
            length=self.length,
            schedule=self.sources.schedule,
            slices=facts,
            requests=tuple(self.work.open_requests),
            leases=tuple(lease for lease in self.work.leases if lease.until > self.instant),
        )
        is_compared = not self.sources.is_never_final
        return Reading(self._with_sizes(state), self.standing, changes, is_compared)

    def _since(self) -> int | None:
        """Return the start of the first slice that is kept; None if the first update has to choose it."""
        written = self.sources.schedule.since
        if written is not None:
            return ticks.from_datetime(written)
        chosen = self.standing.changes.since
        starts = [*self.published, *([] if chosen is None else [ticks.from_text(chosen)])]
        newest = self.until - self.length if self.until < self.end else None
        return min(starts, default=min(self.stopped, default=newest))

    def _scope(self) -> Scope:
        changes, schedule = self.standing.changes, self.sources.schedule
        kept = range(self._since() or 0, self.until, self.length)
        stale = set(changes.slices) if schedule.late_data == "republish" else set()
        stopped = (
            start for start, slice_start in self.stopped.items() if not is_up_to_date(self._facts(start, slice_start))
        )
        older = (start for start, slice_start in self.published.items() if slice_start in stale)
        candidates = Candidates(
            kept=kept,
            requested=[start for request in self.work.open_requests for start in request.slices(self.length)],
            known={*self.published, *self.stopped},
            published={start for start, slice_start in self.published.items() if slice_start in self.recent.changed},
            older={start for start in (*older, *stopped) if start in kept},
        )
        updated, turn = (
            None if instant is None else ticks.from_text(instant) for instant in (changes.updated, changes.turn)
        )
        return scope(self.sources.definition.inputs, self.length, self.instant, candidates, updated, turn)

    def _unlisted(self) -> dict[int, SliceFacts]:
        """Return what is known of every slice that was ever published or stopped, without a listing of its blobs."""
        standing, entries = self.standing, self.standing.entries
        changed = dict(self.comparison.reference_differences(self.published.values()))
        provisional = (slice_start for slice_start, entry in entries.items() if entry.provisional)
        remarkable = {*standing.changes.slices, *standing.outdated, *self.recent.unfinished, *changed, *provisional}
        facts = {
            start: self._facts(start, slice_start)
            if slice_start in remarkable
            or entries[slice_start].run is None
            or entries[slice_start].taken_back is not None
            else _UP_TO_DATE
            for start, slice_start in self.published.items()
        }
        facts |= {start: self._facts(start, slice_start) for start, slice_start in self.stopped.items()}
        return facts | {
            start: replace(facts[start], difference=changed[slice_start])
            for start, slice_start in self.published.items()
            if slice_start in changed
        }

    def _facts(self, start: int, slice_start: str) -> SliceFacts:
        """Return what is known of a slice without a listing of its blobs."""
        entry = self.comparison.entry(slice_start)
        return SliceFacts(
            run=entry.run,
            is_provisional=bool(entry.provisional),
            is_unfinished=slice_start in self.recent.unfinished,
            difference=self.comparison.recorded_difference(slice_start),
            outdated=self.standing.outdated.get(slice_start, ()),
            rolled_back=entry.taken_back,
            stop=self.stops.stop(start, None),
        )

    def _released(self, slice_start: str) -> str:
        """Return the time at which other blobs than those of a stopped run were found first."""
        return self.standing.changes.released.get(slice_start, self.now)

    def _changes(
        self,
        facts: Mapping[int, SliceFacts],
        listed: Scope,
        unknown: set[str],
        released: dict[str, str],
        since: int | None,
    ) -> Changes:
        """Return the record of this update."""
        before, looked_at = self.standing.changes, set(map(ticks.to_text, listed.starts))
        before_released = {
            slice_start: at for slice_start, at in before.released.items() if slice_start in self.standing.blocked
        }
        changes = replace(
            before,
            released={slice_start: at for slice_start, at in before_released.items() if slice_start not in looked_at}
            | released,
            finished=self.recent.finished,
            since=None if since is None or self.published else ticks.to_text(since),
            turn=None if listed.turn is None else ticks.to_text(listed.turn),
            updated=max(before.updated or "", self.now),
        )
        if self.sources.is_never_final:
            return changes
        differing = ((start, fact.difference) for start, fact in facts.items() if fact.run is not None)
        stale = self.comparison.record(
            {ticks.to_text(start): difference.last_change for start, difference in differing if difference is not None}
        )
        unreadable = {
            slice_start
            for slice_start in before.unknown
            if slice_start not in looked_at and self._is_unreadable(slice_start)
        }
        changes = replace(
            changes,
            slices=stale.slices,
            published=stale.published,
            noticed=stale.noticed,
            last_changes=stale.last_changes,
            unknown=tuple(sorted(unknown | unreadable)),
        )
        if self.now < (before.checked or ""):
            return changes
        first = max(listed.first, 0 if since is None else since)
        start, end = ticks.to_text(min(first, self.end)), ticks.to_text(self.end)
        return replace(changes, checked=self.now, start=start, end=end)

    def _is_unreadable(self, slice_start: str) -> bool:
        entry = self.comparison.entry(slice_start)
        return entry.run is not None and entry.read is None

    def _with_sizes(self, state: State) -> State:
        """Return the state with the sizes of the slices that the budget in bytes is about."""
        if state.schedule.at_most_bytes is None:
            return state
        due = [slice_ for range_ in tick(state).ranges for slice_ in range_.slices]
        unlisted = sorted(slice_.start for slice_ in due if slice_.size is None)
        sizes = {archived.slice.start: archived.size for archived in self.comparison.archived(unlisted)}
        known = {start: replace(state.slices.get(start, SliceFacts()), size=size) for start, size in sizes.items()}
        return replace(state, slices={**state.slices, **known})


def _slices(slice_starts: Iterable[str], length: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the slices of these that have ended, with slice_start; rows that another program wrote are left out."""
    for slice_start in slice_starts:
        try:
            start = ticks.from_text(slice_start)
        except ValueError:
            continue
        if start % length == 0 and start < end:
            yield start, slice_start
