"""A pipeline whose storage and tables are in memory.

Everything else is the engine's own: planning, the publication protocol, the run files and the update. Only the rows are
made up: those of a slice are the contents of the blobs that it reads, with the query.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from recapture.archive import listing
from recapture.archive.definitions import InputDefinition, RunDefinition
from recapture.archive.manifest import Manifest, RunSlice, pin_blobs
from recapture.definition.sections import Schedule
from recapture.errors import AuditError, RecaptureError, RunError
from recapture.formats.event_hubs import CaptureNames
from recapture.keep import interrupted
from recapture.keep.due import DueRange, Tick, tick
from recapture.keep.sources import Sources
from recapture.keep.state import Reading, reading_of
from recapture.keep.update import Skipped, Update
from recapture.run_files.files import RunFiles
from recapture.run_files.marks import STOPPED_RUNS, Unpublished
from recapture.storage.container import Blob
from recapture.table import change_feed, publish
from recapture.table.delta import Table
from recapture.table.publications import SCHEMA, Entry, Publication
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, slices_between
from tests.keep.memory import Clock, MemoryContainer, Requests
from tests.keep.memory_tables import ROW, SimulatedTable, Store
from tests.table.feeds import shared_comparisons
from tests.table.interleavings import TablesInMemory

ROWS, METRICS, QUARANTINE = "rows", "rows metrics", "@quarantine"
LENGTH = ticks.from_seconds(3600)
SEARCH_HOURS = 3
INTERVAL = timedelta(minutes=15)
PARTITIONS = 2
EARLY = ticks.from_seconds(300)
TELEMETRY = InputDefinition(
    alias="telemetry",
    names=CaptureNames("contoso", "telemetry"),
    policies=Policies(0, ticks.from_seconds(600), EARLY, adjust=True),
    look_back=0,
    interval_seconds=900,
    reading={},
    search_hours=SEARCH_HOURS,
    empty_blobs=True,
)


@dataclass
class Computation:
    """What one run computed."""

    run: str
    slices: tuple[int, ...]
    by: DueRange | None
    """What an update found due; None for a person."""
    is_published: bool = False


@dataclass(frozen=True)
class Stopped:
    """A run that its audit stopped."""

    run: str
    publications: Mapping[str, Publication]
    """What it would have published, by slice_start."""
    at: datetime
    version: int
    """Version of the publications when the audit began; -1 if there were none."""
    result: str
    """Result of the audit, by which an approval names it."""


@dataclass
class Deployment:
    """A pipeline with its archive and its tables."""

    definition: RunDefinition
    schedule: Schedule
    clock: Clock
    refuses_loss: bool
    """Whether the audit stops a run that reads fewer blobs than are published."""
    has_feed: bool = False
    """Whether the table of the rows has a change data feed."""
    requests: Requests = field(default_factory=Requests)
    entries: dict[str, Entry] = field(default_factory=dict)
    contents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows of every file that was written whole, by the path of the file."""
    definitions: dict[str, RunDefinition] = field(default_factory=dict)
    """Definitions with which something was computed, by their digests."""
    computations: list[Computation] = field(default_factory=list)
    """What was computed, published or not."""
    stopped: list[Stopped] = field(default_factory=list)
    """Runs that their audits stopped, in the order of their last audits."""
    approved: dict[str, str] = field(default_factory=dict)
    """Results with which people approved runs."""
    fulfilled: "Counter[tuple[str, int]]" = field(default_factory=Counter)
    """How often a slice was published for a request."""

    def __post_init__(self) -> None:
        self.place = "a container"
        """What stands for the container in the parts of the definition."""
        self.compute = self._compute
        """Computes a range that an update found due, and returns the run."""
        self.archive = MemoryContainer("memory:///archive", self.clock, self.requests)
        self.containers = {read.alias: self.archive for read in self.definition.inputs}
        self.containers |= {read.alias: self.archive for read in self.definition.references}
        self.store = Store(self.clock, self.requests)
        self.run_files = MemoryContainer("memory:///run files", self.clock, self.requests)
        others = {
            name: Table(f"memory:///{name}", ROW, "telemetry", change_feed=self.has_feed and name == ROWS)
            for name in (ROWS, METRICS, QUARANTINE)
        }
        publications = Table("memory:///publications", SCHEMA, "telemetry")
        self.tables = TablesInMemory(publications, others, self.open, self.entries)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Do not wait, and send requests one after another."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", lambda seconds: None)
            # The order of requests depends on the seed alone.
            patch.setattr(listing, "CONCURRENT_LISTINGS", 1)
            for module in (interrupted, change_feed):
                patch.setattr(module, "in_parallel", lambda call, items: [*map(call, items)])
            patch.setattr(change_feed, "comparisons", shared_comparisons)
            yield

    def open(self, table: Table) -> SimulatedTable:
        return SimulatedTable(table, self.store)

    @property
    def parts(self) -> dict[str, str]:
        return self.definition.parts | {"containers": self.place, "suite": "suite"}

    def sources(self) -> Sources:
        return Sources(
            definition=self.definition,
            parts=self.parts,
            schedule=self.schedule,
            length=LENGTH,
            containers=self.containers,
            run_files=self.run_files,
            publications=self.open(self.tables.publications),
            others=self.tables.others,
            open=self.open,
        )

    def update(self) -> tuple[Tick, list[str | Skipped | RecaptureError]]:
        """Carry out an update as the command does, and return what was due, and what became of it."""
        sources, reading = self.sources(), self.read()
        due = tick(reading.state)
        reading.record(sources)
        update = Update(
            sources=sources,
            reading=reading,
            tick=due,
            compute=lambda range_: self.compute(range_),
            id_of=str,
            bring_in_line=lambda starts: publish.bring_in_line(self.tables, starts),
            clock=lambda: self.clock.ticks,
        )
        return due, [*update.carry_out()]

    def read(self) -> Reading:
        """Return the state, as an update reads it."""
        return reading_of(self.sources(), self.archive.clock())

    def look(self) -> Tick:
        """Return what an update would do."""
        return tick(self.read().state)

    def _compute(self, range_: DueRange) -> str:
        run = self.backfill(range_.start, range_.end, by=range_)
        for slice_ in range_.slices:
            self.fulfilled.update((request, slice_.start) for request in slice_.requests)
        return run

    def backfill(self, start: int, end: int, *, by: DueRange | None = None) -> str:
        """Plan, compute, judge and publish a range, and return the run.

        Raise AuditError if its audit stops it, and nobody approved it with this result.
        """
        manifest = self.plan(start, end)
        files = RunFiles(self.run_files, manifest.run)
        files.write_manifest(manifest)
        self.definitions[self.definition.digest] = self.definition
        starts = tuple(run_slice.slice.start for run_slice in manifest.slices)
        computation = Computation(manifest.run, starts, by)
        self.computations.append(computation)
        rows = [
            self._rows([(pinned.blob, self.archive.read(pinned.blob)) for pinned in blobs])
            for blobs in manifest.input("telemetry").blobs_by_slice()
        ]
        if damaged := self._with(manifest, rows, "damaged"):
            raise RunError(f"blob {damaged} is damaged")
        publications = {
            ticks.to_text(run_slice.slice.start): self._publication(manifest, run_slice, slice_rows, read)
            for run_slice, slice_rows, read in zip(manifest.slices, rows, manifest.reads, strict=True)
        }
        version = len(self.store.logs.get(self.tables.publications.url, ())) - 1
        held = {ticks.to_text(start): self.entry(start).run for start in starts}
        quality, newer_than = "passed", None
        if fault := self._fault(manifest, rows):
            incomplete = tuple(sorted(manifest.incomplete_slices))
            result = " ".join([fault, *incomplete])
            reads, writes = dict(zip(held, manifest.reads, strict=True)), self.run_files.writes
            try:
                now = ticks.text_of(self.clock.now)
                STOPPED_RUNS.record(files, Unpublished(now, self.parts, reads, held, incomplete))
            finally:
                if self.run_files.writes > writes:  # also if it is killed when the mark is written
                    earlier = [stopped for stopped in self.stopped if stopped.run != manifest.run]
                    self.stopped = [*earlier, Stopped(manifest.run, publications, self.clock.now, version, result)]
            if self.approved.get(manifest.run) != result:
                raise AuditError(f"run {manifest.run}: {fault}")
            quality, newer_than = "approved", held
        publications = {start: replace(entry, quality=quality) for start, entry in publications.items()}
        publish.publish(self.tables, publications, unless_newer_than=newer_than)
        computation.is_published = True
        return manifest.run

    def plan(self, start: int, end: int, definition: RunDefinition | None = None) -> Manifest:
        """Return the manifest of a range, with the present definition unless another is given."""
        slices = slices_between(start, end, LENGTH)
        return pin_blobs(definition or self.definition, self.containers, slices, self.clock.now)

    def rollback(self, start: int) -> None:
        """Roll back the last publication of a slice, if there is one."""
        with suppress(RunError):
            publish.rollback(self.tables, [ticks.to_text(start)])

    def approve(self, stopped: Stopped) -> None:
        """Publish a run that its audit stopped. Raise PermanentError if another run was published since."""
        mark = STOPPED_RUNS.read(self.run_files, stopped.run)
        assert mark is not None
        self.approved[stopped.run] = stopped.result
        now = self.clock.now
        approved = {
            start: replace(publication, quality="approved", published=now)
            for start, publication in stopped.publications.items()
        }
        publish.publish(self.tables, approved, unless_newer_than=mark.held)

    def entry(self, start: int) -> Entry:
        """Return the entry of a slice, without a request."""
        file = self._held(self.tables.publications).get(ticks.to_text(start))
        return Entry(None) if file is None else self.entries[file.path]

    def published(self) -> list[int]:
        held = self._held(self.tables.publications)
        return [start for text in held if self.entry(start := _ticks(text)).current is not None]

    def shown(self, name: str = ROWS) -> dict[int, tuple[str, ...]]:
        """Return what a reader of a table sees now: the rows of each slice."""
        held = self._held(self.tables.others[name])
        return {_ticks(text): self.contents[file.path] for text, file in held.items()}

    def expected(self, start: int, end: int) -> dict[int, tuple[str, ...]]:
        """Return the rows that one run over the archive gives now."""
        manifest = self.plan(start, end)
        by_slice = manifest.input("telemetry").blobs_by_slice()
        return {
            run_slice.slice.start: self._rows([(pinned.blob, self.archive.read(pinned.blob)) for pinned in blobs])
            for run_slice, blobs in zip(manifest.slices, by_slice, strict=True)
        }

    def _rows(self, blobs: Sequence[tuple[Blob, bytes]]) -> tuple[str, ...]:
        rows = sorted(f"{blob.name}: {content.decode()}" for blob, content in blobs)
        return self.definition.canonical_query, *rows

    def _fault(self, manifest: Manifest, rows: Sequence[tuple[str, ...]]) -> str | None:
        """Return why the audit stops a run; None if it does not."""
        if poisoned := self._with(manifest, rows, "poison"):
            return f"{poisoned} has poison"
        for run_slice, slice_rows in zip(manifest.slices, rows, strict=True):
            current = self.entry(run_slice.slice.start).current
            if self.refuses_loss and current is not None and len(slice_rows) < current.input_events:
                return "published events are lost"
        return None

    def _with(self, manifest: Manifest, rows: Sequence[tuple[str, ...]], content: str) -> str | None:
        """Return the name of a blob with this content, which ends the run of the slice of its hour."""
        for run_slice, slice_rows in zip(manifest.slices, rows, strict=True):
            for row in slice_rows:
                if has_fault(row, run_slice.slice, content):
                    return row.partition(": ")[0]
        return None

    def _publication(self, manifest: Manifest, run_slice: RunSlice, rows: tuple[str, ...], read: str) -> Publication:
        odd = tuple(row for row in rows if "odd" in row)
        files = {
            ROWS: self._stage(run_slice, ROWS, rows),
            METRICS: self._stage(run_slice, METRICS, (str(len(rows)),)),
            QUARANTINE: self._stage(run_slice, QUARANTINE, odd) if odd else None,
        }
        return Publication(
            run=manifest.run,
            quality="passed",
            published=self.clock.now,
            digest=run_slice.digest,
            manifest=manifest.digest,
            definition=manifest.definition_digest,
            input_events=len(rows),
            late_events=0,
            files=files,
            parts=self.parts,
            read=read,
            provisional=ticks.to_text(run_slice.slice.start) in manifest.incomplete_slices,
        )

    def _stage(self, run_slice: RunSlice, name: str, rows: tuple[str, ...]) -> File:
        url = self.tables.others[name].url
        values = [(name, content.encode()) for name, _, content in (row.partition(": ") for row in rows)]
        file = self.store.write(url, run_slice.slice.start, run_slice.digest, values)
        self.contents[file.path] = rows
        return file

    def _held(self, table: Table) -> dict[str, File]:
        return self.store.held(table.url)


def has_fault(row: str, slice_: Slice, fault: str) -> bool:
    """Return whether a row ends the run of a slice: a damaged or poisoned blob ends that of its own hour."""
    name, _, content = row.partition(": ")
    if not content.startswith(fault):
        return False
    return slice_.start <= ticks.from_datetime(opened_at(name)) < slice_.end


@cache
def opened_at(name: str) -> datetime:
    """Return the time in the name of a blob."""
    return datetime.strptime("/".join(name.split("/")[-6:]), "%Y/%m/%d/%H/%M/%S.avro").replace(tzinfo=UTC)


def _ticks(text: str) -> int:
    return ticks.from_datetime(datetime.fromisoformat(text))
