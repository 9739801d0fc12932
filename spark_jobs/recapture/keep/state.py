"""Read the state from which `keep.due` decides, with a number of requests that does not grow with the history."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache

from recapture.archive.definitions import RunDefinition
from recapture.archive.manifest import Manifest, arrivals_read
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Schedule
from recapture.errors import RunError
from recapture.keep.archived import ArchivedSlice, archived_slices
from recapture.keep.due import Difference, SliceFacts, State, Stop, tick
from recapture.run.outdated import is_outdated, parts_of
from recapture.run.progress import storage_time
from recapture.run.slice_state import read_standing
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.run_files.blocks import StoppedRun, read_block
from recapture.run_files.changes import Changes, write_changes
from recapture.run_files.files import RunFiles, range_of_run
from recapture.storage import Container, in_parallel, open_container
from recapture.table.delta import OpenTable, Table, has_version
from recapture.table.faults import lagging_slices
from recapture.table.publications import NOTHING_SHOWN, ShownEntry
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice

MARGIN = ticks.from_seconds(3600)
"""Time by which an update looks back further than the last one, in ticks: listings may be a little out of date."""

_PUBLICATIONS = ""
_UP_TO_DATE = SliceFacts(run="published")
"""Facts of a published slice about which nothing else is known; its run does not matter."""


@dataclass(frozen=True)
class Sources:
    """Where the state of a pipeline is read."""

    definition: RunDefinition
    parts: Mapping[str, str]
    """Parts of the definition, as `run.outdated.parts_of`."""
    schedule: Schedule
    length: int
    """Length of a slice, in ticks."""
    containers: Mapping[str, Container]
    """Containers of the inputs and of reference data, by alias."""
    run_files: Container
    publications: OpenTable
    others: Mapping[str, Table]
    """The other tables, by the names under which a publication lists their files."""
    open: Callable[[Table], OpenTable] = OpenTable
    has_version: Callable[[Table, int], bool] = has_version


@dataclass(frozen=True)
class Reading:
    """The state, and the record of what was compared."""

    state: State
    changes: Changes

    def record(self, run_files: Container) -> None:
        """Record which slices are stale, as `recapture check` does, so that every page and command shows it."""
        if any(facts.run is not None for facts in self.state.slices.values()):
            write_changes(run_files, self.changes)


def sources_of(pipeline: Pipeline) -> Sources:
    """Open what the state of a pipeline is read from."""
    tables = tables_of(pipeline)
    return Sources(
        definition=run_definition(pipeline),
        parts=parts_of(pipeline),
        schedule=pipeline.schedule or Schedule(),
        length=slice_length(pipeline),
        containers={section.alias: open_container(section.container) for section in pipeline.all_inputs},
        run_files=open_container(pipeline.outputs[0].table),
        publications=OpenTable(tables.publications),
        others=tables.others,
    )


def read_state(pipeline: Pipeline, sources: Sources, now: datetime) -> Reading:
    """Return the state at `now`, or at the storage's time if that is earlier. Raise RunError if it cannot be read."""
    return reading_of(sources, storage_time(pipeline, now))


def reading_of(sources: Sources, now: datetime) -> Reading:
    """Return the state at this time. Raise RunError if it cannot be read."""
    return Reader(sources, now.astimezone(UTC)).reading()


class Reader:
    """Reads the state of a pipeline at a time."""

    def __init__(self, sources: Sources, now: datetime) -> None:
        self.sources, self.now, self.instant = sources, now, ticks.from_datetime(now)
        self.length = sources.length
        self.end = self.instant // self.length * self.length
        self.standing = read_standing(sources.publications, sources.run_files, sources.parts, sources.length)
        self.changes = self.standing.changes
        starts = ((_start(text), text) for text in {*self.standing.entries, *self.standing.blocked})
        self.known = {
            start: text for start, text in starts if start is not None and start % self.length == 0 and start < self.end
        }
        """Starts of the slices that were ever published or stopped, in ticks, each with its ISO 8601 form."""
        self.released: dict[str, str] = {}
        """Slices of stopped runs whose blobs have changed since, as `Changes.released`."""
        self.manifest_of = lru_cache(maxsize=8)(self._manifest_of)  # neighbours often have one run
        self.stopped_of = cache(self._stopped_of)

    def reading(self) -> Reading:
        """Return the state, and the record of what was compared. Raise RunError if the state cannot be read."""
        schedule = self.sources.schedule
        since = self._first_published() if schedule.since is None else ticks.from_datetime(schedule.since)
        first, compared = self._compared(0 if since is None else since)
        slices, unknown, complete = dict(self._unlisted()), [], self.end
        for archived in self._archived(compared):
            start, text = archived.slice.start, ticks.to_text(archived.slice.start)
            difference, is_known = (None, True) if self._is_never_final() else self._difference(text, archived)
            facts = self._facts(text, difference, archived)
            slices[start] = replace(facts, waits_for=archived.waits_for, size=archived.size)
            unknown += [] if is_known else [text]
            complete = complete if archived.waits_for else start
        since = complete if since is None else since
        state = State(now=self.instant, since=since, end=self.end, length=self.length, schedule=schedule, slices=slices)
        return Reading(
            self._with_sizes(state), self._record(slices, max(first, since), self._unknown(compared, unknown))
        )

    def _first_published(self) -> int | None:
        """Return the first slice that was ever published, else the first that was stopped; None if there is neither."""
        published = (start for start, text in self.known.items() if text in self.standing.entries)
        return min(published, default=min(self.known, default=None))

    def compare(self, starts: Iterable[int]) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Compare published slices with the archive; `starts` are in ticks and in order.

        Return those that are published and those whose blobs have changed, each with its run, and those for which that
        is not known, by slice_start.
        """
        texts = {start: ticks.to_text(start) for start in starts}
        runs = {text: run for text in texts.values() if (run := self._entry(text).run) is not None}
        changed: dict[str, str] = {}
        unknown = []
        for archived in self._archived(start for start, text in texts.items() if text in runs):
            text = texts[archived.slice.start]
            difference, is_known = self._difference(text, archived)
            changed |= {} if difference is None else {text: runs[text]}
            unknown += [] if is_known else [text]
        return runs, changed, unknown

    def are_up_to_date(self, starts: Sequence[int]) -> bool:
        """Return whether slices are published, unchanged and of the present definition; starts are in ticks.

        A slice that a person rolled back, or that its audit stopped, is not.
        """
        texts = list(map(ticks.to_text, starts))
        runs, changed, unknown = self.compare(starts)
        differing = {*changed, *unknown, *self.standing.blocked, *self._lagging[0]}
        return all(
            text in runs
            and text not in differing
            and self._entry(text).taken_back is None
            and not is_outdated(self.standing.outdated.get(text, ()))
            for text in texts
        )

    def _entry(self, text: str) -> ShownEntry:
        return self.standing.entries.get(text, NOTHING_SHOWN)

    @cached_property
    def _lagging(self) -> tuple[set[str], dict[str, int]]:
        """Return the slices that a table does not hold as they are published, and the versions of tables in line.

        Tables are opened only if one of them has changed since they were all in line: that takes many requests.
        """
        sources, recorded = self.sources, self.changes.in_line
        versions = {_PUBLICATIONS: _version(sources.publications)}
        others = sources.others.items()
        is_known = recorded.keys() == {_PUBLICATIONS, *sources.others}
        if is_known and recorded[_PUBLICATIONS] == versions[_PUBLICATIONS]:
            checked = [(table, recorded[name] + 1) for name, table in others]
            if not any(in_parallel(lambda item: sources.has_version(*item), checked)):
                return set(), dict(recorded)
        opened = dict(zip(sources.others, in_parallel(sources.open, sources.others.values()), strict=True))
        lagging = {
            start for name, table in opened.items() for start in lagging_slices(table, name, self.standing.entries)
        }
        versions |= {name: _version(table) for name, table in opened.items()}
        return lagging, {} if lagging else versions

    def _compared(self, since: int) -> tuple[int, list[int]]:
        """Return the starts of the slices whose blobs are listed, in order of time.

        They are those that Capture may not have written yet, and those of which a blob may have been written, modified
        or deleted since the last update: from the returned time on, all that are published. Older ones are listed if
        they are recorded as stale.
        """
        definitions, updated = self.sources.definition.inputs, self.changes.updated
        reach = max(definition.longest_write_delay for definition in definitions)
        reach += max(definition.last_needed(Slice(0, 0)) for definition in definitions)
        until = 0 if updated is None else min(self.instant, _ticks(updated)) - reach - MARGIN
        first = max(since, until // self.length * self.length)
        recent = max(since, (self.instant - reach) // self.length * self.length)
        recorded = self.changes.slices.keys() if self.sources.schedule.late_data == "republish" else set()
        starts = map(_start, recorded - self.standing.blocked.keys())
        stale = {start for start in starts if start is not None and start >= since} & self.known.keys()
        published = {start for start in self.known if start + self.length > first}
        return min(first, recent), sorted({*range(recent, self.end, self.length), *published, *stale})

    def _archived(self, starts: Iterable[int]) -> Iterator[ArchivedSlice]:
        slices = (Slice(start, start + self.length) for start in starts)
        return archived_slices(self.sources.definition, self.sources.containers, slices, self.now, self._arrivals_read)

    def _arrivals_read(self, slice_: Slice) -> Mapping[str, Arrivals]:
        """Return the arrivals that a published slice read, by the alias of the input; none if that is not known."""
        entry = self._entry(ticks.to_text(slice_.start))
        if entry.read is not None:
            return arrivals_read(entry.read)
        manifest = None if entry.run is None else self.manifest_of(entry.run)
        planned = () if manifest is None else manifest.inputs
        return {read.alias: other.arrivals for read in planned for other in read.slices if other.slice == slice_}

    def _unlisted(self) -> Iterator[tuple[int, SliceFacts]]:
        """Yield what is known of every slice that was ever published or stopped, without a listing of its blobs."""
        standing = self.standing
        remarkable = {*self.changes.slices, *standing.blocked, *standing.outdated, *self._lagging[0]}
        for start, text in self.known.items():
            entry = self._entry(text)
            if entry.run is None or entry.taken_back is not None or text in remarkable:
                yield start, self._facts(text, self._recorded_difference(text))
            else:
                yield start, _UP_TO_DATE

    def _facts(self, text: str, difference: Difference | None, archived: ArchivedSlice | None = None) -> SliceFacts:
        """Return what is known of a slice; `archived` is what the archive has, if that was listed."""
        entry = self._entry(text)
        return SliceFacts(
            run=entry.run,
            is_unfinished=text in self._lagging[0],
            difference=difference,
            outdated=self.standing.outdated.get(text, ()),
            rolled_back=entry.taken_back,
            stop=self._stop(text, archived),
        )

    def _recorded_difference(self, text: str) -> Difference | None:
        """Return the difference of a slice whose blobs are not listed, by the record."""
        entry = self._entry(text)
        is_stale = entry.run is not None and self.changes.slices.get(text) == entry.run
        noticed = self.changes.noticed.get(text)
        is_published_since = noticed is not None and entry.published is not None and entry.published > noticed
        return Difference() if is_stale and not is_published_since else None

    def _difference(self, text: str, archived: ArchivedSlice) -> tuple[Difference | None, bool]:
        """Return how the archive differs from what the published slice read, and whether that is known."""
        entry = self._entry(text)
        if entry.run is None or entry.read == archived.read_before:
            return None, True
        manifest = self.manifest_of(entry.run)
        same_definition = not set(self.standing.outdated.get(text, ())) - {"engine", "suite"}
        if entry.read is None and manifest is None:
            return None, False
        is_recorded = self.changes.slices.get(text) == entry.run and text in self.changes.noticed
        noticed = _ticks(self.changes.noticed[text]) if is_recorded else self.instant
        return archived.difference_from(manifest, noticed, same_definition=same_definition), True

    def _is_never_final(self) -> bool:
        """Return whether every later arrival counts, so that every slice would always be stale."""
        policies = (definition.policies for definition in self.sources.definition.inputs)
        return any(policy is not None and policy.late_tolerance is None for policy in policies)

    def _stop(self, text: str, archived: ArchivedSlice | None) -> Stop | None:
        run = self.standing.blocked.get(text)
        bounds = None if run is None else range_of_run(run)
        if run is None or bounds is None:
            return None
        stopped, (start, end) = self.stopped_of(run), bounds
        if archived is None or stopped is None:
            noticed = self.changes.released.get(text, "")
            has_changed = bool(noticed) and (stopped is None or noticed > stopped.at)
        else:
            has_changed = stopped.read.get(text) != archived.read
            noticed = ticks.whole_seconds(self.now)
        if has_changed:
            self.released[text] = noticed
        same_definition = stopped is None or stopped.parts == self.sources.parts
        return Stop(run, start, (end - start) // self.length, repeats=same_definition and not has_changed)

    def _unknown(self, compared: Iterable[int], unknown: Iterable[str]) -> list[str]:
        """Return the slices that cannot be compared: those of this time, and those that are not compared any more."""
        now = set(map(ticks.to_text, compared))
        before = (text for text in self.changes.unknown if text not in now and self._entry(text).run is not None)
        return sorted({*unknown, *(text for text in before if self._entry(text).read is None)})

    def _record(self, slices: Mapping[int, SliceFacts], first: int, unknown: Sequence[str]) -> Changes:
        """Return the record of this update, which compared all slices from `first` on."""
        stale = {
            ticks.to_text(start): facts.run
            for start, facts in slices.items()
            if facts.difference is not None and facts.run is not None
        }
        now, before, noticed = ticks.whole_seconds(self.now), self.changes.slices, self.changes.noticed
        if self._is_never_final():  # no slice was compared
            return replace(self.changes, in_line=self._lagging[1], released=self.released, updated=now)
        return Changes(
            slices=stale,
            checked=now,
            start=ticks.to_text(min(first, self.end)),
            end=ticks.to_text(self.end),
            unknown=tuple(unknown),
            in_line=self._lagging[1],
            released=self.released,
            noticed={text: noticed.get(text, now) if before.get(text) == run else now for text, run in stale.items()},
            updated=now,
        )

    def _with_sizes(self, state: State) -> State:
        """Return the state with the sizes of the slices that the budget in bytes is about."""
        if self.sources.schedule.at_most_bytes is None:
            return state
        due = [slice_ for range_ in tick(state).ranges for slice_ in range_.slices]
        sizes = {a.slice.start: a.size for a in self._archived(sorted(s.start for s in due if s.size is None))}
        known = {start: replace(state.slices.get(start, SliceFacts()), size=size) for start, size in sizes.items()}
        return replace(state, slices={**state.slices, **known})

    def _manifest_of(self, run: str) -> Manifest | None:
        try:
            return RunFiles(self.sources.run_files, run).find_manifest()
        except RunError:
            return None

    def _stopped_of(self, run: str) -> StoppedRun | None:
        return read_block(self.sources.run_files, run)


def _version(table: OpenTable) -> int:
    return -1 if table.version is None else table.version


def _start(text: str) -> int | None:
    """Return the start of a slice in ticks; None if another program wrote the row."""
    try:
        return _ticks(text)
    except ValueError:
        return None


def _ticks(text: str) -> int:
    return ticks.from_datetime(datetime.fromisoformat(text))
