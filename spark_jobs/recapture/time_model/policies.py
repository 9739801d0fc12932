"""ASA's early, late and out-of-order policies over one input partition (time model, section 2).

Events are judged chunk by chunk in arrival order; a `Watermark` carries what is needed from one chunk to the next.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BEFORE_EVERYTHING = np.iinfo(np.int64).min // 2
EARLY_SECONDS = 300
"""ASA's early arrival window."""


class Verdict(IntEnum):
    """What the policies did to one event (time model, section 1)."""

    ON_TIME = 0
    EARLY_DROPPED = 1
    LATE_ADJUSTED = 2
    LATE_DROPPED = 3
    OUT_OF_ORDER_ADJUSTED = 4
    OUT_OF_ORDER_DROPPED = 5
    INVALID_TIMESTAMP = 6
    MALFORMED = 7
    EARLY_ADJUSTED = 8
    """Not ASA's: only where a job asks for it."""


PROCESSED = (Verdict.ON_TIME, Verdict.EARLY_ADJUSTED, Verdict.LATE_ADJUSTED, Verdict.OUT_OF_ORDER_ADJUSTED)
"""The verdicts under which an event has a System.Timestamp and reaches the query."""


@dataclass(frozen=True)
class Policies:
    """A job's time settings; durations in ticks."""

    out_of_order: int
    late: int | None
    """None: no limit."""
    early: int | None
    """None: switched off."""
    adjust: bool
    """What is late or out of order is adjusted; otherwise dropped."""
    adjust_early: bool = False
    """What is early is adjusted to its arrival plus the early window; otherwise dropped, as in ASA."""


@dataclass(frozen=True)
class Judged:
    """One entry per event of a chunk."""

    verdict: NDArray[np.int8]
    system_timestamp: NDArray[np.int64]
    """Ticks; meaningful where the verdict is one of PROCESSED."""
    early: NDArray[np.bool_]
    """Counted as early, whatever the last stage's verdict; `late` likewise."""
    late: NDArray[np.bool_]
    out_of_order: NDArray[np.bool_]

    @property
    def processed(self) -> NDArray[np.bool_]:
        return np.isin(self.verdict, PROCESSED)


class _KeyCodes:
    """Numbers the distinct values of a key column, alike in every chunk."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._parts: list[_KeyCodes] = []

    def encode(self, keys: pa.Array) -> NDArray[np.int64]:
        """The number of each key, from 0; keys hold no NULL."""
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
            self._parts = [_KeyCodes() for _ in range(2 * len(members) - 1)]
        combined = self._parts[0].encode(members[0])
        for place, member in enumerate(members[1:]):
            number, pair = self._parts[2 * place + 1 : 2 * place + 3]
            combined = pair.encode(pa.array(combined << 32 | number.encode(member)))
        return combined


class Watermark:
    """The largest System.Timestamp so far in each scope of one partition."""

    def __init__(self) -> None:
        self._keys = _KeyCodes()
        self._largest = np.empty(0, np.int64)

    def advance(self, time: NDArray[np.int64], scope: pa.Array | None) -> NDArray[np.int64]:
        """The largest time in each event's scope, up to and with the event itself."""
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
    watermark: Watermark,
    time: NDArray[np.int64],
    valid: NDArray[np.bool_],
    arrival: NDArray[np.int64],
    scope: pa.Array | None,
) -> Judged:
    """Judge one chunk of one partition and advance its watermark.

    `time` and `arrival` are ticks, one entry per event, in arrival order; `valid` is False where TIMESTAMP BY gives no
    time. `scope` holds each event's OVER key, a struct where it has several columns; an event whose key is or holds
    NULL is an invalid timestamp.
    """
    verdict = np.full(len(time), Verdict.ON_TIME, np.int8)
    system_timestamp = time.copy()
    if scope is not None:
        valid = valid & _has_key(scope)
    verdict[~valid] = Verdict.INVALID_TIMESTAMP

    early = np.zeros(len(time), bool)
    if policies.early is not None:
        early = valid & (time - arrival > policies.early)
        verdict[early] = Verdict.EARLY_ADJUSTED if policies.adjust_early else Verdict.EARLY_DROPPED
        system_timestamp[early] = arrival[early] + policies.early

    late = np.zeros(len(time), bool)
    if policies.late is not None:
        late = valid & ~early & (arrival - time > policies.late)
        verdict[late] = Verdict.LATE_ADJUSTED if policies.adjust else Verdict.LATE_DROPPED
        system_timestamp[late] = arrival[late] - policies.late

    ordered = valid if policies.adjust_early else valid & ~early
    here = np.flatnonzero(ordered if policies.adjust else ordered & ~late)
    # What is adjusted or dropped here lies below the running maximum, so it may take part in it.
    running = watermark.advance(system_timestamp[here], None if scope is None else scope.take(pa.array(here)))
    behind = system_timestamp[here] < running - policies.out_of_order
    out_of_order = np.zeros(len(time), bool)
    out_of_order[here[behind]] = True
    verdict[out_of_order] = Verdict.OUT_OF_ORDER_ADJUSTED if policies.adjust else Verdict.OUT_OF_ORDER_DROPPED
    system_timestamp[out_of_order] = (running - policies.out_of_order)[behind]
    return Judged(verdict, system_timestamp, early, late, out_of_order)


def _has_key(scope: pa.Array) -> NDArray[np.bool_]:
    members = scope.flatten() if pa.types.is_struct(scope.type) else [scope]
    present = pc.is_valid(scope)
    for member in members:
        present = pc.and_(present, pc.is_valid(member))
    return present.to_numpy(zero_copy_only=False)
