"""A sample of the events that arrived in a range: spread over its time and its partitions, and bounded."""

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.pinning import PinnedBlob
from recapture.formats import messages
from recapture.formats.bodies import BodyDecoder, Projection
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import Events, Reader
from recapture.formats.fields import (
    Field,
    count_keys,
    count_objects,
    count_values,
    fields_of,
    most_frequent,
    records_in,
)
from recapture.formats.messages import Messages
from recapture.formats.views import copies
from recapture.ordering.chunks import Downloads
from recapture.ordering.decoding import BlobDecoder
from recapture.storage import Archive

MAX_EVENTS = 50_000
"""Number of events after which no more blobs are read."""
MIN_EVENTS_PER_BLOB = 1000
"""Number of events that are taken of a blob, if it has as many, however many blobs are read."""
MAX_BLOBS = 500
"""Largest number of blobs that are read; many of them may be empty."""
BATCH_BYTES = 64 * 1024 * 1024
"""Size of the bodies that are counted together, in bytes."""
MAX_BYTES = 256 * 1024 * 1024
"""Size of the blobs that were read, in bytes, after which no more are."""
MAX_FIELDS = 2000
"""Largest number of fields: of an event that is looked at, and of those that are declared."""
MAX_VALUES = 2_000_000
"""Number of values of fields after which no more events are counted."""


@dataclass
class Sample:
    """What was read of a range."""

    decoder: BodyDecoder
    records: Sequence[tuple[str, ...]] = ()
    """Paths of the records whose properties are counted, too."""
    messages: Messages | None = None
    """What takes events out of the bodies; None if each is the body of one event."""
    bodies: list[pa.Array] = field(default_factory=list)
    """Bodies that are not counted yet (binary)."""
    counts: dict[tuple[str, ...], pa.Table] = field(default_factory=dict)
    """Rows of `count_values` by the path of the record whose properties are counted; () for the fields of bodies."""
    blobs: int = 0
    """Number of blobs that were read, damaged ones included."""
    size: int = 0
    """Size of these blobs in bytes."""
    events: int = 0
    """Number of events that were read."""
    objects: int = 0
    """Number of these events whose body is a JSON object."""
    values: int = 0
    """Number of values in these events, of fields and of properties of the records."""
    wide: int = 0
    """Number of events that are left out, as they have more than MAX_FIELDS fields."""
    rare: str | None = None
    """Name of a field that is left out, as MAX_FIELDS others are more frequent; None if there is none."""
    damaged: list[str] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached."""
        is_full = self.events >= MAX_EVENTS or self.blobs >= MAX_BLOBS or self.size >= MAX_BYTES
        return is_full or self.values >= MAX_VALUES

    def add(self, events: Events, max_events: int) -> None:
        """Add at most `max_events` events of a blob, evenly spaced."""
        count = len(events.body)
        chosen = np.linspace(0, count - 1, min(count, max_events)).astype(np.int64)
        bodies = copies(one_array(events.body), chosen)
        if events.unreadable is not None:
            bodies = bodies.filter(pc.is_null(events.unreadable.take(pa.array(chosen))))
        self.events += len(chosen)
        self.bodies.append(bodies)
        if sum(array.nbytes for array in self.bodies) > BATCH_BYTES:
            self.count_pending()

    def count_pending(self) -> None:
        """Count the fields of the bodies that have not been counted yet, and drop these bodies."""
        if self.bodies:
            bodies = self._bounded(self._events(pa.concat_arrays(self.bodies)))
            self.objects += count_objects(bodies)
            self._count(bodies, ())
            for record in self.records:
                self._count(records_in(bodies, record), record)
            self.bodies.clear()

    def _events(self, bodies: pa.Array) -> pa.Array:
        """Return the bodies of the events of messages as JSON."""
        if self.messages is not None:
            events, _ = messages.read(self.messages, self.decoder, bodies, Projection())
            if events is not None:
                self.events += len(events.body) - len(bodies)
                bodies = events.body if events.unreadable is None else events.body.filter(events.unreadable.is_null())
        return self.decoder.as_json(bodies)

    def _count(self, bodies: pa.Array, record: tuple[str, ...]) -> None:
        """Add the fields of bodies, or of records that were taken out of them, to those that are counted."""
        counts = count_values(bodies, self.decoder.only_strings)
        if record in self.counts:
            counts = pa.concat_tables([self.counts[record], counts])
        self.counts[record], rare = most_frequent(counts, MAX_FIELDS)
        self.rare = self.rare or rare

    def _bounded(self, bodies: pa.Array) -> pa.Array:
        """Return the bodies without those that have too many fields, and at most MAX_VALUES values in all."""
        parts = [bodies, *(records_in(bodies, record) for record in self.records)]
        keys = [count_keys(part).to_numpy() for part in parts]
        is_wide = np.max(keys, axis=0) > MAX_FIELDS
        values = np.where(is_wide, 0, np.sum(keys, axis=0))
        is_counted = ~is_wide & (self.values + np.cumsum(values) <= MAX_VALUES)
        self.wide += int(is_wide.sum())
        self.values += int(values[is_counted].sum()) if is_counted.any() else 0
        self.events -= len(bodies) - int(is_counted.sum())
        return bodies.filter(pa.array(is_counted))

    @property
    def fields(self) -> list[Field]:
        """Fields of the bodies, in order of first appearance; then the properties of the records."""
        return [field for record, counts in self.counts.items() for field in fields_of([counts], record)]


def read_sample(
    container: Archive, reader: Reader, blobs: Sequence[PinnedBlob], records: Sequence[tuple[str, ...]] = ()
) -> Sample:
    """Read a sample of blobs, with the properties of `records`. Raise RunError if one changed since it was listed."""
    sample = Sample(reader.decoder, records, reader.messages)
    decoder = BlobDecoder(reader, (), quarantine_damaged=True)
    ordered = list(itertools.islice(spread(blobs), MAX_BLOBS))
    max_events = _max_events_per_blob(ordered)
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, ordered)
        for pinned in ordered:
            decoded = decoder.decode(pinned, downloads.take())
            sample.blobs += 1
            sample.size += pinned.blob.size
            if decoded.damage is not None:
                sample.damaged.append(pinned.blob.name)
            sample.add(decoded.events, min(max_events, MAX_EVENTS - sample.events))
            if sample.is_full:
                break
    sample.count_pending()
    return sample


def spread(blobs: Sequence[PinnedBlob]) -> Iterator[PinnedBlob]:
    """Yield the blobs so that the first ones are spread over all partitions and times; always in the same order."""
    random = Random(0)
    by_partition: dict[str, list[PinnedBlob]] = {}
    for pinned in blobs:
        by_partition.setdefault(pinned.partition, []).append(pinned)
    for partition_blobs in by_partition.values():
        random.shuffle(partition_blobs)
    for turn in itertools.zip_longest(*by_partition.values()):
        yield from (pinned for pinned in turn if pinned is not None)


def _max_events_per_blob(blobs: Sequence[PinnedBlob]) -> int:
    """Return how many events to take of one blob, so that the sample has many blobs and nearly MAX_EVENTS."""
    mean_size = sum(pinned.blob.size for pinned in blobs) // max(len(blobs), 1) + 1
    read = min(len(blobs), MAX_BYTES // mean_size)
    return max(MAX_EVENTS // max(read, 1), MIN_EVENTS_PER_BLOB)
