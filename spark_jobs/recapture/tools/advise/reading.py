"""Read what arrived at one input in a range, once, and count it for all tolerances and keys.

Each blob is decoded once. Of a chunk, the times, the arrivals and the numbers of the keys are counted, and dropped
before the next chunk. So the memory depends on the numbers of tolerances, keys and distinct values of the keys, and on
the size of a chunk, but not on the number of events.
"""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.definitions import InputDefinition
from recapture.archive.pinning import (
    PinnedBlob,
    PlannedSlice,
    blobs_that_may_hold,
    in_order,
    is_complete,
    no_partitions,
    survey,
)
from recapture.formats.bodies import Bodies, Projection
from recapture.formats.events import UNKNOWN, Reader
from recapture.formats.sections import Input
from recapture.model import InputColumn, Metadata, MetadataColumn
from recapture.ordering.application_time import times_of
from recapture.ordering.chunk_judge import in_one, observe_numbers, parse_bodies, scope_columns
from recapture.ordering.chunks import Chunk, chunks
from recapture.ordering.sequence_partitions import PartitionedNumbers
from recapture.ordering.task import Task
from recapture.process.wording import counted
from recapture.query.model import CompiledInput
from recapture.storage import Archive, open_container
from recapture.time_model.key_codes import KeyCodes
from recapture.time_model.policies import Policies
from recapture.time_model.slices import DUPLICATE_HORIZON, Arrivals, Slice
from recapture.tools.advise.clocks import Clocks, WrongClock
from recapture.tools.advise.counting import Counter, EventsToJudge, ToleranceCounts, first_judged
from recapture.tools.advise.keys import Key, Keys, choose_keys, names_of, numbered
from recapture.tools.advise.modified import Disagreement, Modifications
from recapture.tools.advise.tolerances import Tolerances, with_late

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputToRead:
    """An input with TIMESTAMP BY, and what is compared on it."""

    compiled: CompiledInput
    section: Input
    definition: InputDefinition
    policies: Policies
    reader: Reader
    tolerances: Tolerances
    slices: Sequence[Slice]
    """Neighbouring slices; what arrived in them is counted."""

    @property
    def range(self) -> Slice:
        return Slice(self.slices[0].start, self.slices[-1].end)

    @property
    def has_enqueued_times(self) -> bool:
        """Whether the events have the time when the hub took them."""
        return Metadata.EVENT_ENQUEUED in self.section.metadata.known

    @property
    def arrivals(self) -> Arrivals:
        """Arrivals that are read: those of the range, and those before it that its verdicts need."""
        settings = (with_late(self.policies, late) for late in self.tolerances.late)
        first = min(first_judged(policies, self.slices[0], self.compiled.look_back) for policies in settings)
        return Arrivals(first - DUPLICATE_HORIZON, self.range.end)


@dataclass(frozen=True)
class PartitionCounts:
    """What arrived from a partition in the range."""

    duplicates: int
    by_key: dict[Key, ToleranceCounts]


@dataclass
class InputCounts:
    """What arrived at an input in the range."""

    source: InputToRead
    blobs: int
    """Blobs that were read."""
    keys: Keys = field(init=False)
    """Keys that are compared; the first events decide."""
    partitions: dict[str, PartitionCounts] = field(default_factory=dict)
    """Counts of the partitions from which events arrived, by name."""
    largest_disorder: dict[Key, list[int]] = field(default_factory=dict)
    """Largest disorder of an event in ticks, by key and late tolerance."""
    largest_lateness: int = 0
    """Largest lateness of an event, in ticks."""
    devices: int = 0
    """Number of devices whose clocks were judged."""
    wrong_clocks: list[WrongClock] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """Names of damaged blobs, whose events are not counted."""
    incomplete: list[str] = field(default_factory=list)
    """Partitions from which more may still arrive in the range."""

    @property
    def events(self) -> int:
        """Events that arrived, duplicates included."""
        return sum(
            counts.duplicates + int(counts.by_key[self.keys.own].verdicts[0, 0].sum())
            for counts in self.partitions.values()
        )

    def total(self, key: Key) -> ToleranceCounts:
        """Return the counts of all partitions. There must be one."""
        first, *others = (counts.by_key[key] for counts in self.partitions.values())
        return sum(others, first)


def read_counts(source: InputToRead, now: datetime) -> InputCounts | None:
    """Return what arrived at an input; None if no event did.

    Raise RunError if the input has no partitions, or if a blob changed since it was listed; raise DamagedBlobError for
    a damaged blob, unless the input quarantines those.
    """
    container = open_container(source.section.container)
    arrivals = source.arrivals
    listing, partitions = survey(source.definition, container, [arrivals], now)
    if not partitions:
        raise no_partitions(source.definition.names, container)
    ordered = itertools.groupby(in_order(listing.blobs, source.definition), key=lambda pinned: pinned.partition)
    blobs = {partition: list(blobs_that_may_hold(list(group), arrivals)) for partition, group in ordered}
    counts = InputCounts(source, blobs=sum(map(len, blobs.values())))
    reading = _Reading(counts, container)
    for partition in sorted(blobs, key=lambda name: -sum(pinned.blob.size for pinned in blobs[name])):
        reading.read(partition, blobs[partition])
    _LOG.info("advise, input %s: read %s", source.compiled.alias, counted(counts.blobs, "blob"))
    if not reading.codes or not counts.partitions:
        return None
    counts.partitions = {name: counts.partitions[name] for name in partitions if name in counts.partitions}
    counts.disagreements.sort(key=lambda disagreement: partitions.index(disagreement.partition))
    written = replace(source.definition, policies=None)
    counts.incomplete = [
        name for name in partitions if not is_complete(written, source.range, listing.newest.get(name), now)
    ]
    if counts.keys.devices.columns:
        delay = 0 if source.has_enqueued_times else source.section.interval_seconds
        counts.devices, counts.wrong_clocks = reading.clocks.wrong(delay)
    return counts


class _Reading:
    """Reads the partitions of an input one after the other, and adds what arrived to `counts`."""

    def __init__(self, counts: InputCounts, container: Archive) -> None:
        self.counts = counts
        self.codes: dict[Key, KeyCodes] = {}
        """Numbers of the scopes by key; empty before the first events."""
        self.clocks = Clocks()
        self._container = container
        compiled = counts.source.compiled
        over = [column for column in compiled.over if isinstance(column, MetadataColumn)]
        self._without_over = replace(compiled, over=(), metadata=tuple(dict.fromkeys([*compiled.metadata, *over])))

    def read(self, partition: str, blobs: Sequence[PinnedBlob]) -> None:
        """Read and count the blobs of a partition, given in arrival order."""
        counts, source = self.counts, self.counts.source
        planned = PlannedSlice(source.range, source.arrivals, "", ())
        task = Task(source.compiled.alias, partition, (planned,), tuple(blobs))
        quarantine_damaged = source.section.on_damaged_blob == "quarantine"
        numbers, modifications = PartitionedNumbers(), Modifications(partition, source.section.interval_seconds)
        counters: dict[Key, Counter] = {}
        first_blob = duplicates_in_range = 0
        for chunk in chunks(task, self._container, self._without_over, source.reader, quarantine_damaged):
            duplicates, _ = observe_numbers(chunk, numbers)
            duplicates_in_range += int(source.range.contains(chunk.arrival[duplicates]).sum())
            if chunk.is_judged and len(chunk):
                if not self.codes:
                    compiled = replace(source.compiled, metadata=self._without_over.metadata)
                    counts.keys = choose_keys(compiled, chunk.in_events()[0])
                    self.codes = {key: KeyCodes() for key in counts.keys.all}
                if not counters:
                    judged = source.policies, source.tolerances, source.slices, source.compiled.look_back, blobs
                    counters = {key: Counter(*judged) for key in self.codes}
                self._count(chunk.without(duplicates), first_blob, counters, modifications)
            if chunk.is_last:
                counts.damaged += [blob.pinned.blob.name for blob in chunk.damaged]
                first_blob += len(chunk.blobs)
            del chunk  # it keeps its blob in memory
        by_key = {key: counter.counts for key, counter in counters.items()}
        if duplicates_in_range or any(key_counts.verdicts.any() for key_counts in by_key.values()):
            counts.partitions[partition] = PartitionCounts(duplicates_in_range, by_key)
        for key, counter in counters.items():
            before = counts.largest_disorder.get(key, counter.largest_disorder)
            counts.largest_disorder[key] = list(map(max, before, counter.largest_disorder))
        if modifications.disagreement is not None:
            counts.disagreements.append(modifications.disagreement)

    def _count(self, chunk: Chunk, first_blob: int, counters: dict[Key, Counter], modifications: Modifications) -> None:
        """Count the events of a chunk without duplicates; `first_blob` is the index of its first blob."""
        counts, source = self.counts, self.counts.source
        timestamp_by = source.compiled.timestamp_by
        assert timestamp_by is not None
        chunk, parsed = parse_bodies(chunk, self._without_over)
        times = times_of(timestamp_by, parsed, chunk.metadata)
        columns = _Columns(chunk, parsed)
        in_range = source.range.contains(chunk.arrival)
        for key, counter in counters.items():
            decoded = columns.decoded(key)
            valid = times.valid & decoded
            scope = in_one(scope_columns(chunk, {column.name: columns.values(column) for column in key.columns}))
            numbers = None if scope is None else numbered(self.codes[key], scope)
            blob = first_blob + chunk.blob_index
            counter.add(EventsToJudge(blob, chunk.arrival, times.ticks, valid, decoded, numbers))
            if key == counts.keys.devices and key.columns:
                names = names_of([columns.values(column) for column in key.columns])
                rows = np.flatnonzero(valid & in_range & pc.is_valid(names).to_numpy(zero_copy_only=False))
                hub = np.where(chunk.enqueued == UNKNOWN, chunk.arrival, chunk.enqueued)
                dropped = _are_dropped(source.policies, times.ticks[rows] - chunk.arrival[rows])
                self.clocks.add(names.take(pa.array(rows)), times.ticks[rows], hub[rows], dropped)
        arrived = np.flatnonzero(times.valid & columns.decoded(Key(())) & in_range)
        if len(arrived):
            lateness = int((chunk.arrival[arrived] - times.ticks[arrived]).max())
            counts.largest_lateness = max(counts.largest_lateness, lateness)
        if source.has_enqueued_times and source.section.interval_seconds:
            modifications.add(chunk, in_range)


def _are_dropped(policies: Policies, ahead: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which events the early window drops, by how far their times are ahead of their arrivals in ticks."""
    if policies.early_window is None or policies.adjust_early:
        return np.zeros(len(ahead), bool)
    return ahead > policies.early_window


@dataclass(frozen=True)
class _Columns:
    """Columns of the keys in one chunk. A field that the query does not read is parsed separately, once.

    So a value that the field cannot hold makes an event malformed only for the keys that name the field.
    """

    chunk: Chunk
    parsed: Bodies
    more: dict[InputColumn, Bodies] = field(default_factory=dict)
    """Fields that the query does not read."""

    def values(self, column: InputColumn | MetadataColumn) -> pa.Array:
        """Return the values of a column."""
        if isinstance(column, MetadataColumn):
            return self.chunk.metadata(column)
        return self._bodies(column).columns[column]

    def decoded(self, key: Key) -> NDArray[np.bool_]:
        """Return which events can be read if the query names this key."""
        decoded = pc.is_null(self.parsed.malformed)
        for column in key.columns:
            if isinstance(column, InputColumn):
                decoded = pc.and_(decoded, pc.is_null(self._bodies(column).malformed))
        return decoded.to_numpy(zero_copy_only=False)

    def _bodies(self, column: InputColumn) -> Bodies:
        if column in self.parsed.columns:
            return self.parsed
        if column not in self.more:
            self.more[column] = self.chunk.decoded(Projection([column]))
        return self.more[column]
