"""Tables in memory with the change data feed of the engine: every version of them, and what their feeds say of it."""

import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.table.change_feed import PROPERTY
from recapture.table.delta import Table
from recapture.table.files import write_slice_file
from recapture.table.log import ChangeFile
from recapture.table.row_changes import CHANGE_TYPE, RowChange
from recapture.table.snapshot import File
from tests.keep.memory import Clock, MemoryContainer, Requests
from tests.table.interleavings import InMemory, Logs, Schedule

ROW = pa.schema([("blob", pa.string()), ("content", pa.binary())])
Rows = Counter[tuple[str, str, bytes]]
"""Rows as readers see them: the start of the slice, and the values."""


@dataclass
class Store:
    """Every version of tables in memory, and their files; all mappings are keyed by the url of a table."""

    clock: Clock
    requests: Requests
    logs: Logs = field(default_factory=dict)
    changed: dict[str, list[set[str]]] = field(default_factory=dict)
    """Slices that each version changed."""
    change_files: dict[str, list[dict[str, ChangeFile] | None]] = field(default_factory=dict)
    """Change files that each version names, by slice_start; None if it needs none or can have none."""
    containers: dict[str, MemoryContainer] = field(default_factory=dict)

    def container(self, url: str) -> MemoryContainer:
        """Return the container of a table's files."""
        return self.containers.setdefault(url, MemoryContainer(url, self.clock, self.requests))

    def held(self, url: str, version: int = -1) -> dict[str, File]:
        """Return what a version of a table holds, the newest one unless another is given."""
        return self.logs[url][version] if url in self.logs else {}

    def last_change(self, url: str, start: str) -> int:
        """Return the last version of a table that changed a slice; -1 if none did."""
        return max((number for number, starts in enumerate(self.changed.get(url, ())) if start in starts), default=-1)

    def write(self, url: str, start: int, digest: str, rows: Collection[tuple[str, bytes]]) -> File:
        """Write the file of a slice, given by its start in ticks."""
        content = pa.Table.from_pylist([dict(zip(ROW.names, row, strict=True)) for row in rows], schema=ROW)
        path, size = write_slice_file(self.container(url), start, digest, content)
        return File(path, size, len(rows))

    def read(self, url: str, path: str) -> pa.Table:
        """Return the rows of a file, without a request."""
        return pq.read_table(io.BytesIO(self.container(url).content(path)))

    def rows(self, url: str, start: str, file: File | None) -> Rows:
        """Return the rows of a slice that holds a file."""
        return Rows() if file is None else Rows(_rows(start, self.read(url, file.path)))

    def feed(self, url: str, version: int) -> tuple[Rows, Rows]:
        """Return the rows that a version deletes, and those that it inserts, as its change data feed says."""
        before, after = self.held(url, version - 1) if version else {}, self.held(url, version)
        deleted, inserted = Rows(), Rows()
        change_files = self.change_files[url][version]
        if change_files is None:
            for start in self.changed[url][version]:
                deleted += self.rows(url, start, before.get(start))
                inserted += self.rows(url, start, after.get(start))
            return deleted, inserted
        for start, file in change_files.items():
            changes = self.read(url, file.path)
            kinds = changes[CHANGE_TYPE].to_pylist()
            for kind, row in zip(kinds, _rows(start, changes), strict=True):
                (deleted if kind in (RowChange.DELETE, RowChange.PREIMAGE) else inserted)[row] += 1
        return deleted, inserted


def _rows(start: str, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    return ((start, *values) for values in zip(*(rows[name].to_pylist() for name in ROW.names), strict=True))


class SimulatedTable(InMemory):
    """A table in memory. Reading and writing it are requests."""

    def __init__(self, table: Table, store: Store) -> None:
        self._store = store
        super().__init__(table, store.logs, Schedule())

    def refresh(self) -> None:
        self._store.requests()
        super().refresh()

    def create(self) -> None:
        self._store.requests()
        self._store.changed.setdefault(self.table.url, [set()])
        self._store.change_files.setdefault(self.table.url, [None])
        super().create()

    def slices_since(self, version: int) -> set[str] | None:
        self._store.requests()
        assert self.version is not None
        return set().union(*self._store.changed[self.table.url][version + 1 : self.version + 1])

    def commit(self, files: Mapping[str, File | None], metadata: object) -> bool:
        self._store.requests()
        changes = self._write_change_files(files)
        if not self.append(files):
            return False
        self._store.changed[self.table.url].append(set(files))
        self._store.change_files[self.table.url].append(changes)
        self._store.requests()  # a process may be killed, and an answer lost, when the commit has taken place
        return True

    # What the engine asks for to write change files

    @property
    def _container(self) -> MemoryContainer:
        return self._store.container(self.table.url)

    @property
    def _rows(self) -> pa.Schema:
        return ROW

    def _properties(self) -> Mapping[str, str]:
        return {PROPERTY: str(self.table.change_feed).lower()}
