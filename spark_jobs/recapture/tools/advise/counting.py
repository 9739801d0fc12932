"""What became of the events of one partition, counted for all tolerances in one pass.

A run with one setting judges the events in arrival order and carries the largest time of each scope. Its out-of-order
tolerance does not change these largest times: an out-of-order event is below them. So the events are
judged once for each late tolerance: the disorder of an event says which out-of-order tolerances it exceeds.

The memory does not depend on the number of events: a chunk is counted, and only the counts and the largest times of
each late tolerance are carried to the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob, blobs_that_may_hold
from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.policies import Judged, Policies
from recapture.time_model.slices import Arrivals, Slice, arrivals_of
from recapture.time_model.ticks import from_seconds
from recapture.time_model.verdicts import Verdict
from recapture.tools.advise.tolerances import Tolerances, with_late


@dataclass(frozen=True)
class EventsToJudge:
    """Events of a partition in arrival order, without duplicates; every array has one entry per event."""

    blob: NDArray[np.int64]
    """Index of the event's blob in the partition."""
    arrival: NDArray[np.int64]
    """Arrival in ticks."""
    time: NDArray[np.int64]
    """Application time in ticks."""
    valid: NDArray[np.bool_]
    """Whether the event has an application time and can be read."""
    decoded: NDArray[np.bool_]
    """Whether the event can be read."""
    scope: pa.Array | None
    """Scope of the event within its partition, NULL if it has no key; None if the partition is the scope."""


@dataclass
class ToleranceCounts:
    """Events of a partition that arrived in the range, by tolerance; duplicates are not among them."""

    verdicts: NDArray[np.int64]
    """Events by late tolerance, out-of-order tolerance and verdict."""
    late: NDArray[np.int64]
    """Events beyond the late tolerance, by late tolerance: LateInputEvents."""
    out_of_order: NDArray[np.int64]
    """Events below the watermark, by late and out-of-order tolerance: DroppedOrAdjustedEvents."""
    early: int
    """Events beyond the early window: EarlyInputEvents."""

    def __add__(self, other: "ToleranceCounts") -> "ToleranceCounts":
        return ToleranceCounts(
            self.verdicts + other.verdicts,
            self.late + other.late,
            self.out_of_order + other.out_of_order,
            self.early + other.early,
        )

    @property
    def on_time(self) -> NDArray[np.int64]:
        """Events that are on time, by late and out-of-order tolerance."""
        return self.verdicts[:, :, Verdict.ON_TIME]

    @property
    def tolerable(self) -> int:
        """Events that are on time with large enough tolerances: those with a valid time that is not too early."""
        unusable = self.verdicts[0, 0, [Verdict.MALFORMED, Verdict.INVALID_TIMESTAMP]].sum()
        return int(self.verdicts[0, 0].sum() - unusable) - self.early


@dataclass(frozen=True)
class Span:
    """Blobs of a partition whose events are judged from empty state, and the arrivals that are counted."""

    slice: Slice
    """Arrivals that are counted."""
    first: int
    """Index of the first blob that is judged."""
    end: int
    """Index after the last blob that is judged."""


class Counter:
    """Counts the events of one partition and of the scopes that one key gives."""

    def __init__(
        self,
        policies: Policies,
        tolerances: Tolerances,
        slices: Sequence[Slice],
        look_back: int,
        blobs: Sequence[PinnedBlob],
    ) -> None:
        """Begin to count what arrived in `slices`, of the partition that has these `blobs`.

        `look_back` is that of the query, in ticks. It decides where reading begins, if the verdicts depend on that.
        """
        self._adjust = policies.adjust
        self._by_late = []
        for late in tolerances.late:
            chosen = with_late(policies, late)
            spans = spans_of(chosen, slices, look_back, blobs)
            self._by_late.append(_LateToleranceCounter(chosen, tolerances.out_of_order, spans))

    def add(self, events: EventsToJudge) -> None:
        """Count the next events of the partition."""
        for counter in self._by_late:
            counter.add(events)

    @property
    def largest_disorder(self) -> list[int]:
        """Largest disorder of an event, in ticks, by late tolerance."""
        return [counter.largest_disorder for counter in self._by_late]

    @property
    def counts(self) -> ToleranceCounts:
        """The counts of what was added."""
        by_late = [counter.by_disorder for counter in self._by_late]
        return ToleranceCounts(
            verdicts=np.stack([_verdicts(counts, self._adjust) for counts in by_late]),
            late=np.array([counts[[Verdict.LATE_ADJUSTED, Verdict.LATE_DROPPED]].sum() for counts in by_late]),
            out_of_order=np.stack([_beyond(counts).sum(axis=0) for counts in by_late]),
            early=int(by_late[0][[Verdict.EARLY_ADJUSTED, Verdict.EARLY_DROPPED]].sum()),
        )


class _LateToleranceCounter:
    """Counts all events as one late tolerance judges them."""

    def __init__(self, policies: Policies, out_of_order: Sequence[int], spans: Sequence[Span]) -> None:
        self.largest_disorder = 0
        self.by_disorder = np.zeros((len(Verdict), len(out_of_order) + 1), np.int64)
        """Events by the verdict before the disorder rule, and by how many tolerances their disorder exceeds."""
        self._policies = policies
        self._tolerances = np.array([from_seconds(seconds) for seconds in out_of_order])
        self._spans = [(span, LargestTimes()) for span in spans]

    def add(self, events: EventsToJudge) -> None:
        if not len(events.blob):
            return
        first, last = int(events.blob.min()), int(events.blob.max())
        for span, largest_times in self._spans:
            if first < span.end and last >= span.first:
                self._add(events if first >= span.first else _from(span.first, events), span, largest_times)

    def _add(self, events: EventsToJudge, span: Span, largest_times: LargestTimes) -> None:
        judged = judge(self._policies, largest_times, events.time, events.valid, events.arrival, events.scope)
        judged.verdict[~events.decoded] = Verdict.MALFORMED
        counted = np.flatnonzero(span.slice.contains(events.arrival))
        if not len(counted):
            return
        disorder = judged.behind[counted]
        self.largest_disorder = max(self.largest_disorder, int(disorder.max()))
        exceeded = np.searchsorted(self._tolerances, disorder)
        columns = self.by_disorder.shape[1]
        cells = _before_disorder(judged)[counted].astype(np.int64) * columns + exceeded
        self.by_disorder += np.bincount(cells, minlength=self.by_disorder.size).reshape(self.by_disorder.shape)


def spans_of(policies: Policies, slices: Sequence[Slice], look_back: int, blobs: Sequence[PinnedBlob]) -> list[Span]:
    """Return what is judged from empty state for these neighbouring slices: all at once, or each separately.

    Where verdicts depend on where reading begins, a run judges each slice separately (docs/time-model.md, section 3.2).
    """
    together = Slice(slices[0].start, slices[-1].end)
    independent = arrivals_of(together, policies, look_back).independent_of_start
    return [
        Span(
            slice_,
            len(blobs) - len(blobs_that_may_hold(blobs, Arrivals(first_judged(policies, slice_, look_back), None))),
            len(blobs_that_may_hold(blobs, Arrivals(0, slice_.end))),
        )
        for slice_ in ([together] if independent else slices)
    ]


def first_judged(policies: Policies, slice_: Slice, look_back: int) -> int:
    """Return the first arrival, in ticks, that a slice's verdicts need, or that a run reads if they depend on it."""
    arrivals = arrivals_of(slice_, policies, look_back)
    return (arrivals_of(slice_, policies, 0) if arrivals.independent_of_start else arrivals).first_judged


def _from(blob: int, events: EventsToJudge) -> EventsToJudge:
    """Return the events of a blob and of those after it."""
    rows = np.flatnonzero(events.blob >= blob)
    scope = None if events.scope is None else events.scope.take(pa.array(rows))
    return EventsToJudge(
        events.blob[rows], events.arrival[rows], events.time[rows], events.valid[rows], events.decoded[rows], scope
    )


def _before_disorder(judged: Judged) -> NDArray[np.int8]:
    """Return the verdicts that the events had before the stage of disorder."""
    adjusted = np.where(judged.late, Verdict.LATE_ADJUSTED, Verdict.ON_TIME)
    adjusted = np.where(judged.early, Verdict.EARLY_ADJUSTED, adjusted)
    before: NDArray[np.int8] = np.where(judged.out_of_order, adjusted, judged.verdict).astype(np.int8)
    return before


def _beyond(by_disorder: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the events beyond each out-of-order tolerance, by verdict before the stage of disorder and tolerance."""
    beyond: NDArray[np.int64] = by_disorder[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return beyond


def _verdicts(by_disorder: NDArray[np.int64], adjust: bool) -> NDArray[np.int64]:
    """Return the events by out-of-order tolerance and verdict."""
    beyond = _beyond(by_disorder)
    verdicts: NDArray[np.int64] = (by_disorder.sum(axis=1, keepdims=True) - beyond).T
    out_of_order = Verdict.OUT_OF_ORDER_ADJUSTED if adjust else Verdict.OUT_OF_ORDER_DROPPED
    verdicts[:, out_of_order] = beyond.sum(axis=0)
    return verdicts
