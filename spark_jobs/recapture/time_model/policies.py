"""ASA's early, late and out-of-order policies over one input partition (docs/time-model.md, section 2).

Events are judged chunk by chunk in arrival order; `LargestTimes` carries what is needed from one chunk to the next.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.process.startup import UNUSED_BY_NUMBA, hidden
from recapture.time_model.verdicts import PROCESSED, Verdict

BEFORE_EVERYTHING = np.iinfo(np.int64).min // 2
"""Largest time of a scope without events. It is less than any time, and a tolerance can be subtracted from it."""
EARLY_SECONDS = 300
"""ASA's early arrival window, in seconds."""
LARGEST_LATE = 1_814_399
"""Largest late tolerance of ASA, in seconds: three weeks minus a second."""
LARGEST_OUT_OF_ORDER = 599
"""Largest out-of-order tolerance of ASA, in seconds."""
_NO_LIMIT = int(np.iinfo(np.int64).max)
"""A duration longer than that between any two times, in ticks."""


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
        known = chunk.dictionary[:0] if self._known is None else self._known
        found = pc.index_in(chunk.dictionary, value_set=known)
        is_new = found.is_null()
        self._known = pa.concat_arrays([known, chunk.dictionary.filter(is_new)]) if found.null_count else known
        numbers = found.fill_null(0).to_numpy().astype(np.int64)
        numbers[is_new.to_numpy(zero_copy_only=False)] = len(known) + np.arange(found.null_count)
        return numbers[chunk.indices.to_numpy()]

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
        self.by_scope = np.empty(0, np.int64)
        """Largest time of each scope in ticks, by number; `judge` updates it."""

    def scopes(self, valid: NDArray[np.bool_], scope: pa.Array | None) -> NDArray[np.int64]:
        """Return the number of each event's scope, from 0; -1 if the event is not valid or has no key."""
        if scope is None:
            scopes = np.where(valid, 0, -1)
        else:
            valid = valid & has_key(scope)
            scopes = np.full(len(valid), -1)
            scopes[valid] = self._keys.encode(scope if valid.all() else scope.filter(pa.array(valid)))
        unseen = scopes.max(initial=-1) + 1 - len(self.by_scope)
        if unseen > 0:
            self.by_scope = np.concatenate([self.by_scope, np.full(unseen, BEFORE_EVERYTHING)])
        return scopes


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
    count, scopes = len(time), largest_times.scopes(valid, scope)
    judged = Judged(
        verdict=np.where(scopes < 0, Verdict.INVALID_TIMESTAMP, Verdict.ON_TIME).astype(np.int8),
        system_timestamp=time.copy(),
        early=np.zeros(count, bool),
        late=np.zeros(count, bool),
        out_of_order=np.zeros(count, bool),
        largest_time=np.full(count, BEFORE_EVERYTHING),
        behind=np.zeros(count, np.int64),
    )
    with hidden(UNUSED_BY_NUMBA):
        from recapture.time_model import policy_loops

        policy_loops.apply_policies(
            _read_only(scopes),
            _read_only(time),
            _read_only(arrival),
            _or_no_limit(policies.early_window),
            _or_no_limit(policies.late_tolerance),
            policies.out_of_order_tolerance,
            policies.adjust_early,
            policies.adjust,
            largest_times.by_scope,
            judged.verdict,
            judged.system_timestamp,
            judged.early,
            judged.late,
            judged.out_of_order,
            judged.largest_time,
            judged.behind,
        )
    return judged


def _or_no_limit(duration: int | None) -> int:
    return _NO_LIMIT if duration is None else duration


def _read_only(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a read-only view: Numba compiles another version of a function for writable arrays."""
    view = values.view()
    view.flags.writeable = False
    return view


def has_key(scope: pa.Array) -> NDArray[np.bool_]:
    """Return which events have a key, with a value in each of its columns."""
    members = scope.flatten() if pa.types.is_struct(scope.type) else [scope]
    present = pc.is_valid(scope)
    for member in members:
        present = pc.and_(present, pc.is_valid(member))
    return present.to_numpy(zero_copy_only=False)
