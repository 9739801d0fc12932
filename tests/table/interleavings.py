"""Every interleaving of several publishers and rollbacks: each runs up to its next commit, then another may go on.

A state is explored once, so every reachable state and every step between two of them is visited once.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from greenlet import getcurrent, greenlet

from recapture.table import publish
from recapture.table.delta import OpenTable, Table
from recapture.table.publications import Entry, Publications, shown
from recapture.table.snapshot import File, HeldFile
from recapture.table.stored import Look
from tests.table.publishing import METRICS, ROWS, Place, digest

Commit = Callable[[], bool]
Actors = Mapping[str, Callable[[], Any]]
"""What several processes do at the same time, by name."""


class _Actor(greenlet):
    """Something that stops before each of its commits."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(self._run)
        self._call = call
        self.at: object = "start"
        """Where it stopped: all that its next steps depend on."""
        self.outcome: Any = None

    def step(self) -> None:
        """Let it go on to its next commit, or to its end."""
        self.parent = getcurrent()
        self.switch()

    def stop(self, at: object) -> None:
        """Stop here until the next step."""
        self.at = at
        assert self.parent is not None
        self.parent.switch()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except Exception as error:
            self.outcome = error
        self.at = "done"


class Schedule:
    """Run actors step by step: each stops before the commits for which it calls `commit`."""

    def __init__(self) -> None:
        self._actors: dict[str, _Actor] = {}
        self._tables: dict[str, tuple[int, object]] = {}
        """Number of commits before the last one, and the last commit, by the url of the table."""
        self.states = 0
        """Number of states that `interleavings` has visited."""

    def commit(self, table: Table, version: int | None, files: Mapping[str, File | None], commit: Commit) -> bool:
        """Commit files to a version of a table, at the actor's next step."""
        actor = getcurrent()
        if not isinstance(actor, _Actor):
            return commit()
        paths = tuple((start, file and file.path) for start, file in sorted(files.items()))
        actor.stop((table.url, version, paths))
        committed = commit()
        if committed:
            number, _ = self._tables.get(table.url, (-1, ()))
            self._tables[table.url] = (number + 1, paths)
        return committed

    def interleavings(
        self, world: Callable[[], tuple[Actors, Callable[[], None]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each end that is reached: the names of the actors in the order of their steps, and their outcomes.

        `world` restores everything to before the first step, and returns the actors and a call that tidies up.
        """
        visited: set[object] = set()
        todo: list[tuple[str, ...]] = [()]
        while todo:
            steps = todo.pop()
            actors, tidy = world()
            self._tables = {}
            self._actors = {name: _Actor(call) for name, call in actors.items()}
            for name in steps:
                self._actors[name].step()
            while (state := self._state()) not in visited:
                visited.add(state)
                waiting = [name for name, actor in self._actors.items() if not actor.dead]
                if not waiting:
                    yield "".join(steps), {name: actor.outcome for name, actor in self._actors.items()}
                    break
                first, *remaining = waiting
                todo += [(*steps, name) for name in remaining]
                self._actors[first].step()
                steps = (*steps, first)
            for actor in self._actors.values():
                actor.throw()
            tidy()
            self.states = len(visited)

    def _state(self) -> object:
        return tuple(sorted(self._tables.items())), tuple(actor.at for actor in self._actors.values())


class ScheduledTable(OpenTable):
    """A Delta table whose commits are steps of a schedule."""

    def __init__(self, schedule: Schedule, table: Table) -> None:
        super().__init__(table)
        self._schedule = schedule

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        commit = super().commit
        return self._schedule.commit(self.table, self.version, files, lambda: commit(files, metadata))


Logs = dict[str, list[dict[str, File]]]
"""What the slices of tables hold in each version, by url; version 0 holds nothing."""


class InMemory(OpenTable):
    """A table in memory, by the same rules, where thousands of worlds are needed (see test_delta.py)."""

    def __init__(self, table: Table, logs: Logs, schedule: Schedule) -> None:
        self.table = table
        self._logs = logs
        self._schedule = schedule
        self.refresh()

    @property
    def version(self) -> int | None:
        return self._version

    def refresh(self) -> None:
        log = self._logs.get(self.table.url)
        self._version = None if log is None else len(log) - 1

    def create(self) -> None:
        self._logs.setdefault(self.table.url, [{}])
        self.refresh()

    def claim(self, take_over: bool = False, columns: pa.Schema | None = None) -> None:
        if self.version is None:
            self.create()

    def require_publishable(self, take_over: bool = False) -> None:
        pass

    def require_writable(self, take_over: bool = False) -> None:
        pass

    @property
    def _held(self) -> dict[str, File]:
        return {} if self.version is None else self._logs[self.table.url][self.version]

    def held(self, slice_starts: Collection[str] | None = None) -> dict[str, tuple[HeldFile, ...]]:
        held, starts = self._held, self._held if slice_starts is None else slice_starts
        files = ((start, held[start]) for start in starts if start in held)
        return {start: (HeldFile(file.path, file.size, file.rows),) for start, file in files}

    def slices(self) -> dict[str, dict[str, Any]]:
        held = sorted(self._held.items())
        return {start: {"path": file.path, "rows": file.rows, **file.values} for start, file in held}

    def shown_values(self, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        names = list(columns)
        return ((start, *map(values.get, names)) for start, values in self.slices().items())

    def replaceable(self, files: Mapping[str, File | None]) -> dict[str, File | None]:
        return dict(files)

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        return self._schedule.commit(self.table, self.version, files, lambda: self.append(files))

    def append(self, files: Mapping[str, File | None]) -> bool:
        """Add a version to the log, unless another writer has added one since the table was read."""
        log = self._logs[self.table.url]
        assert self.version is not None, "the table must exist"
        if self.version != len(log) - 1:
            return False
        log.append({start: file for start, file in log[-1].items() if start not in files})
        log[-1].update({start: file for start, file in files.items() if file is not None})
        return True


class PublicationsInMemory(Publications):
    """Publications whose entries are in memory, by the paths of their files."""

    def __init__(self, table: InMemory, entries: dict[str, Entry]) -> None:
        self.table = table
        self._entries = entries

    def entries(self, slice_starts: Collection[str]) -> dict[str, Entry]:
        held = self.table.held(slice_starts)
        return {start: self._entries[held[start][0].path] if start in held else Entry(None) for start in slice_starts}

    def write(self, entries: Mapping[str, Entry]) -> dict[str, File]:
        files = {start: File(f"{start} {entry}", 1, 1, shown(entry)._asdict()) for start, entry in entries.items()}
        self._entries |= {files[start].path: entry for start, entry in entries.items()}
        return files


class NoLook(Look):
    """Looks at no file: those of tables in memory are not in the storage, and nothing damages them."""

    def secure(self, table: OpenTable, files: Mapping[str, File]) -> None:
        pass

    def columns(self, url: str, files: Mapping[str, File]) -> None:
        pass

    def intact(self, url: str, files: Mapping[str, File]) -> dict[str, File]:
        return dict(files)


class PlaceInMemory(Place):
    """A place with tables in memory, whose files are not written."""

    @classmethod
    def of(cls, memory: "Memory") -> "PlaceInMemory":
        tables = partial(TablesInMemory, opened=memory.open, entries=memory.entries)
        return cls("file:///tables", (ROWS, METRICS), tables_type=tables)

    def _stage(self, name: str, run: str, start: str, row: str) -> File:
        content = hashlib.sha256(row.encode()).hexdigest()[:16]
        return File(f"{start}/{digest(run)}-{content}.parquet", 1, 1)


@dataclass(frozen=True)
class ScheduledTables(publish.Tables):
    """Delta tables whose commits are steps of a schedule."""

    schedule: Schedule

    def open(self, table: Table) -> OpenTable:
        return ScheduledTable(self.schedule, table)

    def open_publications(self) -> Publications:
        return Publications(self.open(self.publications))


@dataclass
class Memory:
    """What tables in memory hold, and the schedule of which their commits are steps."""

    logs: Logs = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    """Entries of the publications, by the paths of their files."""
    schedule: Schedule = field(default_factory=Schedule)

    def open(self, table: Table) -> InMemory:
        return InMemory(table, self.logs, self.schedule)


@dataclass(frozen=True)
class TablesInMemory(publish.Tables):
    """Tables in memory. Their files do not exist."""

    opened: Callable[[Table], InMemory]
    """Function that returns a table as it is now."""
    entries: dict[str, Entry]
    """Entries of the publications, by the paths of their files."""

    def open(self, table: Table) -> OpenTable:
        return self.opened(table)

    def open_publications(self) -> Publications:
        return PublicationsInMemory(self.opened(self.publications), self.entries)

    def look(self, remedy: str) -> Look:
        return NoLook(remedy)
