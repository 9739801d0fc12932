"""What a task counts in one slice of its partition.

A metric is declared in `recapture.time_model.metrics`, and counted by one of the methods of `Counters`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.manifest import PlannedSlice, blobs_that_may_hold
from recapture.ordering import quarantine
from recapture.ordering.chunks import Chunk
from recapture.ordering.sequence import Missing, Step
from recapture.ordering.sequence_partitions import ranges_of
from recapture.time_model import ticks
from recapture.time_model.metrics import MAX_GAPS, WATERMARK_DELAY, Counts
from recapture.time_model.policies import Judged, Policies
from recapture.time_model.verdicts import Verdict


@dataclass(frozen=True, order=True)
class Ahead:
    """The processed event whose System.Timestamp is furthest ahead of its arrival: it pushed the watermark."""

    ticks: int
    """System.Timestamp less arrival, in ticks."""
    number: int
    """Sequence number, or else the event's place in its blob from 0."""
    blob: str
    """Name of the event's blob."""
    numbered: bool
    """Whether `number` is a sequence number."""

    @classmethod
    def of(cls, chunk: Chunk, rows: NDArray[np.intp], times: NDArray[np.int64]) -> "Ahead":
        """Return the one of some events that is furthest ahead; of several, the one with the highest number."""
        lead = times - chunk.arrival[rows]
        tied = rows[lead == lead.max()]
        number = int(chunk.number[tied].max())
        blobs = np.unique(chunk.blob[tied[chunk.number[tied] == number]])
        name = max(chunk.blobs[index].blob.name for index in blobs)
        return cls(int(lead.max()), number, name, chunk.numbered)

    def row(self) -> dict[str, Any]:
        """Return what a run's metrics say of the event."""
        number = "sequence_number" if self.numbered else "place"
        return {"seconds": self.ticks / ticks.TICKS_PER_SECOND, number: self.number, "blob": self.blob}


@dataclass
class Counters(Counts):
    """Counts of what arrived in a slice, and what else its metrics report. Every arrival is counted in one slice."""

    input: str
    """Alias of the input."""
    partition: str
    planned: PlannedSlice
    whole: bool = True
    """Whether no blob is damaged of all that are read for the slice, in whichever slice it arrived."""
    without_block: list[str] = field(default_factory=list)
    """Names of blobs that are an Avro file of a header alone."""
    missing: list[Missing] = field(default_factory=list)
    """Sequence numbers that were skipped by what arrived, and did not arrive in what is read for the slice."""
    furthest_ahead: Ahead | None = None
    newest_arrival: int | None = None
    """Largest arrival of an event, in ticks."""
    newest_time: int | None = None
    """Largest System.Timestamp of the events that arrived, in ticks."""
    quarantine: list[pa.RecordBatch] = field(default_factory=list)
    """Rows of the quarantine."""

    def count_blobs(self, chunk: Chunk) -> None:
        """Count the blobs that arrived, and quarantine those that are damaged."""
        slice_ = self.planned.slice
        self.blobs += int(slice_.holds(chunk.blob_arrivals).sum())
        self.without_block += [
            pinned.blob.name for pinned in chunk.without_block if slice_.start < pinned.arrival <= slice_.end
        ]
        for blob in chunk.damaged:
            self.whole &= not blobs_that_may_hold([blob.pinned], self.planned.arrivals)
            if slice_.start < blob.pinned.arrival <= slice_.end:
                self.damaged += 1
                self.quarantine.append(quarantine.blob_row(blob))

    def count_numbers(self, chunk: Chunk, duplicates: NDArray[np.bool_], steps: Sequence[Step]) -> None:
        """Count the duplicates that arrived and the gaps before what arrived; close gaps that later arrivals fill."""
        if duplicates.any():
            rows = np.arange(len(chunk))[chunk.arrived_in(self.planned.slice)]
            rows = rows[duplicates[rows]]
            self.duplicates += len(rows)
            self.events += len(rows)
            self.event_bytes += int(chunk.body_sizes[rows].sum())
        for step in steps:
            if step.goes_back:
                self._fill_gaps(chunk, step)
            if step.missing is not None:
                missing = step.missing.of(self.planned.slice.holds(chunk.arrival[step.overtaking]))
                self.missing += [missing] if len(missing) else []
        self.gaps = sum(map(len, self.missing))

    def _fill_gaps(self, chunk: Chunk, step: Step) -> None:
        last = self.planned.arrivals.last
        rows = step.rows if last is None else step.rows[chunk.arrival[step.rows] <= last]
        filled = [
            missing.without(chunk.unrolled[rows], chunk.enqueued[rows])
            if missing.sequence_partition == step.sequence_partition
            else missing
            for missing in self.missing
        ]
        self.missing = [missing for missing in filled if len(missing)]

    def count_events(self, chunk: Chunk, judged: Judged, reasons: pa.Array) -> None:
        """Count the events that arrived, without duplicates, and quarantine those that have a reason for it."""
        arrived = chunk.arrived_in(self.planned.slice)
        rows = np.arange(len(chunk))[arrived]
        if not len(rows):
            return
        verdicts = np.bincount(judged.verdict[arrived], minlength=len(Verdict))
        self.verdicts += verdicts
        self.malformed += int(verdicts[Verdict.MALFORMED])
        self.invalid_timestamps += int(verdicts[Verdict.INVALID_TIMESTAMP])
        self.events += len(rows)
        self.event_bytes += int(chunk.body_sizes[arrived].sum())
        self.early += int(judged.early[arrived].sum())
        self.late += int(judged.late[arrived].sum())
        self.out_of_order += int(judged.out_of_order[arrived].sum())
        self.newest_arrival = _newest(self.newest_arrival, chunk.arrival[arrived])
        processed = rows[judged.processed[arrived]]
        if len(processed):
            times = judged.system_timestamp[processed]
            self.newest_time = _newest(self.newest_time, times)
            ahead = Ahead.of(chunk, processed, times)
            self.furthest_ahead = max(ahead, self.furthest_ahead or ahead)
        rejected = rows[pc.is_valid(reasons).to_numpy(zero_copy_only=False)[arrived]]
        if len(rejected):
            self.quarantine.append(
                quarantine.event_rows(self.input, self.partition, chunk, rejected, judged.verdict, reasons)
            )

    def row(self, policies: Policies | None) -> dict[str, Any]:
        """Return the metrics as a JSON object: COUNTS, WATERMARK_DELAY, and what no expectation judges."""
        return {
            "slice_start": ticks.to_text(self.planned.slice.start),
            "input": self.input,
            "partition": self.partition,
            **self.by_metric(),
            WATERMARK_DELAY: self._watermark_delay(policies),
            "whole": self.whole,
            "furthest_ahead": None if self.furthest_ahead is None else self.furthest_ahead.row(),
            "gaps": self._gaps(),
            "without_block": self.without_block,
        }

    def _watermark_delay(self, policies: Policies | None) -> float | None:
        if self.newest_arrival is None or self.newest_time is None:
            return None
        watermark = self.newest_time - (0 if policies is None else policies.out_of_order_tolerance)
        return (self.newest_arrival - watermark) / ticks.TICKS_PER_SECOND

    def _gaps(self) -> dict[str, Any]:
        """Return how many sequence numbers are missing, and the first of their ranges."""
        ranges = [list(bounds) for missing in self.missing for bounds in ranges_of(missing)]
        return {"missing": sum(last - first + 1 for first, last in ranges), "ranges": ranges[:MAX_GAPS]}


def _newest(before: int | None, times: NDArray[np.int64]) -> int:
    newest = int(times.max())
    return newest if before is None else max(before, newest)
