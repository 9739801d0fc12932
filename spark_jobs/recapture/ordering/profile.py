"""The profile of a slice in one partition: histograms of its events' times, and a sample of them for pictures.

Both follow from the events that arrived in the slice, and not from the tasks or chunks in which they were read. Each
rule of the sample takes the first events in a total order. So the sample of two sets of events can be taken from their
samples, and the profile is computed chunk by chunk.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.views import copies
from recapture.ordering.chunks import Chunk, RowIndex
from recapture.ordering.leaders import NO_EVENTS, Leaders, RankedEvents, Rules, offer_all, ranks
from recapture.process.compilation import compiled, frozen
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.policies import BEFORE_EVERYTHING, IS_PROCESSED, Judged
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.time_model.verdicts import Verdict
from recapture.tokens import texts

LATENESS_BOUNDS = (
    *(-86_400, -21_600, -3600, -1800, -900, -600, -300, -120, -60, -30, -10, -5, -1),
    *(0, 1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400, 604_800),
)
"""Bounds of the bins of lateness in seconds. A bin contains its upper bound; the last one has none.

Lateness is arrival less application time, before any policy. It is negative for an event that is ahead.
"""
DISORDER_BOUNDS = (0, 1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400)
"""Bounds of the bins of disorder in seconds, as for lateness.

Disorder is how far an event was behind the largest time so far in its scope, 0 if it was not.
"""
ON_TIME_EVENTS = 64
"""Largest number of events in the sample that are on time and chosen at random."""
OTHER_EVENTS = 24
"""Largest number of events in the sample that have any other verdict, for each verdict, chosen at random."""
EXTREMES = 4
"""Number of events in the sample of each extreme: latest, furthest ahead, furthest behind, and leading most."""
SLICE_PARTS = 60
"""Number of equal parts of a slice. The sample has the event with the largest System.Timestamp of each part."""
BODY_BYTES = 240
"""Number of bytes of the body that are kept of the events that lead most."""
_LATENESS_TICKS, _DISORDER_TICKS = (
    frozen(np.array(bounds) * TICKS_PER_SECOND) for bounds in (LATENESS_BOUNDS, DISORDER_BOUNDS)
)

_EVENT = (
    pa.field("time", pa.int64()),
    pa.field("arrival", pa.int64()),
    pa.field("system_timestamp", pa.int64()),
    pa.field("largest_time", pa.int64()),
    pa.field("verdict", pa.string()),
    pa.field("key", pa.string()),
    pa.field("blob", pa.string()),
    pa.field("sequence_number", pa.int64()),
    pa.field("place", pa.int64()),
    pa.field("body", pa.binary()),
)
PROFILE_SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("partition", pa.string()),
        ("slice_start", pa.int64()),
        ("lateness", pa.list_(pa.int64())),
        ("disorder", pa.list_(pa.int64())),
        ("sample", pa.list_(pa.struct(_EVENT))),
    ]
)
"""Schema of profiles, a row for each slice and partition; times are ticks.

`lateness` and `disorder` count the events of each bin. An event of the `sample` has its application time, arrival and
System.Timestamp, the largest time of its scope after it (null for an event that does not reach the disorder rule), its
verdict, its OVER key as text, its blob, and its sequence number or, if it has none, its place in the blob. Only the
events that lead most, those whose System.Timestamp is furthest ahead of their arrival, have the start of their body.
"""
_DETAILS = ("largest_time", "key", "blob", "sequence_number", "place", "body")
_NO_DETAILS = pa.RecordBatch.from_pylist([], pa.schema([column for column in _EVENT if column.name in _DETAILS]))
"""What is known of the events of a sample besides what the rules look at; one row per event."""


@dataclass(frozen=True)
class TimedEvents:
    """The events of a chunk with their times."""

    chunk: Chunk
    time: NDArray[np.int64]
    """Application time in ticks; meaningful if `has_time`."""
    has_time: NDArray[np.bool_]
    judged: Judged
    scope: Mapping[str, pa.Array]
    """Columns whose values name an event's scope within the partition, such as the OVER key; by name."""


@dataclass
class Profile:
    """The profile of a slice in one partition."""

    slice_: Slice
    lateness: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(LATENESS_BOUNDS) + 1, np.int64))
    disorder: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(DISORDER_BOUNDS) + 1, np.int64))
    _sample: RankedEvents = NO_EVENTS
    """The events of the sample."""
    _details: pa.RecordBatch = field(default_factory=lambda: _NO_DETAILS)
    """What else is known of them."""

    def observe(self, events: TimedEvents) -> None:
        """Include the events of a chunk that arrived in the slice."""
        rows = events.chunk.arrived_in(self.slice_)
        arrived = _ranked(events, rows)
        if not len(arrived.rank):
            return
        reached = events.judged.largest_time[rows] != BEFORE_EVERYTHING
        count_bins(frozen(arrived.arrival - arrived.time), arrived.has_time, _LATENESS_TICKS, self.lateness)
        count_bins(arrived.behind, frozen(reached), _DISORDER_TICKS, self.disorder)
        known = len(self._sample.rank)
        leaders = self._leaders(known + len(arrived.rank))
        offer_all(leaders, arrived, known, IS_PROCESSED, self._rules)
        numbers = leaders.numbers()
        stay, join = numbers[numbers < known], numbers[numbers >= known] - known
        details = _details(events, np.arange(len(events.chunk))[rows][join])
        self._sample = self._sample.at(stay).followed_by(arrived.at(join))
        self._details = pa.concat_batches([self._details.take(pa.array(stay)), details])

    def _leaders(self, events: int) -> Leaders:
        """Return what the rules choose of the sample, the first of this number of events."""
        of_verdict = [ON_TIME_EVENTS, *[OTHER_EVENTS] * (len(Verdict) - 1)]
        leaders = Leaders.none([*[EXTREMES] * self._rules.first_verdict, *of_verdict, *[1] * SLICE_PARTS], events)
        offer_all(leaders, self._sample, 0, IS_PROCESSED, self._rules)
        return leaders

    @property
    def _rules(self) -> Rules:
        return Rules(self.slice_.start, (self.slice_.end - self.slice_.start) // SLICE_PARTS)

    def table(self, alias: str, partition: str) -> pa.Table:
        """Return the profile as one row of PROFILE_SCHEMA. Its sample is in order of arrival."""
        sample, details = self._sample, self._details
        leads = np.zeros(len(sample.rank), bool)
        leads[self._leaders(len(leads)).numbers(self._rules.lead)] = True
        values = {name: details[name] for name in details.schema.names} | {
            "time": pa.array(sample.time, mask=~sample.has_time),
            "arrival": pa.array(sample.arrival),
            "system_timestamp": pa.array(sample.system_timestamp, mask=~IS_PROCESSED[sample.verdict]),
            "verdict": pa.array(VERDICTS).take(pa.array(sample.verdict)),
            "body": pc.if_else(pa.array(leads), details["body"], pa.scalar(None, pa.binary())),
        }
        events = pa.StructArray.from_arrays([values[column.name] for column in _EVENT], fields=list(_EVENT))
        order = np.lexsort((sample.rank, sample.arrival))
        columns = [
            pa.array([alias]),
            pa.array([partition]),
            pa.array([self.slice_.start]),
            pa.array([self.lateness.tolist()]),
            pa.array([self.disorder.tolist()]),
            pa.ListArray.from_arrays(pa.array([0, len(events)], pa.int32()), events.take(pa.array(order))),
        ]
        return pa.Table.from_arrays(columns, schema=PROFILE_SCHEMA)


def load() -> None:
    """Load the compiled code."""
    ranks(frozen(np.empty(0, np.uint64)), NO_EVENTS.arrival, NO_EVENTS.arrival)
    count_bins(NO_EVENTS.behind, NO_EVENTS.has_time, _DISORDER_TICKS, np.zeros(0, np.int64))
    Profile(Slice(0, SLICE_PARTS)).table("", "")


def _ranked(events: TimedEvents, rows: RowIndex) -> RankedEvents:
    """Return what the rules look at, of the events at some rows of a chunk."""
    chunk, judged = events.chunk, events.judged
    seeds = np.array([_seed(pinned.blob.name) for pinned in chunk.blobs], np.uint64)
    columns = RankedEvents(
        rank=ranks(frozen(seeds), frozen(chunk.blob_index[rows]), frozen(chunk.number[rows])),
        verdict=judged.verdict[rows],
        time=events.time[rows],
        has_time=events.has_time[rows],
        arrival=chunk.arrival[rows],
        system_timestamp=judged.system_timestamp[rows],
        behind=judged.behind[rows],
    )
    return RankedEvents._make(frozen(values) for values in columns)


@compiled
def count_bins(
    durations: NDArray[np.int64], applies: NDArray[np.bool_], bounds: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Add to `counts` the number of durations in each bin; a bin contains its upper bound, and the last one has none.

    Most durations are in the bin of the one before.
    """
    bin_ = 0
    for event in range(len(durations)):
        if applies[event]:
            duration = durations[event]
            while bin_ < len(bounds) and duration > bounds[bin_]:
                bin_ += 1
            while bin_ > 0 and duration <= bounds[bin_ - 1]:
                bin_ -= 1
            counts[bin_] += 1


@lru_cache(1024)
def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def _details(events: TimedEvents, rows: NDArray[np.intp]) -> pa.RecordBatch:
    """Return what else is known of the events at some rows of a chunk."""
    chunk, largest_time, indices = events.chunk, events.judged.largest_time[rows], pa.array(rows)
    keys = [texts(pc.cast(values.take(indices), pa.string())) for values in events.scope.values()]
    keys = keys or [pa.nulls(len(rows), pa.string())]
    columns = [
        pa.array(largest_time, mask=largest_time == BEFORE_EVERYTHING),
        keys[0] if len(keys) == 1 else pc.binary_join_element_wise(*keys, ", "),
        pa.array([chunk.blobs[blob].blob.name for blob in chunk.blob_index[rows].tolist()], pa.string()),
        *chunk.numbers_and_places(rows),
        pc.binary_slice(copies(chunk.body, rows), 0, BODY_BYTES),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_NO_DETAILS.schema)
