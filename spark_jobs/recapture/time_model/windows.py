"""Windows as values: which events a window holds, and how far a slice looks back (docs/time-model.md, section 4).

A window groups events by System.Timestamp. Its end is inclusive: a window of size 5 that ends at 10 holds the events in
(5, 10], and its rows have the System.Timestamp 10. A slice publishes the rows of the windows that end in it. Such a
window may hold events from before the slice, and the look-back says from how far before. Times and durations are ticks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.ticks import TICKS_PER_SECOND

ALTERNATING_SPANS = 4
"""Number of spans over which the cuts alternate as in ASA.

The first of them is a span that always ends with a cut; the others hold one event each.
"""

LARGEST_SIZE = 7 * 24 * 3600 * TICKS_PER_SECOND
"""Largest size of a window, seven days, in ticks."""


@dataclass(frozen=True)
class HoppingWindow:
    """Every window (end - size, end] with end = offset + k * hop, for an integer k.

    A tumbling window is a hopping window whose hop is its size. If the hop is longer, some events are in no window.
    """

    size: int
    """Length of a window."""
    hop: int
    """Time from one window's end to the next."""
    offset: int = 0
    """Shift of the ends from the multiples of the hop, which are counted from 0001-01-01T00:00Z."""

    @property
    def look_back(self) -> int:
        """How long before a slice an event may lie and still belong to a window that ends in the slice."""
        return self.size


@dataclass(frozen=True)
class SlidingWindow:
    """Every window (end - size, end] that ends where its content changes: at an event, or one size after it."""

    size: int
    """Length of a window."""

    @property
    def look_back(self) -> int:
        return self.size


@dataclass(frozen=True)
class SessionWindow:
    """Events of one partition key, each within `timeout` of the one before, cut at multiples of `max_duration`."""

    timeout: int
    """Longest pause within a session; at most `max_duration`."""
    max_duration: int
    """ASA's maxDuration. A session may last longer, because cuts are at multiples of it."""
    offset: int = 0
    """Shift of the cuts from these multiples, which are counted from 0001-01-01T00:00Z; in ticks."""

    @property
    def look_back(self) -> int:
        """How long before a slice an event may lie and still decide a session that ends in the slice; ticks.

        The deadline depends on how long the last pause was. The earliest event that matters is the one just before that
        pause. If the timeout is at most half of `max_duration`, every span without a pause holds two events, and there
        is a cut at the end of each.
        """
        spans = 4 if 2 * self.timeout <= self.max_duration else 6 + ALTERNATING_SPANS
        return spans * self.max_duration + self.timeout


@dataclass(frozen=True)
class SnapshotWindow:
    """The events of one System.Timestamp, which is the window's end."""

    @property
    def look_back(self) -> int:
        return 0


Window = HoppingWindow | SlidingWindow | SessionWindow | SnapshotWindow


@dataclass(frozen=True)
class JoinedSide:
    """The rows of one side of a JOIN, or those of matches (docs/time-model.md, sections 4.4 and 4.6)."""

    look_back: int
    """How long before the System.Timestamp of a joined row, or of a match, a row of it may lie."""


@dataclass(frozen=True)
class Reach:
    """The events that a window, or one side of a JOIN, needs if later steps look back at its rows."""

    window: Window | JoinedSide
    extra_look_back: int = 0
    """How long before a slice the rows of the window or of the JOIN are needed, because later steps look back."""
    analytic_look_back: int = 0
    """How long before an event of the window the analytic functions look."""

    @property
    def look_back(self) -> int:
        """How long before a slice an event may lie and still be needed."""
        return self.window.look_back + self.extra_look_back + self.analytic_look_back

    def holds(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Return which events, by time, may matter to a window or a joined row in (start - extra_look_back, end]."""
        if self.analytic_look_back or not isinstance(self.window, HoppingWindow):
            return (time > start - self.look_back) & (time <= end)
        start -= self.extra_look_back
        size, hop, offset = self.window.size, self.window.hop, self.window.offset
        earliest = np.maximum(time, start + 1)
        first_end = offset - (offset - earliest) // hop * hop
        return (first_end <= end) & (first_end < time + size)
