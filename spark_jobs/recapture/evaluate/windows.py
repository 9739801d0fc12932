"""Which panes each window of a GROUP BY holds.

The panes of a key are in order of time, so a window holds panes next to each other. Both ends of these ranges only grow
from window to window of a key, and the keys come one after another.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.panes import Panes, starts_of
from recapture.process.compilation import compiled, inlined
from recapture.time_model.windows import HoppingWindow, SlidingWindow


class Windows(NamedTuple):
    """Windows that hold a pane, in the order of key and end."""

    ends: NDArray[np.int64]
    """End of each window, in ticks."""
    first: NDArray[np.int64]
    """First pane of each window."""
    last: NDArray[np.int64]
    """The pane after the last one of each window."""

    def ending_in(self, after: int, until: int) -> "Windows":
        """Return the windows that end in (after, until]."""
        return Windows(*(column[(self.ends > after) & (self.ends <= until)] for column in self))

    def divided(self, most: int) -> "Iterator[Windows]":
        """Yield the windows in parts of `most` at most; at least one part."""
        for start in range(0, max(1, len(self.ends)), most):
            yield Windows(*(column[start : start + most] for column in self))


def hopping(panes: Panes, window: HoppingWindow, after: int, until: int) -> Windows:
    """Return the windows of a hopping or tumbling window that end in (after, until]."""
    if window.hop == window.size:
        return runs(panes, panes.times).ending_in(after, until)
    count = _hopping(panes, window.size, window.hop, window.offset, after, until, _empty(0))
    windows = _empty(count)
    _hopping(panes, window.size, window.hop, window.offset, after, until, windows)
    return windows


def sliding(panes: Panes, window: SlidingWindow, after: int, until: int) -> Windows:
    """Return the sliding windows that end in (after, until]."""
    count = _sliding(panes, window.size, after, until, _empty(0))
    windows = _empty(count)
    _sliding(panes, window.size, after, until, windows)
    return windows


def runs(panes: Panes, ends: NDArray[np.int64]) -> Windows:
    """Return the windows of panes that belong to one window each, given its end."""
    starts = starts_of(panes.codes, ends)
    return Windows(ends[starts[:-1]], starts[:-1], starts[1:])


def _empty(count: int) -> Windows:
    return Windows(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64))


@compiled
def _hopping(panes: Panes, size: int, hop: int, offset: int, after: int, until: int, windows: Windows) -> int:
    """Write the windows that end in (after, until], as far as there is room. Return how many there are."""
    codes, times = panes.codes, panes.times
    count = start = 0
    while start < len(codes):
        stop = _next_key(codes, start)
        first = last = start
        end = after + 1 + (offset - after - 1) % hop
        while first < stop:
            end = max(end, times[first] + (offset - times[first]) % hop)
            if end > until:
                break
            while last < stop and times[last] <= end:
                last += 1
            while first < last and times[first] <= end - size:
                first += 1
            if first < last:
                if count < len(windows.ends):
                    windows.ends[count], windows.first[count], windows.last[count] = end, first, last
                count += 1
                end += hop
        start = stop
    return count


@compiled
def _sliding(panes: Panes, size: int, after: int, until: int, windows: Windows) -> int:
    """Write the windows that end in (after, until], as far as there is room. Return how many there are.

    A window ends when a pane enters it, and when one leaves it.
    """
    codes, times = panes.codes, panes.times
    count = start = 0
    while start < len(codes):
        stop = _next_key(codes, start)
        first = last = start
        while first < stop:
            end = times[first] + size
            if last < stop:
                end = min(end, times[last])
            while last < stop and times[last] <= end:
                last += 1
            while first < last and times[first] <= end - size:
                first += 1
            if first < last and after < end <= until:
                if count < len(windows.ends):
                    windows.ends[count], windows.first[count], windows.last[count] = end, first, last
                count += 1
        start = stop
    return count


@inlined
def _next_key(codes: NDArray[np.int64], start: int) -> int:
    """Return the pane after the last one with the key of pane `start`."""
    stop = start + 1
    while stop < len(codes) and codes[stop] == codes[start]:
        stop += 1
    return stop
