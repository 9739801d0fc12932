"""The windows of the time model, section 4, as values. Durations are ticks; ends are inclusive."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.time_model.ticks import TICKS_PER_SECOND

LARGEST_SIZE = 7 * 24 * 3600 * TICKS_PER_SECOND


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
        """How far before a slice an event may lie and still belong to a window that ends inside it."""
        return self.size

    def reaches(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Which of the events belong to a window that ends in (start, end]; all in ticks."""
        earliest = np.maximum(time, start + 1)
        first_end = self.offset - (self.offset - earliest) // self.hop * self.hop
        return (first_end <= end) & (first_end < time + self.size)
