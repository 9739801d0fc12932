"""The profile of a slice in one partition: histograms of its events' times, and a sample of them for pictures.

Both follow from the events that arrived in the slice, and not from the tasks or chunks in which they were read. Each
rule of the sample takes the first events in a total order. So the sample of two sets of events can be taken from their
samples, and the profile is computed chunk by chunk.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.views import copies
from recapture.ordering.chunks import Chunk, RowIndex
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.policies import BEFORE_EVERYTHING, Judged
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
_SAMPLE = pa.schema([*_EVENT, ("behind", pa.int64()), ("rank", pa.int64())])
"""Schema of a sample that may still grow: the columns of an event, its disorder, and its rank among equal events."""
_LEAD = "lead"


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
    _sample: pa.RecordBatch = field(default_factory=lambda: pa.RecordBatch.from_pylist([], _SAMPLE))

    def observe(self, events: TimedEvents) -> None:
        """Include the events of a chunk that arrived in the slice."""
        arrived = events.chunk.arrived_in(self.slice_)
        reached = events.judged.largest_time[arrived] != BEFORE_EVERYTHING
        if not len(reached):
            return
        rules = _Rules.of_chunk(events, arrived)
        self.lateness += _histogram(LATENESS_BOUNDS, rules.lateness[rules.timed])
        self.disorder += _histogram(DISORDER_BOUNDS, rules.behind[reached])
        floors = _Rules.of_sample(self._sample).floors()
        candidates = np.arange(len(events.chunk))[arrived][rules.chosen(self.slice_, floors)]
        sample = _batch(events, candidates)
        if self._sample.num_rows:
            merged = pa.concat_batches([self._sample, sample])
            sample = merged.take(pa.array(_Rules.of_sample(merged).chosen(self.slice_, {})))
        self._sample = sample

    def table(self, alias: str, partition: str) -> pa.Table:
        """Return the profile as one row of PROFILE_SCHEMA. Its sample is in order of arrival."""
        leads = np.zeros(self._sample.num_rows, bool)
        leads[_Rules.of_sample(self._sample).chosen_by(_LEAD)] = True
        body = pc.if_else(pa.array(leads), self._sample["body"], pa.scalar(None, pa.binary()))
        events = pa.StructArray.from_arrays(
            [body if name.name == "body" else self._sample[name.name] for name in _EVENT], fields=list(_EVENT)
        )
        order = np.lexsort((self._sample["rank"].to_numpy(), self._sample["arrival"].to_numpy()))
        columns = [
            pa.array([alias]),
            pa.array([partition]),
            pa.array([self.slice_.start]),
            pa.array([self.lateness.tolist()]),
            pa.array([self.disorder.tolist()]),
            pa.ListArray.from_arrays(pa.array([0, len(events)], pa.int32()), events.take(pa.array(order))),
        ]
        return pa.Table.from_arrays(columns, schema=PROFILE_SCHEMA)


@dataclass(frozen=True)
class _Rules:
    """The rules that choose the events of a sample, and what they look at: arrays with one entry per event.

    Each rule chooses some events with the largest values, and among equal values those with the largest rank.
    """

    rank: NDArray[np.int64]
    """A number that looks random and belongs to the event."""
    verdict: NDArray[np.int8]
    lateness: NDArray[np.int64]
    """Arrival less application time; meaningful if `timed`."""
    timed: NDArray[np.bool_]
    arrival: NDArray[np.int64]
    system_timestamp: NDArray[np.int64]
    processed: NDArray[np.bool_]
    behind: NDArray[np.int64]

    @classmethod
    def of_chunk(cls, events: TimedEvents, rows: RowIndex) -> "_Rules":
        judged, arrival = events.judged, events.chunk.arrival[rows]
        return cls(
            rank=_ranks(events.chunk, rows),
            verdict=judged.verdict[rows],
            lateness=arrival - events.time[rows],
            timed=events.has_time[rows],
            arrival=arrival,
            system_timestamp=judged.system_timestamp[rows],
            processed=judged.processed[rows],
            behind=judged.behind[rows],
        )

    @classmethod
    def of_sample(cls, sample: pa.RecordBatch) -> "_Rules":
        codes = pc.index_in(sample["verdict"], pa.array(VERDICTS)).cast(pa.int8())
        arrival = sample["arrival"].to_numpy()
        return cls(
            rank=sample["rank"].to_numpy(),
            verdict=codes.to_numpy(),
            lateness=arrival - sample["time"].fill_null(0).to_numpy(),
            timed=pc.is_valid(sample["time"]).to_numpy(zero_copy_only=False),
            arrival=arrival,
            system_timestamp=sample["system_timestamp"].fill_null(0).to_numpy(),
            processed=pc.is_valid(sample["system_timestamp"]).to_numpy(zero_copy_only=False),
            behind=sample["behind"].to_numpy(),
        )

    def chosen(self, slice_: Slice, floors: Mapping[str, int]) -> NDArray[np.intp]:
        """Return candidate indices: a superset of the sample, without events below any rule's floor."""
        chosen = [
            _largest(applies, values, self.rank, count, floors.get(name))
            for name, (applies, values, count) in self._rules().items()
        ]
        return np.unique(np.concatenate([*chosen, self._largest_of_parts(slice_)]))

    def chosen_by(self, name: str) -> NDArray[np.intp]:
        """Return the indices of the events that one rule chooses."""
        applies, values, count = self._rules()[name]
        return _largest(applies, values, self.rank, count)

    def floors(self) -> dict[str, int]:
        """Return the smallest value that each rule chooses, if it finds all its events. No event below it is chosen."""
        return {
            name: int(np.partition(values[applies], -count)[-count])
            for name, (applies, values, count) in self._rules().items()
            if np.count_nonzero(applies) >= count
        }

    def _rules(self) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.int64], int]]:
        """Return by name which events a rule applies to, the values of all events, and how many it chooses."""
        rules = {}
        for verdict in np.flatnonzero(np.bincount(self.verdict)):
            count = ON_TIME_EVENTS if verdict == Verdict.ON_TIME else OTHER_EVENTS
            rules[VERDICTS[verdict]] = self.verdict == verdict, self.rank, count
        rules["late"] = self.timed, self.lateness, EXTREMES
        rules["early"] = self.timed, -self.lateness, EXTREMES
        rules[_LEAD] = self.processed, self.system_timestamp - self.arrival, EXTREMES
        rules["behind"] = self.behind != 0, self.behind, EXTREMES
        return rules

    def _largest_of_parts(self, slice_: Slice) -> NDArray[np.intp]:
        """Return the processed events with the largest System.Timestamp in each of the equal parts of a slice."""
        rows = np.flatnonzero(self.processed)
        part = (self.arrival[rows] - slice_.start - 1) // ((slice_.end - slice_.start) // SLICE_PARTS)
        largest = np.full(SLICE_PARTS, np.iinfo(np.int64).min)
        np.maximum.at(largest, part, self.system_timestamp[rows])
        leads = self.system_timestamp[rows] == largest[part]
        rows, part = rows[leads], part[leads]
        order = np.lexsort((-self.rank[rows], part))
        _, first = np.unique(part[order], return_index=True)
        return rows[order[first]]


def _largest(
    applies: NDArray[np.bool_], values: NDArray[np.int64], rank: NDArray[np.int64], count: int, floor: int | None = None
) -> NDArray[np.intp]:
    """Return the indices of `count` events: those with the largest values, and of equal values with the largest rank.

    Each array has an entry for every event. Those to which the rule does not apply, or with a value below the floor, do
    not count.
    """
    rows = np.flatnonzero(applies if floor is None else applies & (values >= floor))
    values = values[rows]
    if len(rows) <= count:
        return rows
    least = np.partition(values, -count)[-count]
    larger, equal = rows[values > least], rows[values == least]
    missing = count - len(larger)
    if len(equal) > missing:
        equal = equal[np.argpartition(rank[equal], -missing)[-missing:]]
    return np.concatenate([larger, equal])


def _histogram(bounds: Sequence[int], durations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of durations, in ticks, in each bin; a bin contains its upper bound."""
    above = [np.count_nonzero(durations > bound * TICKS_PER_SECOND) for bound in bounds]
    return -np.diff([len(durations), *above, 0])


def _ranks(chunk: Chunk, rows: RowIndex) -> NDArray[np.int64]:
    """Return a number for each event that follows from its blob's name and its number in it, and looks random."""
    seeds = np.array([_seed(pinned.blob.name) for pinned in chunk.blobs], np.uint64)
    mixed = seeds[chunk.blob_index[rows]] ^ chunk.number[rows].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return (mixed >> np.uint64(1)).astype(np.int64)


@lru_cache(1024)
def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def _batch(events: TimedEvents, rows: NDArray[np.intp]) -> pa.RecordBatch:
    """Return some events of a chunk as rows of a sample."""
    chunk, judged, indices = events.chunk, events.judged, pa.array(rows)
    largest_time = judged.largest_time[rows]
    keys = [texts(pc.cast(values.take(indices), pa.string())) for values in events.scope.values()]
    columns = [
        pa.array(events.time[rows], mask=~events.has_time[rows]),
        pa.array(chunk.arrival[rows]),
        pa.array(judged.system_timestamp[rows], mask=~judged.processed[rows]),
        pa.array(largest_time, mask=largest_time == BEFORE_EVERYTHING),
        pa.array(VERDICTS).take(pa.array(judged.verdict[rows])),
        pc.binary_join_element_wise(*keys, ", ") if keys else pa.nulls(len(rows), pa.string()),
        pa.array([pinned.blob.name for pinned in chunk.blobs]).take(pa.array(chunk.blob_index[rows])),
        *chunk.numbers_and_places(rows),
        pc.binary_slice(copies(chunk.body, rows), 0, BODY_BYTES),
        pa.array(judged.behind[rows]),
        pa.array(_ranks(chunk, rows)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SAMPLE)
