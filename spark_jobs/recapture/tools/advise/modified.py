"""Where LastModified and the enqueued time disagree: blobs that were written late, copied, or before their events."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.formats.events import UNKNOWN
from recapture.ordering.chunks import Chunk
from recapture.time_model import ticks
from recapture.time_model.ticks import TICKS_PER_SECOND


@dataclass(frozen=True)
class Disagreement:
    """Events of a partition whose blob was modified much later than they were enqueued, or earlier."""

    partition: str
    events: int
    blobs: int
    seconds: float
    """Largest time from enqueued to LastModified; negative if LastModified is earlier."""
    example: str
    """Name of the blob of that event."""


class Modifications:
    """Compares the blobs of one partition with the enqueued times of their events."""

    def __init__(self, partition: str, interval_seconds: int) -> None:
        self._partition = partition
        self._longest = ticks.from_seconds(interval_seconds) + MAX_CLOCK_SKEW
        self._events = 0
        self._blobs: set[str] = set()
        self._furthest, self._example = 0, ""

    def add(self, chunk: Chunk, counted: NDArray[np.bool_]) -> None:
        """Compare the events of a chunk that are `counted`."""
        modified = np.array([ticks.from_datetime(pinned.blob.last_modified) for pinned in chunk.blobs], np.int64)
        age = modified[chunk.blob_index] - chunk.enqueued
        off = np.flatnonzero(counted & (chunk.enqueued != UNKNOWN) & ((age > self._longest) | (age < -MAX_CLOCK_SKEW)))
        if not len(off):
            return
        self._events += len(off)
        self._blobs |= {chunk.blobs[index].blob.name for index in np.unique(chunk.blob_index[off])}
        furthest = off[np.argmax(np.abs(age[off]))]
        if abs(age[furthest]) > abs(self._furthest):
            self._furthest = int(age[furthest])
            self._example = chunk.blobs[chunk.blob_index[furthest]].blob.name

    @property
    def disagreement(self) -> Disagreement | None:
        """What disagrees; None if nothing does."""
        if not self._events:
            return None
        seconds = self._furthest / TICKS_PER_SECOND
        return Disagreement(self._partition, self._events, len(self._blobs), seconds, self._example)
