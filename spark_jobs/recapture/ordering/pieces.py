"""Events with sequence numbers, cut into pieces with ascending numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled

Int64s = NDArray[np.int64]
"""Sequence numbers, or times in ticks."""


class NumberedEvents(NamedTuple):
    """The events of a chunk that have sequence numbers, in arrival order; every array has one entry per event."""

    number: Int64s
    blob_arrival: Int64s
    """Arrival of the event's blob in ticks."""
    arrival: Int64s
    """Arrival of the event in ticks."""
    enqueued: Int64s
    """Enqueued time in ticks, a whole second, or UNKNOWN."""


class Pieces(NamedTuple):
    """Events in consecutive pieces, each of one blob arrival and with ascending numbers.

    The numbers of a piece are ranges of consecutive numbers with the same enqueued time.
    """

    bounds: Int64s
    """Row with which each piece begins, then the number of rows."""
    range_bounds: Int64s
    """Index of the first range of each piece, then the number of ranges."""
    first: Int64s
    """First number of each range."""
    last: Int64s
    """Last number of each range."""
    enqueued: Int64s
    """Enqueued time of each range in ticks, or UNKNOWN."""
    earliest_enqueued: Int64s
    """Smallest enqueued time of each piece in ticks; UNKNOWN is smaller than any other."""
    last_arrival: Int64s
    """Largest arrival of each piece in ticks."""
    has_skips: NDArray[np.bool_]
    """Whether a piece skips numbers."""
    repeats: NDArray[np.bool_]
    """Whether an event equals the one before, but for its arrival; such an event is in no range."""


@compiled
def cut(events: NumberedEvents) -> Pieces:
    """Return the pieces of the events."""
    number, blob_arrival, arrival, enqueued = events.number, events.blob_arrival, events.arrival, events.enqueued
    rows = len(number)
    bounds, range_bounds = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    first, last, times = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)
    earliest, latest = np.empty(rows, np.int64), np.empty(rows, np.int64)
    has_skips, repeats = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    pieces = ranges = 0
    for row in range(rows):
        same_blob = row > 0 and blob_arrival[row] == blob_arrival[row - 1]
        same_time = row > 0 and enqueued[row] == enqueued[row - 1]
        follows = False
        if same_blob and number[row] > number[row - 1]:
            follows = number[row] == number[row - 1] + 1
            has_skips[pieces - 1] |= not follows
            earliest[pieces - 1] = min(earliest[pieces - 1], enqueued[row])
            latest[pieces - 1] = max(latest[pieces - 1], arrival[row])
        elif same_blob and same_time and number[row] == number[row - 1]:
            repeats[row] = True
            continue
        else:
            bounds[pieces], range_bounds[pieces] = row, ranges
            earliest[pieces], latest[pieces] = enqueued[row], arrival[row]
            pieces += 1
        if follows and same_time:
            last[ranges - 1] = number[row]
        else:
            first[ranges] = last[ranges] = number[row]
            times[ranges] = enqueued[row]
            ranges += 1
    bounds[pieces], range_bounds[pieces] = rows, ranges
    return Pieces(
        bounds[: pieces + 1].copy(),
        range_bounds[: pieces + 1].copy(),
        first[:ranges].copy(),
        last[:ranges].copy(),
        times[:ranges].copy(),
        earliest[:pieces].copy(),
        latest[:pieces].copy(),
        has_skips[:pieces].copy(),
        repeats,
    )
