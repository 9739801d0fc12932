"""Read and write the publications of a pipeline: the run and the files of each slice, and what it held before.

They are a Delta table, NAME_publications, with one row for each slice. Only its commits decide what is published. Every
other table of the pipeline follows it (see `publish`).
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import TypeAdapter

from recapture.archive.holes import Hole
from recapture.errors import PermanentError
from recapture.process.versions import PUBLICATIONS_FORMAT, require_format
from recapture.storage import in_parallel, open_container
from recapture.table.delta import OpenTable, Table
from recapture.table.files import input_of, is_for_input, read_parquet, require_slice_file, write_slice_file
from recapture.table.snapshot import File, HeldFile
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import ArrivedNumbers

MAX_EARLIER = 10
"""Maximum number of earlier publications of a slice, which rollback can restore."""


@dataclass(frozen=True)
class Approval:
    """A person's decision to publish a run that its audit stopped."""

    by: str
    at: datetime
    """Time of the decision, in UTC."""
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Return the approval in JSON types."""
        return {"by": self.by, "at": ticks.whole_seconds(self.at), "reason": self.reason}


@dataclass(frozen=True)
class InputRead:
    """What a slice read of one input."""

    source: str
    """Name of the input's source, such as that of the hub: numbers of another source are not compared."""
    events: Mapping[str, int]
    """Number of events that arrived, without duplicates, by partition."""
    numbers: Mapping[str, tuple[ArrivedNumbers, ...]]
    """Sequence numbers that arrived, by partition; empty if the events have none."""


@dataclass(frozen=True)
class Publication:
    """Publication of one slice by a run."""

    run: str
    quality: str
    """Verdict of the audit, or "approved" if it stopped the run and a person approved it."""
    published: datetime = field(compare=False)
    """Time of the publication of this run with this verdict, in UTC. Publishing it again does not change it."""
    digest: str
    """Digest of the slice's input: equal in all runs that read and compute the same."""
    manifest: str
    """Digest of the run's manifest."""
    definition: str
    """Digest of the version of Recapture, query, JavaScript functions, policies and inputs."""
    input_events: int
    late_events: int
    files: Mapping[str, File | None]
    """Files by the table's name in `publish.Tables`; None for the quarantine if nothing of the slice is in it."""
    approval: Approval | None = None
    """Decision to publish the run although its audit stopped it; None if the audit passed."""
    parts: Mapping[str, str] | None = None
    """Parts of the definition and of the suite, as `run.outdated.parts_of`; None if an older version published it."""
    inputs: Mapping[str, InputRead] | None = None
    """What the slice read, by the alias of the input; None if an older version published it."""
    holes: tuple[Hole, ...] = ()
    """What was missing from the archive for the slice, or may have been; at most MAX_HOLES."""
    missing_events: int = 0
    """Number of events that the archive lacks, judging by the sequence numbers."""
    missing_blobs: int = 0
    """Number of blobs that the archive lacks; those whose numbers continue do not count."""
    read: str | None = None
    """What the slice read, as `archive.manifest.slice_read`; None if an older version published it."""
    provisional: bool = False
    """Whether Capture may not have written everything yet when the slice was planned."""


@dataclass(frozen=True)
class Entry:
    """Entry of one slice in the publications."""

    current: Publication | None
    """Current publication; None if the slice was never published, or was rolled back to nothing."""
    earlier: tuple[Publication, ...] = ()
    """Earlier publications of the slice, newest first; at most MAX_EARLIER."""
    taken_back: str | None = None
    """Run that the last rollback removed; None after the next publication."""

    @property
    def run(self) -> str | None:
        """Return the run that the slice holds; None if it holds none."""
        return None if self.current is None else self.current.run

    def file(self, name: str) -> File | None:
        """Return the file that the slice holds in a table; None if it holds none. `name` is a key of its `files`."""
        return None if self.current is None else self.current.files.get(name)

    def is_newer(self, run: str | None) -> bool:
        """Return whether the slice holds something that was published after it held `run`; None for nothing.

        If the last change is a rollback of another run than `run`, that is not known for certain, and true is returned.
        """
        if self.run is None or self.run == run:
            return False
        return run is None or self.taken_back != run or run in (publication.run for publication in self.earlier)

    def after_publishing(self, publication: Publication) -> "Entry":
        """Return the entry after a publication. Publishing the same input again replaces its publication."""
        if self.current == publication and self.taken_back is None:
            return self
        before = self.earlier
        if self.current is not None and self.current.digest != publication.digest:
            before = (self.current, *before)[:MAX_EARLIER]
        return Entry(publication, before)

    def after_rollback(self) -> "Entry":
        """Return the entry after a rollback of the current publication."""
        assert self.current is not None
        current, *earlier = self.earlier or (None,)
        return Entry(
            current, tuple(publication for publication in earlier if publication is not None), self.current.run
        )


class ShownEntry(NamedTuple):
    """What the table's snapshot shows of an entry: the columns of the table. What it does not show is None."""

    run: str | None = None
    """Run that the slice holds; None if it holds none."""
    quality: str | None = None
    published: str | None = None
    """Time of the publication, ISO 8601."""
    input_events: int | None = None
    late_events: int | None = None
    digest: str | None = None
    taken_back: str | None = None
    parts: str | None = None
    """Parts of the definition and of the suite, as JSON."""
    missing_events: int | None = None
    missing_blobs: int | None = None
    read: str | None = None
    """What the slice read, as `archive.manifest.slice_read`."""
    empty: str | None = None
    """Names of the tables in which the slice has no rows, as JSON."""
    provisional: int | None = None
    """1 if Capture may not have written everything yet when the slice was planned, else 0."""
    kept: str | None = None
    """Tables whose file the slice kept from an earlier input, with the beginning of its digest, as JSON."""
    tables: str | None = None
    """Names of the tables that the run published, as JSON; None if an older version published the slice."""

    def input_of(self, name: str) -> str | None:
        """Return the digest of the input after which the slice's file in a table is named, or its beginning."""
        earlier: dict[str, str] = json.loads(self.kept) if self.kept else {}
        return earlier.get(name, self.digest)

    @property
    def late_share(self) -> float | None:
        """Share of the events that were late; None if there are none."""
        return self.late_events / self.input_events if self.late_events is not None and self.input_events else None


_SHOWN = {
    name: pa.int64() if type_ == int | None else pa.string() for name, type_ in ShownEntry.__annotations__.items()
}
"""Types of the columns that the table's snapshot shows, by name."""
SCHEMA = pa.schema([*_SHOWN.items(), ("entry", pa.string())])
NOTHING_SHOWN = ShownEntry()
"""What is shown of a slice that was never published."""


def shown_entries(publications: OpenTable) -> dict[str, ShownEntry]:
    """Return what the table of publications shows of every entry, by slice_start and in order."""
    return {start: ShownEntry(*values) for start, *values in publications.shown_values(_SHOWN)}


@dataclass(frozen=True)
class _Stored:
    format: int
    entry: Any


_ENTRY, _STORED = TypeAdapter(Entry), TypeAdapter(_Stored)


class Publications:
    """Table of publications, as it was when it was last read."""

    def __init__(self, table: Table | OpenTable) -> None:
        self.table = OpenTable(table) if isinstance(table, Table) else table
        self._cache: dict[str, Entry] = {}
        """Entries by the path of their files, which never change."""

    def entries(self, slice_starts: Collection[str]) -> dict[str, Entry]:
        """Return the entry of each slice; an empty one for a slice that was never published.

        Raise RunError if a file of the table is gone or damaged, or if another program added one.
        """
        paths = {start: self._path(start, files) for start, files in self.table.held(slice_starts).items()}
        unread = {start: path for start, path in paths.items() if path not in self._cache}
        self._cache |= zip(unread.values(), in_parallel(self._read_entry, unread.items()), strict=True)
        return {start: self._cache[paths[start]] if start in paths else Entry(None) for start in slice_starts}

    def hidden(self, slice_starts: Collection[str]) -> set[str]:
        """Return the slices whose entry a deletion vector hides from readers of the table."""
        held = self.table.held(slice_starts)
        return {start for start, files in held.items() if any(file.has_deletions for file in files)}

    def write(self, entries: Mapping[str, Entry]) -> dict[str, File]:
        """Write the file of each slice's entry, and return the files. No commit names them yet."""
        files = dict(zip(entries, in_parallel(self._write_entry, entries.items()), strict=True))
        self._cache |= {files[start].path: entry for start, entry in entries.items()}
        return files

    def _write_entry(self, slice_entry: tuple[str, Entry]) -> File:
        start, entry = slice_entry
        values = shown(entry)._asdict()
        columns = {name: pa.array([value], _SHOWN[name]) for name, value in values.items()}
        stored = _Stored(PUBLICATIONS_FORMAT, _ENTRY.dump_python(entry, mode="json"))
        rows = pa.table(columns | {"entry": [_STORED.dump_json(stored).decode()]})
        instant = ticks.from_datetime(datetime.fromisoformat(start))
        folder = open_container(self.table.table.url)
        path, size = write_slice_file(folder, instant, str(values["digest"] or "nothing"), rows)
        return File(path, size, 1, values)

    def _path(self, start: str, files: Sequence[HeldFile]) -> str:
        """Return the path of a slice's entry. Raise RunError if there are several."""
        if len(files) > 1:
            raise PermanentError(
                f"{self.table.table.url} has {len(files)} entries for slice {start}, but Recapture writes one: another "
                "program added rows to the table; restore its previous version"
            )
        return files[0].path

    def _read_entry(self, slice_path: tuple[str, str]) -> Entry:
        (start, path), url = slice_path, self.table.table.url
        problem = (
            f"{url} has lost the file {path}, the entry of slice {start}: restore the file, or delete the row of "
            "the slice and backfill the slice again (docs/tables-and-files.md, Other programs)"
        )
        content = require_slice_file(open_container(url), path, problem)
        stored = _STORED.validate_json(read_parquet(content, ["entry"])["entry"][0].as_py())
        require_format(stored.format, PUBLICATIONS_FORMAT, f"{path} of {url}")
        return _ENTRY.validate_python(stored.entry)


def shown(entry: Entry) -> ShownEntry:
    """Return what the table's snapshot shows of an entry."""
    current = entry.current
    if current is None:
        return ShownEntry(taken_back=entry.taken_back)
    return ShownEntry(
        run=current.run,
        quality=current.quality,
        published=ticks.whole_seconds(current.published),
        input_events=current.input_events,
        late_events=current.late_events,
        digest=current.digest,
        taken_back=entry.taken_back,
        parts=None if current.parts is None else json.dumps(current.parts),
        missing_events=current.missing_events,
        missing_blobs=current.missing_blobs,
        read=current.read,
        provisional=int(current.provisional),
        empty=json.dumps([name for name, file in current.files.items() if file is None]),
        kept=_kept(current),
        tables=json.dumps(sorted(current.files)),
    )


def _kept(publication: Publication) -> str | None:
    """Return `ShownEntry.kept` of a publication; None if it kept no file."""
    paths = {name: file.path for name, file in publication.files.items() if file is not None}
    earlier = {name: input_of(path) for name, path in paths.items() if not is_for_input(path, publication.digest)}
    return json.dumps(earlier) if any(earlier.values()) else None
