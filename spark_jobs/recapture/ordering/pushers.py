"""Which event pushed the watermark of a scope: the one with the largest System.Timestamp so far."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.ordering.chunks import Chunk
from recapture.time_model.policies import BEFORE_EVERYTHING, Judged

_NONE = -1
"""Index of the event of a scope that no event has pushed."""


@dataclass(frozen=True)
class Events:
    """Where some events are; every column has one entry per event."""

    number: pa.Array
    """Sequence number; NULL for an event without one."""
    place: pa.Array
    """Index in the blob of an event without a sequence number; NULL for others."""
    blob: pa.Array
    """Name of the blob."""

    @classmethod
    def of(cls, chunk: Chunk, rows: NDArray[np.intp]) -> "Events":
        names = pa.array([pinned.blob.name for pinned in chunk.blobs], pa.string())
        """Return where some events of a chunk are."""
        return cls(*chunk.numbers_and_places(rows), names.take(pa.array(chunk.blob_index[rows])))

    @classmethod
    def joined(cls, parts: "Sequence[Events]") -> "Events":
        """Return all of these events."""
        columns = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("number", "place", "blob"))
        return cls(*columns)

    def taken(self, indices: pa.Array) -> "Events":
        """Return the events with these indices; NULL gives an event without a place."""
        return Events(self.number.take(indices), self.place.take(indices), self.blob.take(indices))


class Pushers:
    """The events that pushed the watermarks of the scopes of one partition, chunk by chunk in arrival order."""

    def __init__(self) -> None:
        self._events = Events(pa.array([], pa.int64()), pa.array([], pa.int64()), pa.array([], pa.string()))
        """Events that have pushed the watermark of a scope last."""
        self._by_scope: NDArray[np.int64] = np.empty(0, np.int64)
        """Index of each scope's event, or _NONE."""
        self._largest: NDArray[np.int64] = np.empty(0, np.int64)
        """Largest System.Timestamp so far in each scope, in ticks."""

    def observe(self, chunk: Chunk, judged: Judged, rows: NDArray[np.intp]) -> Events:
        """Return the event that had pushed the watermark when each of these events came, and note the whole chunk.

        All `rows` must be below the watermark: for others, nothing is returned that means anything.
        """
        reached = np.flatnonzero(judged.largest_time != BEFORE_EVERYTHING)
        if not len(reached):
            return self._events.taken(pa.array([], pa.int64()))
        in_scopes = reached[np.argsort(judged.scope[reached], kind="stable")]
        scope, largest = judged.scope[in_scopes], judged.largest_time[in_scopes]
        self._make_room(int(scope[-1]) + 1)
        is_first = np.append(True, scope[1:] != scope[:-1])
        before = np.where(is_first, self._largest[scope], np.append(0, largest[:-1]))
        carried = len(self._events.number)
        starts = np.flatnonzero(is_first)
        own = np.maximum.accumulate(np.where(largest > before, np.arange(len(in_scopes)), _NONE))
        begins = np.repeat(starts, np.diff(np.append(starts, len(in_scopes))))
        pusher = np.where(own >= begins, carried + own, self._by_scope[scope])
        is_last = np.append(is_first[1:], True)
        known = Events.joined([self._events, Events.of(chunk, in_scopes)])
        by_row = np.zeros(len(chunk), np.int64)
        by_row[in_scopes] = pusher
        self._by_scope[scope[is_last]], self._largest[scope[is_last]] = pusher[is_last], largest[is_last]
        seen = self._by_scope != _NONE
        self._events = known.taken(pa.array(self._by_scope[seen]))
        self._by_scope[seen] = np.arange(int(seen.sum()))
        return known.taken(pa.array(by_row[rows]))

    def observe_one(self, time: int, number: int | None, place: int | None, blob: str) -> None:
        """Note an event that reached the disorder rule with this time, in ticks; there is only one scope."""
        self._make_room(1 - len(self._by_scope))
        if time > self._largest[0]:
            columns = (pa.array([number], pa.int64()), pa.array([place], pa.int64()), pa.array([blob], pa.string()))
            self._events, self._by_scope[0], self._largest[0] = Events(*columns), 0, time

    def _make_room(self, scopes: int) -> None:
        more = scopes - len(self._by_scope)
        if more > 0:
            self._by_scope = np.append(self._by_scope, np.full(more, _NONE))
            self._largest = np.append(self._largest, np.full(more, BEFORE_EVERYTHING))
