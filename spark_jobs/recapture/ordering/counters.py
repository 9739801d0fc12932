"""What a task counts in one slice of its partition.

A metric is declared in `recapture.time_model.metrics`, and counted by one of the methods of `Counters`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.pinning import PlannedSlice, blobs_that_may_hold
from recapture.formats.events import UNNUMBERED
from recapture.ordering import quarantine
from recapture.ordering.arrived_numbers import NumberCollector
from recapture.ordering.chunks import Chunk, RowIndex
from recapture.ordering.key_counts import KeyCounts
from recapture.ordering.profile import Profile
from recapture.ordering.sequence import AscendingEvents, Gaps
from recapture.ordering.sequence_partitions import ranges_of
from recapture.ordering.tallies import tally
from recapture.process.compilation import frozen
from recapture.time_model import ticks
from recapture.time_model.metrics import MAX_GAPS, WATERMARK, WATERMARK_DELAY, Counts
from recapture.time_model.partition_metrics import EventAhead, NumberGaps, PartitionMetrics
from recapture.time_model.policies import IS_PROCESSED, Judged, Policies
from recapture.time_model.verdicts import Verdict

_T = TypeVar("_T", int, "FurthestAhead")


@dataclass(frozen=True, order=True)
class FurthestAhead:
    """The processed event whose System.Timestamp is furthest ahead of its arrival: it pushed the watermark."""

    ticks: int
    """System.Timestamp minus arrival, in ticks."""
    number: int
    """Sequence number of the event; if it has none, its index in its blob, from 0."""
    blob: str
    """Name of the event's blob."""
    numbered: bool
    """Whether `number` is a sequence number."""

    @classmethod
    def of(cls, chunk: Chunk, rows: NDArray[np.intp], times: NDArray[np.int64]) -> "FurthestAhead":
        """Return the event in `rows` that is furthest ahead; if several are, the one with the highest number.

        `times` are the System.Timestamps of these events.
        """
        lead = times - chunk.arrival[rows]
        tied = rows[lead == lead.max()]
        number = int(chunk.number[tied].max())
        blobs = np.unique(chunk.blob_index[tied[chunk.number[tied] == number]])
        name = max(chunk.blobs[index].blob.name for index in blobs)
        return cls(int(lead.max()), number, name, chunk.numbered)

    def event(self) -> EventAhead:
        """Return the event as the metrics have it."""
        number, place = (self.number, None) if self.numbered else (None, self.number)
        return EventAhead(self.ticks / ticks.TICKS_PER_SECOND, self.blob, number, place)


@dataclass
class Counters(Counts):
    """Counts of what arrived in a slice, and what else its metrics report. Every arrival is counted in one slice."""

    input: str
    partition: str
    planned_slice: PlannedSlice
    keys: KeyCounts
    """Counts of the events that arrived, by key."""
    whole: bool = True
    """Whether none of the blobs that are read for the slice is damaged, including those that arrived in other slices.

    Whether all blobs have been written is another question: `PlannedSlice.incomplete_partitions` answers it.
    """
    without_block: list[str] = field(default_factory=list)
    """Names of the blobs that are Avro files with a header and no block."""
    open_gaps: list[Gaps] = field(default_factory=list)
    """Sequence numbers that the arrivals of the slice skipped, and that did not arrive later in what is read for it."""
    arrived_numbers: NumberCollector = field(default_factory=NumberCollector)
    """Sequence numbers of the events that arrived, without duplicates."""
    furthest_ahead: FurthestAhead | None = None
    """Event that is furthest ahead of its arrival; None if no event was processed."""
    newest_arrival: int | None = None
    """Largest arrival of an event, in ticks."""
    largest_time: int | None = None
    """Largest System.Timestamp of the events that arrived, in ticks."""
    quarantine: list[pa.RecordBatch] = field(default_factory=list)
    not_on_time: list[pa.RecordBatch] = field(default_factory=list)
    """Rows for the table of verdicts, with `verdict_rows.COLLECTED_SCHEMA`; none if the pipeline has no such table."""
    notes: list[Mapping[str, object]] = field(default_factory=list)
    """Rows of `blob_notes.NOTES_SCHEMA` on the blobs that arrived; none without an index."""
    profile: Profile = field(init=False)
    """Histograms and a sample of the events; empty without TIMESTAMP BY, as no policy applies."""

    def __post_init__(self) -> None:
        self.profile = Profile(self.planned_slice.slice)

    def count_blobs(self, chunk: Chunk) -> None:
        """Count the blobs that arrived, and quarantine those that are damaged, with their last chunk."""
        if not chunk.is_last:
            return
        slice_ = self.planned_slice.slice
        self.blobs += int(slice_.contains(chunk.arrival_by_blob).sum())
        self.without_block += [
            pinned.blob.name for pinned in chunk.without_block if slice_.start < pinned.arrival <= slice_.end
        ]
        for blob in chunk.damaged:
            self.whole &= not blobs_that_may_hold([blob.pinned], self.planned_slice.arrivals)
            if slice_.start < blob.pinned.arrival <= slice_.end:
                self.damaged += 1
                self.quarantine.append(quarantine.blob_row(blob))

    def count_numbers(self, chunk: Chunk, duplicates: NDArray[np.bool_], groups: Sequence[AscendingEvents]) -> None:
        """Count the duplicates that arrived, and the gaps before arrivals. Close gaps that later arrivals fill.

        Collect the numbers that arrived.
        """
        if chunk.numbered:
            rows = chunk.arrived_in(self.planned_slice.slice)
            if duplicates[rows].any():
                indices = np.arange(len(chunk))[rows]
                repeated, rows = indices[duplicates[indices]], indices[~duplicates[indices]]
                self.duplicates += len(repeated)
                self._count_input(chunk, repeated)
            self._collect_numbers(chunk, rows)
        for group in groups:
            if group.may_fill_gaps:
                self._fill_gaps(chunk, group)
            if group.gaps is not None:
                gaps = group.gaps.select(self.planned_slice.slice.contains(chunk.arrival[group.overtaking]))
                self.open_gaps += [gaps] if len(gaps) else []
        self.gaps = sum(map(len, self.open_gaps))

    def _count_input(self, chunk: Chunk, rows: RowIndex) -> None:
        """Count what arrived, whether it is a duplicate or not."""
        sizes = chunk.body_sizes[rows]
        self.events += len(sizes)
        self.event_bytes += int(sizes.sum())

    def _collect_numbers(self, chunk: Chunk, rows: RowIndex) -> None:
        number, enqueued = chunk.continuous_number[rows], chunk.enqueued[rows]
        if chunk.sequence_partition is None:
            self.arrived_numbers.add(None, number, enqueued)
            return
        partitions = chunk.sequence_partition[rows]
        for partition in np.unique(partitions[partitions != UNNUMBERED]).tolist():
            of_partition = partitions == partition
            self.arrived_numbers.add(partition, number[of_partition], enqueued[of_partition])

    def _fill_gaps(self, chunk: Chunk, group: AscendingEvents) -> None:
        last = self.planned_slice.arrivals.last
        rows = group.rows if last is None else group.rows[chunk.arrival[group.rows] <= last]
        remaining = [
            gaps.without(chunk.continuous_number[rows], chunk.enqueued[rows])
            if gaps.sequence_partition == group.sequence_partition
            else gaps
            for gaps in self.open_gaps
        ]
        self.open_gaps = [gaps for gaps in remaining if len(gaps)]

    def count_events(self, chunk: Chunk, judged: Judged, reasons: pa.Array, keys: Mapping[str, pa.Array]) -> None:
        """Count the events that arrived, without duplicates, and quarantine those that have an entry in `reasons`.

        `keys` are the columns of their key, by name.
        """
        rows = chunk.arrived_in(self.planned_slice.slice)
        arrival = chunk.arrival[rows]
        if not len(arrival):
            return
        counts = tally(judged.at(rows), frozen(arrival), IS_PROCESSED, self.verdicts)
        self.malformed = int(self.verdicts[Verdict.MALFORMED])
        self.invalid_timestamps = int(self.verdicts[Verdict.INVALID_TIMESTAMP])
        self.early += counts.early
        self.late += counts.late
        self.out_of_order += counts.out_of_order
        self.newest_arrival = _larger(counts.newest_arrival, self.newest_arrival)
        self._count_input(chunk, rows)
        self.keys.observe(keys, judged, rows)
        indices = np.arange(len(chunk))[rows]
        if counts.first_ahead >= 0:
            self.largest_time = _larger(counts.largest_time, self.largest_time)
            leading = indices[counts.first_ahead : counts.last_ahead + 1]
            leading = leading[IS_PROCESSED[judged.verdict[leading]]]
            ahead = FurthestAhead.of(chunk, leading, judged.system_timestamp[leading])
            self.furthest_ahead = _larger(ahead, self.furthest_ahead)
        if reasons.null_count == len(reasons):
            return
        rejected = indices[pc.is_valid(reasons).to_numpy(zero_copy_only=False)[rows]]
        if len(rejected):
            self.quarantine.append(
                quarantine.event_rows(self.input, self.partition, chunk, rejected, judged.verdict, reasons)
            )

    def metrics(self, policies: Policies | None) -> PartitionMetrics:
        """Return the metrics. Whether the partition is complete is not known here."""
        watermark = delay = None
        if self.largest_time is not None and self.newest_arrival is not None:
            latest = self.largest_time - (0 if policies is None else policies.out_of_order_tolerance)
            watermark = (latest - ticks.UNIX_EPOCH) / ticks.TICKS_PER_SECOND
            delay = (self.newest_arrival - latest) / ticks.TICKS_PER_SECOND
        ranges = [bounds for gaps in self.open_gaps for bounds in ranges_of(gaps)]
        return PartitionMetrics(
            ticks.to_text(self.planned_slice.slice.start),
            self.input,
            self.partition,
            {**self.by_metric(), WATERMARK_DELAY: delay, WATERMARK: watermark},
            whole=self.whole,
            furthest_ahead=None if self.furthest_ahead is None else self.furthest_ahead.event(),
            gaps=NumberGaps(sum(last - first + 1 for first, last in ranges), tuple(ranges[:MAX_GAPS])),
            numbers=self.arrived_numbers.values(),
            keys=self.keys.metrics(),
            without_block=tuple(self.without_block),
        )


def _larger(value: _T, before: _T | None) -> _T:
    return value if before is None else max(value, before)
