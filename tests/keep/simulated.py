"""A storage and tables in memory, under a clock. Their n-th request may fail, be the last, or let others go first.

Everything else is the engine's own: planning, the publication protocol, the run files and the update. Only the rows are
made up: those of a slice are the contents of the blobs that it reads, with the query.
"""

import hashlib
import itertools
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

import pyarrow as pa
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
from recapture.storage.container import Blob, changed, deleted
from recapture.table import publish
from recapture.table.delta import File, HeldFile, OpenTable, Table
from recapture.table.files import folder_of
from recapture.table.publications import SCHEMA, Entry, Publication, Publications, shown
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, slices_between
from tests.table.interleavings import NoLook

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


class KilledError(BaseException):
    """The process was killed: nothing catches this."""


class Requests:
    """Counts the requests of everybody, and does something at the n-th."""

    def __init__(self) -> None:
        self.count = 0
        self._at: int | None = None
        self._effect: Callable[[], None] = lambda: None

    def at(self, number: int, effect: Callable[[], None]) -> None:
        """Call `effect` just before the request that comes after `number` more."""
        self._at, self._effect = self.count + number, effect

    def never(self) -> None:
        self._at = None

    def __call__(self) -> None:
        self.count += 1
        if self._at is not None and self.count > self._at:
            self._at = None
            self._effect()


@dataclass
class Clock:
    """The storage's clock, in whole seconds."""

    now: datetime

    def advance(self, minutes: float) -> None:
        self.now += timedelta(seconds=round(60 * minutes))

    @property
    def ticks(self) -> int:
        return ticks.from_datetime(self.now)


Versions = list[tuple[datetime, Blob | None, bytes]]
"""Versions of a blob, oldest first, with their times; None if it was deleted."""


@dataclass
class MemoryContainer:
    """A container in memory. Its listings may lag: they then show what it held some time ago."""

    url: str
    clock_: Clock
    requests: Requests
    lag: timedelta = timedelta()
    _versions: "dict[str, Versions]" = field(default_factory=dict)
    _sorted: "list[str]" = field(default_factory=list)
    """Names of all blobs that there ever were, in order."""
    _etags: int = 0

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.requests()
        then = self.clock_.now - self.lag
        for name in itertools.takewhile(lambda name: name.startswith(prefix), self._names_from(prefix)):
            if (blob := self._blob(name, then)) is not None:
                yield blob

    def _names_from(self, prefix: str) -> Sequence[str]:
        """Return the names from the first one on that may have this prefix."""
        if len(self._sorted) < len(self._versions):
            self._sorted = sorted(self._versions)
        return self._sorted[bisect_left(self._sorted, prefix) :]

    def list_folders(self, prefix: str) -> Iterator[str]:
        end = len(prefix)
        yield from sorted({name[: name.index("/", end) + 1] for blob in self.list(prefix) for name in [blob.name]})

    def read(self, blob: Blob) -> bytes:
        self.requests()
        now = self._blob(blob.name, self.clock_.now)
        if now is None:
            raise deleted(blob)
        if now.etag != blob.etag:
            raise changed(blob, now.etag)
        return self._versions[blob.name][-1][2]

    def read_current(self, name: str) -> bytes | None:
        self.requests()
        return None if self._blob(name, self.clock_.now) is None else self._versions[name][-1][2]

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        self.requests()
        blob = self._blob(name, self.clock_.now)
        return None if blob is None else (self._versions[name][-1][2], blob.etag)

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        self.requests()
        blob = self._blob(name, self.clock_.now)
        if blob is None or blob.etag != etag:
            return False
        self._put(name, content)
        self.requests()  # a process may be killed, and an answer lost, when the blob is written
        return True

    def write(self, name: str, content: bytes) -> Blob:
        self.requests()
        blob = self._put(name, content)
        self.requests()  # a process may be killed, and an answer lost, when the blob is written
        return blob

    def _put(self, name: str, content: bytes) -> Blob:
        self._etags += 1
        blob = Blob(name, f"etag {self._etags}", len(content), self.clock_.now)
        self._versions.setdefault(name, []).append((self.clock_.now, blob, content))
        return blob

    def create(self, name: str, content: bytes) -> bool:
        self.requests()
        if self._blob(name, self.clock_.now) is not None:
            return False
        self._put(name, content)
        self.requests()
        return True

    def clock(self) -> datetime:
        self.requests()
        return self.clock_.now

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        return ()

    def remove(self, blob: Blob) -> bool:
        self.requests()
        is_listed = self._blob(blob.name, self.clock_.now) == blob
        if is_listed:
            self.delete(blob.name)
        return is_listed

    def delete(self, name: str) -> None:
        self._versions[name].append((self.clock_.now, None, b""))

    def restore(self, name: str) -> None:
        """Restore the last version of a deleted blob, as undelete does."""
        blob, content = next((blob, content) for _, blob, content in reversed(self._versions[name]) if blob is not None)
        self._versions[name].append((self.clock_.now, blob, content))

    def names(self, *, present: bool = True) -> Sequence[str]:
        """Return the names of the blobs that are there, or of those that were deleted."""
        return [name for name in sorted(self._versions) if (self._versions[name][-1][1] is not None) is present]

    def _blob(self, name: str, then: datetime) -> Blob | None:
        return next((blob for time, blob, _ in reversed(self._versions.get(name, ())) if time <= then), None)


class SimulatedTable(OpenTable):
    """A table in memory, by the rules of `OpenTable`. Reading and writing it are requests."""

    def __init__(
        self,
        table: Table,
        logs: dict[str, list[dict[str, File]]],
        changed: dict[str, list[set[str]]],
        requests: Requests,
    ) -> None:
        self.table, self._logs, self._changed, self._requests = table, logs, changed, requests
        self.refresh()

    @property
    def version(self) -> int | None:
        return self._version

    def refresh(self) -> None:
        self._requests()
        log = self._logs.get(self.table.url)
        self._version = None if log is None else len(log) - 1

    def create(self) -> None:
        self._requests()
        self._logs.setdefault(self.table.url, [{}])
        self._changed.setdefault(self.table.url, [set()])
        self.refresh()

    def claim(self, take_over: bool = False, columns: pa.Schema | None = None) -> None:
        if self.version is None:
            self.create()

    def require_writable(self, take_over: bool = False) -> None:
        pass

    def require_publishable(self, take_over: bool = False) -> None:
        pass

    @property
    def _held(self) -> dict[str, File]:
        return {} if self.version is None else self._logs[self.table.url][self.version]

    def held(self, slice_starts: Collection[str] | None = None) -> dict[str, tuple[HeldFile, ...]]:
        held = {start: file for start, file in self._held.items() if slice_starts is None or start in slice_starts}
        return {start: (HeldFile(file.path, file.size, file.rows),) for start, file in held.items()}

    def slices(self) -> dict[str, dict[str, object]]:
        return {
            start: {"path": file.path, "rows": file.rows} | dict(file.values)
            for start, file in sorted(self._held.items())
        }

    def slices_since(self, version: int) -> set[str] | None:
        self._requests()
        assert self.version is not None
        return set().union(*self._changed[self.table.url][version + 1 : self.version + 1])

    def replaceable(self, files: Mapping[str, File | None]) -> dict[str, File | None]:
        return dict(files)

    def commit(self, files: Mapping[str, File | None], metadata: object) -> bool:
        self._requests()
        log = self._logs[self.table.url]
        if self.version != len(log) - 1:
            return False
        log.append({start: file for start, file in log[-1].items() if start not in files})
        log[-1].update({start: file for start, file in files.items() if file is not None})
        self._changed[self.table.url].append(set(files))
        self._requests()  # a process may be killed, and an answer lost, when the commit has taken place
        return True


class SimulatedPublications(Publications):
    """Publications whose entries are in memory, by the paths of their files."""

    def __init__(self, table: SimulatedTable, entries: dict[str, Entry]) -> None:
        self.table, self._entries = table, entries

    def entries(self, slice_starts: Collection[str]) -> dict[str, Entry]:
        held = self.table.held(slice_starts)
        return {start: self._entries[held[start][0].path] if start in held else Entry(None) for start in slice_starts}

    def write(self, entries: Mapping[str, Entry]) -> dict[str, File]:
        files = {start: File(f"{start} {entry}", 1, 1, asdict(shown(entry))) for start, entry in entries.items()}
        self._entries |= {files[start].path: entry for start, entry in entries.items()}
        return files


@dataclass
class Computation:
    """What one run computed."""

    run: str
    slices: tuple[int, ...]
    by: DueRange | None
    """What an update found due; None for a person."""
    is_published: bool = False


@dataclass
class Deployment:
    """A pipeline with its archive and its tables."""

    definition: RunDefinition
    schedule: Schedule
    clock: Clock
    refuses_loss: bool
    """Whether the audit stops a run that reads fewer blobs than are published."""
    requests: Requests = field(default_factory=Requests)
    logs: dict[str, list[dict[str, File]]] = field(default_factory=dict)
    changed: dict[str, list[set[str]]] = field(default_factory=dict)
    """Slices that each version of a table changed, by its url."""
    entries: dict[str, Entry] = field(default_factory=dict)
    contents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows of every file that was written whole, by the path of the file."""
    definitions: dict[str, RunDefinition] = field(default_factory=dict)
    """Definitions with which something was computed, by their digests."""
    computations: list[Computation] = field(default_factory=list)
    """What was computed, published or not."""
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
        self.run_files = MemoryContainer("memory:///run files", self.clock, self.requests)
        others = {name: Table(f"memory:///{name}", SCHEMA, "telemetry") for name in (ROWS, METRICS, QUARANTINE)}
        self.tables = publish.Tables(Table("memory:///publications", SCHEMA, "telemetry"), others)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the protocol of publications use the tables in memory, and not wait."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publish, "OpenTable", self.open)
            patch.setattr(publish, "Publications", lambda table: SimulatedPublications(self.open(table), self.entries))
            patch.setattr(publish, "Look", NoLook)
            patch.setattr(time, "sleep", lambda seconds: None)
            # The order of requests depends on the seed alone.
            patch.setattr(listing, "CONCURRENT_LISTINGS", 1)
            patch.setattr(interrupted, "in_parallel", lambda call, items: [*map(call, items)])
            yield

    def open(self, table: Table) -> SimulatedTable:
        return SimulatedTable(table, self.logs, self.changed, self.requests)

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
        """Plan, compute, judge and publish a range, and return the run. Raise AuditError if its audit stops it."""
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
        held_before = {start: self.entry(start).run for start in starts}
        if fault := self._fault(manifest, rows):
            texts = [ticks.to_text(start) for start in starts]
            reads = dict(zip(texts, manifest.reads, strict=True))
            held = {ticks.to_text(start): run for start, run in held_before.items()}
            STOPPED_RUNS.record(files, Unpublished(ticks.text_of(self.clock.now), self.parts, reads, held))
            raise AuditError(f"run {manifest.run}: {fault}")
        publications = {
            ticks.to_text(run_slice.slice.start): self._publication(manifest, run_slice, slice_rows, read)
            for run_slice, slice_rows, read in zip(manifest.slices, rows, manifest.reads, strict=True)
        }
        publish.publish(self.tables, publications)
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
        content = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
        path = f"{folder_of(run_slice.slice.start)}{run_slice.digest[:16]}-{content}.parquet"
        self.requests()
        self.contents[path] = rows
        return File(path, len(rows), len(rows))

    def _held(self, table: Table) -> dict[str, File]:
        log = self.logs.get(table.url)
        return log[-1] if log else {}


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
