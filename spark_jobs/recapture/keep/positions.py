"""Where the published slices end in each partition: the last event that arrived in them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recapture.archive.manifest import Manifest
from recapture.archive.number_chain import Chain, SliceNumbers
from recapture.archive.pinning import blobs_that_may_hold
from recapture.errors import RunError
from recapture.formats.events import ENQUEUED, Reader
from recapture.model import Metadata, MetadataColumn
from recapture.storage import Archive
from recapture.table.publications import Publications
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import ArrivedNumbers
from recapture.time_model.slices import Arrivals, Slice

MOST_SLICES = 7 * 24
"""Largest number of published slices in which the last event of a partition is looked for."""
_READ_TOGETHER = 24
"""Number of slices whose entries are read at once."""
_OFFSET = MetadataColumn(Metadata.OFFSET)

Arrived = Mapping[str, tuple[ArrivedNumbers, ...]]
"""Sequence numbers that arrived in a slice, by partition."""


@dataclass(frozen=True)
class Position:
    """The end of the published slices in a partition."""

    partition: str
    sequence_number: int | None
    """Highest sequence number that arrived in the published slices; None if no event did in those looked at."""
    slice: Slice | None
    """Slice in which it arrived."""
    missing: tuple[tuple[int, int], ...]
    """First and last number of each range below it that did not arrive in these slices.

    Such events arrive later than the slices end, or are lost.
    """


@dataclass(frozen=True)
class PlacedEvent:
    """The event at a position, as its blob has it."""

    offset: str
    enqueued: int
    """Enqueued time in ticks."""
    blob: str


def arrived_in(
    publications: Publications, slices: Sequence[Slice], alias: str, source: str
) -> list[tuple[Slice, Arrived]]:
    """Return what arrived of an input in the newest of these published slices, in order of time.

    `slices` are in order of time. As many are read as it takes to find an event in every partition, and at most
    MOST_SLICES. Slices that read another source, or that an old version published, end the search.
    """
    newest_first: list[tuple[Slice, Arrived]] = []
    for number in range(0, min(len(slices), MOST_SLICES), _READ_TOGETHER):
        batch = slices[::-1][number : min(number + _READ_TOGETHER, MOST_SLICES)]
        entries = publications.entries([ticks.to_text(slice_.start) for slice_ in batch])
        for slice_ in batch:
            current = entries[ticks.to_text(slice_.start)].current
            read = None if current is None or current.inputs is None else current.inputs.get(alias)
            if read is None or read.source != source:
                return newest_first[::-1]
            newest_first.append((slice_, read.numbers))
        partitions = {name for _, arrived in newest_first for name in arrived}
        if all(any(arrived.get(name) for _, arrived in newest_first) for name in partitions):
            break
    return newest_first[::-1]


def positions(slices: Sequence[tuple[Slice, Arrived]]) -> Iterator[Position]:
    """Yield the position of each partition, by its number; `slices` are in order of time."""
    names = {name for _, arrived in slices for name in arrived}
    for name in sorted(names, key=lambda name: (len(name), name)):
        chain = Chain.of(
            SliceNumbers.of(slice_, numbers) for slice_, arrived in slices for numbers in arrived.get(name, ())
        )
        if not chain.placed:
            yield Position(name, None, None, ())
            continue
        missing: list[tuple[int, int]] = []
        for jump in chain.jumps:
            if jump.recreated:
                missing = []  # of a hub that is gone
            else:
                missing.append((jump.before.numbers.last + 1, jump.after.numbers.first - 1))
        last = chain.placed[-1]
        yield Position(name, last.numbers.last, last.last_slice, tuple(missing))


def event_at(
    position: Position, manifest: Manifest, alias: str, container: Archive, reader: Reader
) -> PlacedEvent | None:
    """Return the event at a position, read from the blobs of the run that computed its slice; None if none has it.

    Raise RunError if a blob was changed or deleted since, or is damaged.
    """
    assert position.slice is not None
    arrivals = Arrivals(position.slice.start + 1, position.slice.end)
    own = [pinned for pinned in manifest.input(alias).blobs if pinned.partition == position.partition]
    for pinned in reversed(blobs_that_may_hold(own, arrivals)):
        events = reader.read(pinned, container.read(pinned.blob), (ENQUEUED, _OFFSET))
        (rows,) = np.nonzero(events.number == position.sequence_number)
        if len(rows):
            offset, enqueued = (events.metadata[column][int(rows[-1])].as_py() for column in (_OFFSET, ENQUEUED))
            return PlacedEvent(offset, enqueued, pinned.blob.name)
    return None


def find_event(
    position: Position, manifest: Manifest | None, alias: str, container: Archive, reader: Reader
) -> PlacedEvent | str:
    """Return the event at a position, or why it cannot be read."""
    if manifest is None:
        return "the manifest of its run cannot be read"
    try:
        return event_at(position, manifest, alias, container, reader) or "no blob that its run read has it"
    except RunError as error:
        return str(error)
