"""Windows as values (docs/time-model.md, section 4). Durations are ticks; ends are inclusive."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.ticks import TICKS_PER_SECOND

REMEMBERED_SPANS = 4
"""Number of spans with one event each, after a cut that is certain, over which the cuts alternate as in ASA."""

LARGEST_SIZE = 7 * 24 * 3600 * TICKS_PER_SECOND
"""Largest size of a window, seven days, in ticks."""


@dataclass(frozen=True)
class HoppingWindow:
    """Every window (end - size, end] with end = offset + k * hop that holds the event.

    A tumbling window is a hopping window whose hop is its size.
    """

    size: int
    hop: int
    offset: int = 0

    @property
    def look_back(self) -> int:
        """How far before a slice an event may lie and still belong to a window that ends in the slice."""
        return self.size


@dataclass(frozen=True)
class SlidingWindow:
    """Every window (end - size, end] that ends where its content changes: at an event, or a size after it."""

    size: int

    @property
    def look_back(self) -> int:
        return self.size


@dataclass(frozen=True)
class SessionWindow:
    """Events of one partition key, each within `timeout` of the one before, cut at multiples of `longest`."""

    timeout: int
    """At most `longest`."""
    longest: int

    @property
    def look_back(self) -> int:
        """Return how far back an event may decide where a session that ends in the slice begins (section 4.2).

        That is the event before the opening that the first cut depends on. Each span holds two events if the timeout
        is at most half of `longest`, and then there is a cut at the end of every span.
        """
        spans = 4 if 2 * self.timeout <= self.longest else 6 + REMEMBERED_SPANS
        return spans * self.longest + self.timeout


@dataclass(frozen=True)
class SnapshotWindow:
    """Events of equal System.Timestamp, which is the window's end."""

    @property
    def look_back(self) -> int:
        return 0


Window = HoppingWindow | SlidingWindow | SessionWindow | SnapshotWindow


@dataclass(frozen=True)
class Reach:
    """The events that a window needs, extended back by `ahead` ticks because later steps look back."""

    window: Window
    ahead: int = 0

    @property
    def look_back(self) -> int:
        return self.window.look_back + self.ahead

    def holds(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Return which events, by time, may belong to a window that ends in (start - ahead, end]; all in ticks."""
        start -= self.ahead
        if not isinstance(self.window, HoppingWindow):
            return (time > start - self.window.look_back) & (time <= end)
        size, hop, offset = self.window.size, self.window.hop, self.window.offset
        earliest = np.maximum(time, start + 1)
        first_end = offset - (offset - earliest) // hop * hop
        return (first_end <= end) & (first_end < time + size)
