"""What a task notes of each blob whose events it judges, so that a search for a key can leave the blob out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.formats.bodies import Projection
from recapture.formats.event_keys import EventKey
from recapture.formats.views import copied
from recapture.model import InputColumn
from recapture.ordering.bloom import Hashes, bloom_filter
from recapture.ordering.chunks import Chunk
from recapture.ordering.key_values import key_hashes
from recapture.time_model.policies import BEFORE_EVERYTHING, Judged

NOTES_SCHEMA = pa.schema(
    [
        ("blob", pa.string()),
        ("etag", pa.string()),
        ("events", pa.int64()),
        ("first_number", pa.int64()),
        ("last_number", pa.int64()),
        ("first_time", pa.int64()),
        ("last_time", pa.int64()),
        ("largest_time", pa.int64()),
        ("pushed_by_number", pa.int64()),
        ("pushed_by_place", pa.int64()),
        ("keys", pa.int64()),
        ("filter", pa.binary()),
    ]
)
"""Schema of notes, a row for each blob; times are ticks.

The range of the sequence numbers is null if the events have none; that of System.Timestamps, if none reaches the query.
`largest_time` is the largest time with which an event reached the disorder rule, and `pushed_by_…` the first event
that had it; null if there is none. `keys` is the number of different values in the Bloom filter.
"""


@dataclass
class _BlobNote:
    """What is known of a blob while its chunks are read."""

    pinned: PinnedBlob
    is_whole: bool = True
    """Whether the note says everything: no event is a duplicate, and the keys of all events can be read."""
    events: int = 0
    numbers: tuple[int, int] | None = None
    times: tuple[int, int] | None = None
    largest: int | None = None
    pushed_by: tuple[int | None, int | None] = (None, None)
    hashes: list[Hashes] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        """Return the row of NOTES_SCHEMA."""
        hashes = np.unique(np.concatenate([np.empty(0, np.uint64), *self.hashes]))
        row: dict[str, object] = {"blob": self.pinned.blob.name, "etag": self.pinned.blob.etag, "events": self.events}
        row["first_number"], row["last_number"] = self.numbers or (None, None)
        row["first_time"], row["last_time"] = self.times or (None, None)
        row["largest_time"] = self.largest
        row["pushed_by_number"], row["pushed_by_place"] = self.pushed_by
        return row | {"keys": len(hashes), "filter": bloom_filter(hashes)}


@dataclass
class BlobNotes:
    """The notes of the blobs of a task, chunk by chunk. Nothing is noted of a blob that a search always has to read."""

    keys: Sequence[EventKey]
    _open: dict[str, _BlobNote] = field(default_factory=dict)

    @property
    def fields(self) -> list[InputColumn]:
        """Fields of the body whose strings are noted."""
        return [key for key in self.keys if isinstance(key, InputColumn)]

    def observe(
        self, read: Chunk, duplicates: NDArray[np.bool_], chunk: Chunk, judged: Judged
    ) -> Iterator[tuple[PinnedBlob, dict[str, object]]]:
        """Note the next chunk as it was `read`, and its events after duplicates; yield blobs that are read to the end.

        Each comes with its row of NOTES_SCHEMA.
        """
        notes = [self._open.setdefault(pinned.blob.name, _BlobNote(pinned)) for pinned in read.blobs]
        damaged = {blob.pinned.blob.name for blob in read.damaged}
        is_partitioned = read.sequence_partition is not None
        for note in notes:
            note.is_whole &= note.pinned.blob.name not in damaged and not is_partitioned
        for blob in np.unique(read.blob_index[duplicates]).tolist():
            notes[blob].is_whole = False
        if read.numbered:
            _note_numbers(notes, read)
        if len(chunk):
            strings, unreadable = self._strings(chunk)
            for blob in np.unique(chunk.blob_index[unreadable]).tolist():
                notes[blob].is_whole = False
            for number, values in enumerate(strings):
                _note_keys(notes, chunk, values, number)
            _note_times(notes, chunk, judged)
        if read.is_last:
            self._open = {}
            yield from ((note.pinned, note.row()) for note in notes if note.is_whole)

    def _strings(self, chunk: Chunk) -> tuple[list[pa.Array], NDArray[np.intp]]:
        """Return the values of each key, and the events whose bodies cannot be read.

        The fields are read by themselves, as a search reads them: the query may read them with other types.
        """
        fields = self.fields
        if not fields:
            return [chunk.metadata(key) for key in self.keys if not isinstance(key, InputColumn)], np.empty(0, np.intp)
        bodies = chunk.decoded(Projection(timestamp_fields=fields))
        values = [bodies.strings[key] if isinstance(key, InputColumn) else chunk.metadata(key) for key in self.keys]
        return values, np.flatnonzero(pc.is_valid(bodies.malformed).to_numpy(zero_copy_only=False))


def notes_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows of notes, with NOTES_SCHEMA."""
    return pa.Table.from_pylist([*rows], NOTES_SCHEMA)


def _note_numbers(notes: Sequence[_BlobNote], chunk: Chunk) -> None:
    for note, range_ in zip(notes, _ranges(len(notes), chunk.blob_index, chunk.number), strict=True):
        note.numbers = _joined(note.numbers, range_)


def _note_keys(notes: Sequence[_BlobNote], chunk: Chunk, values: pa.Array, number: int) -> None:
    """Note the hashes of the values of a key, those of each blob once."""
    encoded = copied(values).dictionary_encode()
    if not len(encoded.dictionary):
        return
    hashes = key_hashes(encoded.dictionary, number)
    rows = np.flatnonzero(pc.is_valid(encoded).to_numpy(zero_copy_only=False))
    codes = encoded.indices.fill_null(0).to_numpy()[rows]
    pairs = _distinct(chunk.blob_index[rows] * len(hashes) + codes, len(notes) * len(hashes))
    bounds = np.searchsorted(pairs, np.arange(len(notes) + 1) * len(hashes))
    for note, begin, end in zip(notes, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        note.hashes.append(hashes[pairs[begin:end] % len(hashes)])


def _distinct(numbers: NDArray[np.int64], below: int) -> NDArray[np.int64]:
    """Return the distinct numbers in order; all are less than `below`. If that is not large, nothing is sorted."""
    if below > 64 * len(numbers):
        return np.unique(numbers)
    is_there = np.zeros(below, np.bool_)
    is_there[numbers] = True
    return np.flatnonzero(is_there)


def _note_times(notes: Sequence[_BlobNote], chunk: Chunk, judged: Judged) -> None:
    counts = np.bincount(chunk.blob_index, minlength=len(notes))
    for note, count in zip(notes, counts.tolist(), strict=True):
        note.events += count
    processed = np.flatnonzero(judged.processed)
    blobs, times = chunk.blob_index[processed], judged.system_timestamp[processed]
    for note, range_ in zip(notes, _ranges(len(notes), blobs, times), strict=True):
        note.times = _joined(note.times, range_)
    _note_largest(notes, chunk, judged)


def _note_largest(notes: Sequence[_BlobNote], chunk: Chunk, judged: Judged) -> None:
    """Note the largest time with which an event of each blob reached the disorder rule, and the first such event."""
    rows = np.flatnonzero(judged.largest_time != BEFORE_EVERYTHING)
    times, blobs = judged.largest_time[rows] - judged.behind[rows], chunk.blob_index[rows]
    largest = np.full(len(notes), BEFORE_EVERYTHING)
    np.maximum.at(largest, blobs, times)
    leading = np.flatnonzero(times == largest[blobs])
    which, firsts = np.unique(blobs[leading], return_index=True)
    places = [column.to_pylist() for column in chunk.numbers_and_places(rows[leading[firsts]])]
    for blob, number, place in zip(which.tolist(), *places, strict=True):
        note, time = notes[blob], int(largest[blob])
        if note.largest is None or time > note.largest:
            note.largest, note.pushed_by = time, (number, place)


def _ranges(count: int, blob_index: NDArray[np.int64], values: NDArray[np.int64]) -> Iterator[tuple[int, int] | None]:
    """Yield the smallest and the largest value of each of `count` blobs; None for a blob without values."""
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, blob_index, values)
    np.maximum.at(last, blob_index, values)
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        yield (low, high) if low <= high else None


def _joined(left: tuple[int, int] | None, right: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the range that covers both; None has no values."""
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])
