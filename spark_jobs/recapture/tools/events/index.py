"""Which blobs hold nothing of what is looked for, by what the tasks of published runs noted of them.

By its Bloom filter, a blob that is left out does not hold the key. What it does to other events is in its note: the
range of its sequence numbers, and how far it pushed the watermark. Without such a note, a blob is read.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.definition.index import index_of
from recapture.definition.pipeline import Pipeline
from recapture.formats.event_keys import EventKey, Index
from recapture.model import AsaType, InputColumn, Metadata, MetadataColumn
from recapture.ordering.bloom import Hashes, may_contain
from recapture.ordering.key_values import key_hashes, number_of
from recapture.ordering.task import Task
from recapture.process.wording import counted, of_input
from recapture.query.model import CompiledInput
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.run_files import blob_index
from recapture.run_files.planned import files_of
from recapture.storage import Blob, in_parallel
from recapture.table.delta import OpenTable
from recapture.table.publications import NOTHING_SHOWN, ShownEntry, shown_entries
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

_SEQUENCE_NUMBER = MetadataColumn(Metadata.SEQUENCE_NUMBER)
Value = tuple[EventKey, str]
"""A key, and the value that events must have there."""


class WhyRead(StrEnum):
    """Why a blob is read although its input has an index."""

    MAY_HOLD = "that may hold the key"
    NOT_NOTED = "that no published run has noted"
    OTHER_DEFINITION = "that were noted by another version or for another definition"
    CHANGED = "that changed after they were noted"
    NUMBERS = "whose partition repeats sequence numbers"


@dataclass(frozen=True)
class Note:
    """What is known of a blob."""

    blob: str
    """Name of the blob."""
    etag: str
    may_hold: bool
    """Whether it may hold what is looked for."""
    numbers: tuple[int, int] | None
    """Smallest and largest sequence number; None without any."""
    largest_time: int | None
    """Largest time with which an event reached the disorder rule, in ticks."""
    pushed_by: tuple[int | None, int | None]
    """Sequence number, or else the place, of the first event that had it."""


@dataclass(frozen=True)
class Sought:
    """What a blob must hold to be read: events with all of these hashes and this sequence number."""

    hashes: Hashes
    number: int | None
    times: Slice | None
    """Range of System.Timestamps; None for all."""

    def may_be_in(self, notes: pa.Table) -> list[bool]:
        """Return which blobs may hold such events; `notes` have NOTES_SCHEMA."""
        may = [bool(may_contain(filter_, self.hashes).all()) for filter_ in notes["filter"].to_pylist()]
        within = np.array(may, np.bool_)
        if self.number is not None:
            within &= _overlaps(notes, "number", self.number, self.number)
        if self.times is not None:
            within &= _overlaps(notes, "time", self.times.start + 1, self.times.end)
        return within.tolist()


def _overlaps(notes: pa.Table, what: str, first: int, last: int) -> NDArray[np.bool_]:
    """Return which notes have a range that overlaps with one."""
    firsts, lasts = (notes[f"{end}_{what}"] for end in ("first", "last"))
    known = firsts.is_valid().to_numpy()
    overlaps: NDArray[np.bool_] = (firsts.fill_null(0).to_numpy() <= last) & (lasts.fill_null(0).to_numpy() >= first)
    return overlaps & known


@dataclass(frozen=True)
class Skipped:
    """The blobs of a task that are left out."""

    notes: Mapping[str, Note]
    """Notes on them, by name."""
    because: Mapping[str, WhyRead]
    """Why each of the others is read, by name; none without an index."""

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last sequence numbers of the blobs, each in ascending order."""
        ranges = [note.numbers for note in self.notes.values() if note.numbers is not None]
        firsts, lasts = (np.sort(np.array([range_[end] for range_ in ranges], np.int64)) for end in (0, 1))
        return firsts, lasts

    def have_one_of(self, numbers: NDArray[np.int64]) -> bool:
        """Return whether one of these sequence numbers is in the range of a blob that is left out."""
        firsts, lasts = self._numbers
        begun = np.searchsorted(firsts, numbers, side="right")
        return bool((begun > np.searchsorted(lasts, numbers, side="left")).any())


NOTHING_SKIPPED = Skipped({}, {})


@dataclass
class BlobsRead:
    """Which blobs of an input a search read, and which it left out."""

    index: "ArchiveIndex | None" = None
    """Index of the input; None if it has none."""
    blobs: dict[str, Blob] = field(default_factory=dict)
    """Blobs that were read, by name."""
    skipped: dict[str, Blob] = field(default_factory=dict)
    """Blobs that were never read, because by the index they hold none of the events; by name."""
    because: dict[str, WhyRead] = field(default_factory=dict)
    """Why each blob was read, by name; none without an index that can be used."""

    def add(self, task: Task, skipped: Skipped) -> None:
        """Add the blobs of a task."""
        for pinned in task.blobs:
            name = pinned.blob.name
            if name not in skipped.notes:
                self.blobs[name] = pinned.blob
                self.skipped.pop(name, None)
            elif name not in self.blobs:
                self.skipped[name] = pinned.blob
        self.because |= skipped.because

    @property
    def size(self) -> int:
        """Size of the blobs that were read, in bytes."""
        return sum(blob.size for blob in self.blobs.values())

    @property
    def _skipped_size(self) -> int:
        return sum(blob.size for blob in self.skipped.values())

    @property
    def summary(self) -> dict[str, Any]:
        """What was read, and what the index was good for, in JSON types."""
        read = {"blobs": len(self.blobs), "bytes": self.size}
        if self.index is None:
            return read
        return read | {
            "index": {
                "keys": list(self.index.names),
                "not_used_because": self.index.unused,
                "skipped_blobs": len(self.skipped),
                "skipped_bytes": self._skipped_size,
                "read_because": {
                    why.name.lower(): number for why, number in sorted(Counter(self.because.values()).items())
                },
            }
        }


@dataclass
class ArchiveIndex:
    """The notes on the blobs of an input, for one search."""

    pipeline: Pipeline
    compiled: CompiledInput
    index: Index
    sought: Sought | str
    """What a blob must hold to be read; or why the notes cannot be used."""
    shown: Callable[[], Mapping[str, ShownEntry]]
    """Returns what is published, by slice_start."""
    _notes: dict[str, Note] = field(default_factory=dict)
    _names: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """Names of the files with the notes of each run, by partition."""
    _other: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Whether a run has notes on a partition that say nothing, for those that were read."""

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of the index, as the pipeline file has them."""
        return self.pipeline.section(self.compiled.alias).index or ()

    @property
    def unused(self) -> str | None:
        """Why the notes cannot be used; None if they can."""
        return self.sought if isinstance(self.sought, str) else None

    def skipped(self, task: Task) -> Skipped:
        """Return which blobs of a task need not be read.

        Blobs that arrived at the same time are read, because their events are in the order of their numbers.
        """
        if self.unused is not None:
            return NOTHING_SKIPPED
        runs = [self._run(pinned) for pinned in task.blobs]
        self._read(sorted({run for run in runs if run is not None}), task.partition)
        arrivals = Counter(pinned.arrival for pinned in task.blobs)
        notes, because = dict[str, Note](), dict[str, WhyRead]()
        for pinned, run in zip(task.blobs, runs, strict=True):
            why = self._why(pinned, run)
            if why is None and arrivals[pinned.arrival] == 1:
                notes[pinned.blob.name] = self._notes[pinned.blob.name]
            else:
                because[pinned.blob.name] = why or WhyRead.MAY_HOLD
        return Skipped(notes, because)

    def _why(self, pinned: PinnedBlob, run: str | None) -> WhyRead | None:
        """Return why a blob is read; None if it need not be."""
        note = self._notes.get(pinned.blob.name)
        if note is None:
            is_other = run is not None and self._other[run, pinned.partition]
            return WhyRead.OTHER_DEFINITION if is_other else WhyRead.NOT_NOTED
        if note.etag != pinned.blob.etag:
            return WhyRead.CHANGED
        return WhyRead.MAY_HOLD if note.may_hold else None

    def _run(self, pinned: PinnedBlob) -> str | None:
        """Return the run that is published for the slice in which a blob arrived."""
        length = slice_length(self.pipeline)
        return self.shown().get(ticks.to_text((pinned.arrival - 1) // length * length), NOTHING_SHOWN).run

    def _read(self, runs: Sequence[str], partition: str) -> None:
        container = files_of(self.pipeline, "").container
        new = [run for run in runs if run not in self._names]
        listed = in_parallel(
            lambda run: blob_index.names_by_partition(files_of(self.pipeline, run), self.compiled.alias), new
        )
        self._names |= dict(zip(new, listed, strict=True))
        unread = [run for run in runs if (run, partition) not in self._other]
        names = [(run, name) for run in unread for name in self._names[run].get(partition, ())]
        tables = in_parallel(lambda file: blob_index.read(container, file[1], self.index.digest), names)
        self._other |= {(run, partition): False for run in unread}
        for (run, _), notes in zip(names, tables, strict=True):
            if notes is None:
                self._other[run, partition] = True
            else:
                self._note(notes)

    def _note(self, notes: pa.Table) -> None:
        assert isinstance(self.sought, Sought)
        columns = (notes[name].to_pylist() for name in _COLUMNS)
        rows = zip(self.sought.may_be_in(notes), *columns, strict=True)
        for may_hold, name, etag, first, last, largest, number, place in rows:
            numbers = None if first is None else (first, last)
            self._notes[name] = Note(name, etag, may_hold, numbers, largest, (number, place))


_COLUMNS = (
    *("blob", "etag", "first_number", "last_number"),
    *("largest_time", "pushed_by_number", "pushed_by_place"),
)


def sought_by(
    index: Index, compiled: CompiledInput, values: Sequence[Value], times: Slice | None = None
) -> Sought | str:
    """Return what a search for events with these values looks for in notes, or why it cannot use them.

    The names of keys are compared exactly: of two fields that differ only in case, the one that is spelt alike counts.
    """
    names = [key.name for key in index.keys]
    noted = [(names.index(key.name), value) for key, value in values if key.name in names]
    number = next((_integer(value) for key, value in values if key == _SEQUENCE_NUMBER), None)
    if not noted and number is None and times is None:
        return "no condition names one of its keys, spelt alike"
    if compiled.over and not {names[place] for place, _ in noted} & set(map(_name_of_string, compiled.over)):
        over = ", ".join(column.name.lstrip("@") for column in compiled.over)
        return f"each {over} has a watermark of its own (OVER), and no condition names it as a key of the index"
    hashes = [key_hashes(pa.array([value]), place) for place, value in noted]
    return Sought(np.concatenate([np.empty(0, np.uint64), *hashes]), number, times)


def _name_of_string(key: EventKey) -> str | None:
    """Return the name of a key whose equal values are equal strings; None for others, such as numbers."""
    is_kind = isinstance(key, InputColumn) and key.is_kind
    return key.name if key.type is AsaType.STRING and not is_kind else None


def _integer(value: str) -> int | None:
    number = number_of(value)
    return None if number is None or number % 1 else int(number)


def read_lines(inputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what was read, and what the indexes were good for; `inputs` have an alias and `BlobsRead.summary`."""
    blobs, size = (sum(read[name] for read in inputs) for name in ("blobs", "bytes"))
    yield f"read {counted(blobs, 'blob')} ({size:,} bytes)"
    for read in inputs:
        if index := read.get("index"):
            of = of_input(read["alias"] if len(inputs) > 1 else None)
            name = f"the index on {', '.join(index['keys'])}{of}"
            if index["not_used_because"] is not None:
                yield f"{name} was not used: {index['not_used_because']}"
                continue
            because = ", ".join(f"{number:,} {WhyRead[why.upper()]}" for why, number in index["read_because"].items())
            skipped = f"{counted(index['skipped_blobs'], 'blob')} ({index['skipped_bytes']:,} bytes)"
            yield f"{name}: skipped {skipped}" + (f"; read {because}" if because else "")


def index_for(
    pipeline: Pipeline,
    compiled: CompiledInput,
    values: Sequence[Value],
    shown: Callable[[], Mapping[str, ShownEntry]],
    times: Slice | None = None,
) -> ArchiveIndex | None:
    """Return the index of an input for a search for events with these values; None if the input has none.

    `shown` returns what is published, by slice_start. `times` is the range of their System.Timestamps; None for any.
    """
    index = index_of(pipeline, compiled)
    if index is None:
        return None
    return ArchiveIndex(pipeline, compiled, index, sought_by(index, compiled, values, times), shown)


def shown_slices(pipeline: Pipeline) -> Callable[[], Mapping[str, ShownEntry]]:
    """Return a function that returns what is published, by slice_start. It is read once."""
    return cache(lambda: shown_entries(OpenTable(tables_of(pipeline).publications)))
