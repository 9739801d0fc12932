"""ASA's early, late and out-of-order policies over one input partition (docs/time-model.md, section 2).

Events are judged chunk by chunk in arrival order; `LargestTimes` carries what is needed from one chunk to the next.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.time_model.verdicts import PROCESSED, Verdict

BEFORE_EVERYTHING = np.iinfo(np.int64).min // 2
"""Largest time of a scope without events. It is less than any time, and a tolerance can be subtracted from it."""
EARLY_SECONDS = 300
"""ASA's early arrival window, in seconds."""


@dataclass(frozen=True)
class Policies:
    """A job's time settings."""

    out_of_order_tolerance: int
    """Out-of-order tolerance in ticks."""
    late_tolerance: int | None
    """Late tolerance in ticks; None for no limit."""
    early_window: int | None
    """Early window in ticks; None for no limit."""
    adjust: bool
    """Whether late and out-of-order events are adjusted; otherwise they are dropped."""
    adjust_early: bool = False
    """Whether early events are adjusted to their arrival plus the window; otherwise they are dropped, as in ASA."""


@dataclass(frozen=True)
class Judged:
    """What became of the events of a chunk; every array has one entry per event."""

    verdict: NDArray[np.int8]
    """Verdict on the event."""
    system_timestamp: NDArray[np.int64]
    """System.Timestamp in ticks; meaningful if the verdict is one of PROCESSED."""
    early: NDArray[np.bool_]
    """Whether the event was beyond the early window, whatever its verdict."""
    late: NDArray[np.bool_]
    """Whether the event was beyond the late tolerance, whatever its verdict."""
    out_of_order: NDArray[np.bool_]
    """Whether the event was below the watermark."""
    largest_time: NDArray[np.int64]
    """Largest System.Timestamp so far in the event's scope, itself included, in ticks.

    BEFORE_EVERYTHING if the event does not reach the disorder stage (docs/time-model.md, section 2).
    """
    behind: NDArray[np.int64]
    """How far the event's time was below `largest_time` when it reached the disorder stage, in ticks; 0 otherwise."""

    @cached_property
    def processed(self) -> NDArray[np.bool_]:
        """Whether the event reaches the query."""
        return np.isin(self.verdict, PROCESSED)


class KeyCodes:
    """Assigns a number to each distinct value of a key column, the same number in every chunk."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._parts: list[KeyCodes] = []

    @property
    def values(self) -> pa.Array:
        """The distinct values so far, by number; none of a struct."""
        return pa.nulls(0) if self._known is None else self._known

    def encode(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the number of each key, from 0. The keys must not be NULL or contain NULL."""
        if pa.types.is_struct(keys.type):
            return self._encode_struct(keys)
        chunk = keys.dictionary_encode()
        if self._known is None:
            self._known = chunk.dictionary
        else:
            fresh = chunk.dictionary.filter(pc.invert(pc.is_in(chunk.dictionary, value_set=self._known)))
            self._known = pa.concat_arrays([self._known, fresh])
        numbers = pc.index_in(chunk.dictionary, value_set=self._known)
        return numbers.take(chunk.indices).to_numpy(zero_copy_only=False).astype(np.int64)

    def _encode_struct(self, keys: pa.StructArray) -> NDArray[np.int64]:
        members = keys.flatten()
        if not self._parts:
            self._parts = [KeyCodes() for _ in range(2 * len(members) - 1)]
        combined = self._parts[0].encode(members[0])
        for index, member in enumerate(members[1:]):
            number, pair = self._parts[2 * index + 1 : 2 * index + 3]
            combined = pair.encode(pa.array(combined << 32 | number.encode(member)))
        return combined


class LargestTimes:
    """The largest System.Timestamp so far in each scope of one partition.

    Less the out-of-order tolerance, it is the scope's watermark.
    """

    def __init__(self) -> None:
        self._keys = KeyCodes()
        self._largest = np.empty(0, np.int64)

    def update(self, time: NDArray[np.int64], scope: pa.Array | None) -> NDArray[np.int64]:
        """Include these events, and return the largest time in each event's scope up to the event, itself included."""
        if not len(time):
            return time
        if scope is None:
            carried = self._largest[0] if len(self._largest) else BEFORE_EVERYTHING
            running = np.maximum(np.maximum.accumulate(time), carried)
            self._largest = running[-1:]
            return running
        codes = self._keys.encode(scope)
        unseen = int(codes.max()) + 1 - len(self._largest)
        if unseen > 0:
            self._largest = np.concatenate([self._largest, np.full(unseen, BEFORE_EVERYTHING)])
        running = np.maximum(_largest_so_far(time, codes), self._largest[codes])
        np.maximum.at(self._largest, codes, running)
        return running


def _largest_so_far(time: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each event, the largest time so far among the events of its code.

    The events are sorted by code and the times of each code are moved above those of the code before it, so that one
    running maximum serves all codes.
    """
    count, lowest = len(time), int(time.min())
    span = int(time.max()) - lowest + 1
    if (int(codes.max()) + 1) * span > np.iinfo(np.int64).max:
        times, ranks = np.unique(time, return_inverse=True)
        return times[_largest_so_far(ranks, codes)]
    by_code = np.sort(codes * count + np.arange(count)) % count
    offset = codes[by_code] * span - lowest
    largest = np.empty_like(time)
    largest[by_code] = np.maximum.accumulate(time[by_code] + offset) - offset
    return largest


def judge(
    policies: Policies,
    largest_times: LargestTimes,
    time: NDArray[np.int64],
    valid: NDArray[np.bool_],
    arrival: NDArray[np.int64],
    scope: pa.Array | None,
) -> Judged:
    """Judge one chunk of one partition, and update the largest times of its scopes.

    `time` and `arrival` are ticks, one entry per event, in arrival order; `valid` is False where TIMESTAMP BY gives no
    time. `scope` holds each event's OVER key, a struct if there are several columns. An event whose key is NULL or
    contains NULL gets the verdict INVALID_TIMESTAMP.
    """
    verdict = np.full(len(time), Verdict.ON_TIME, np.int8)
    system_timestamp = time.copy()
    if scope is not None:
        valid = valid & has_key(scope)
    verdict[~valid] = Verdict.INVALID_TIMESTAMP

    early = np.zeros(len(time), bool)
    if policies.early_window is not None:
        early = valid & (time - arrival > policies.early_window)
        verdict[early] = Verdict.EARLY_ADJUSTED if policies.adjust_early else Verdict.EARLY_DROPPED
        system_timestamp[early] = arrival[early] + policies.early_window

    late = np.zeros(len(time), bool)
    if policies.late_tolerance is not None:
        late = valid & ~early & (arrival - time > policies.late_tolerance)
        verdict[late] = Verdict.LATE_ADJUSTED if policies.adjust else Verdict.LATE_DROPPED
        system_timestamp[late] = arrival[late] - policies.late_tolerance

    not_early_dropped = valid if policies.adjust_early else valid & ~early
    reaches_disorder_stage = not_early_dropped if policies.adjust else not_early_dropped & ~late
    rows = np.flatnonzero(reaches_disorder_stage)
    # Out-of-order events are below the running maximum, so including them does not change it.
    running = largest_times.update(system_timestamp[rows], None if scope is None else scope.take(pa.array(rows)))
    largest_time = np.full(len(time), BEFORE_EVERYTHING)
    largest_time[rows] = running
    behind = np.zeros(len(time), np.int64)
    behind[rows] = running - system_timestamp[rows]
    below = behind[rows] > policies.out_of_order_tolerance
    out_of_order = np.zeros(len(time), bool)
    out_of_order[rows[below]] = True
    verdict[out_of_order] = Verdict.OUT_OF_ORDER_ADJUSTED if policies.adjust else Verdict.OUT_OF_ORDER_DROPPED
    system_timestamp[out_of_order] = (running - policies.out_of_order_tolerance)[below]
    return Judged(verdict, system_timestamp, early, late, out_of_order, largest_time, behind)


def has_key(scope: pa.Array) -> NDArray[np.bool_]:
    """Return which events have a key, with a value in each of its columns."""
    members = scope.flatten() if pa.types.is_struct(scope.type) else [scope]
    present = pc.is_valid(scope)
    for member in members:
        present = pc.and_(present, pc.is_valid(member))
    return present.to_numpy(zero_copy_only=False)
