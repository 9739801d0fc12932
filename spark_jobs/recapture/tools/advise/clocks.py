"""Clocks that are wrong: how far the application times of each device are from the time of the hub.

An event reaches the hub after it was measured. So the application time of a right clock is at most the enqueued time,
and close to it for the quickest events. The error of a clock is therefore the 95th percentile of application time less
enqueued time: above 0, the clock is ahead; far below 0, it is behind, or every event takes that long to reach the hub.
Delays, outages and batches of a device do not matter as long as a twentieth of its events is quick.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.time_model.key_codes import KeyCodes
from recapture.time_model.ticks import TICKS_PER_SECOND

QUANTILE = 0.95
MIN_EVENTS = 10
"""Smallest number of events by which a clock is judged."""
MIN_AHEAD = 10
"""Smallest error that is reported of a clock that is ahead, in seconds."""
MIN_BEHIND = 60
"""Smallest error that is reported of a clock that is behind, in seconds: less may be a slow network, or batches."""
_WIDTH = 0.05
"""Relative width of the bins in which differences are counted."""
_BINS = 1 << 12


@dataclass(frozen=True)
class WrongClock:
    """A device whose clock is wrong."""

    device: str
    seconds: float
    """Error of the clock in seconds; positive if it is ahead."""
    events: int
    dropped: int
    """Events of the device that the early window drops; they move no watermark."""


class Clocks:
    """Counts the differences of application time and hub's time, by device.

    The memory depends on the number of devices and on how much the differences of each vary, not on the events.
    """

    def __init__(self) -> None:
        self._devices = KeyCodes()
        self._cells: NDArray[np.int64] = np.zeros(0, np.int64)
        """Device and bin of each cell, as one number; ascending."""
        self._events: NDArray[np.int64] = np.zeros(0, np.int64)
        self._seconds: NDArray[np.float64] = np.zeros(0)
        """Sum of the differences in each cell, in seconds."""
        self._dropped: NDArray[np.int64] = np.zeros(0, np.int64)
        """Events that the early window drops, by device."""

    def add(
        self, device: pa.Array, time: NDArray[np.int64], hub: NDArray[np.int64], dropped: NDArray[np.bool_]
    ) -> None:
        """Count events by the name of their device (string, without NULL).

        `time` has application times and `hub` enqueued times, in ticks; `dropped` is true for events that the early
        window drops.
        """
        if not len(device):
            return
        seconds = (time - hub) / TICKS_PER_SECOND
        bins = np.rint(np.arcsinh(seconds) / _WIDTH).astype(np.int64) + _BINS // 2
        devices = self._devices.encode(device)
        counted = np.bincount(devices[dropped], minlength=len(self._devices.values))
        counted[: len(self._dropped)] += self._dropped
        self._dropped = counted
        cells = np.concatenate([self._cells, devices * _BINS + bins])
        events = np.concatenate([self._events, np.ones(len(device), np.int64)])
        sums = np.concatenate([self._seconds, seconds])
        self._cells, cell = np.unique(cells, return_inverse=True)
        self._events = np.bincount(cell, events).astype(np.int64)
        self._seconds = np.bincount(cell, sums).astype(np.float64)

    def wrong(self, max_delay: float) -> tuple[int, list[WrongClock]]:
        """Return the number of devices that were judged, and those whose clocks are wrong, the worst first.

        `max_delay` is how much later than the enqueued time the time in its place may be, in seconds.
        """
        names = self._devices.values
        device = self._cells // _BINS
        devices, first = np.unique(device, return_index=True)
        if not len(devices):
            return 0, []
        totals = np.add.reduceat(self._events, first)
        so_far = np.cumsum(self._events)
        before = np.concatenate([[0], so_far])[first]
        quantile = np.searchsorted(so_far, before + np.ceil(QUANTILE * totals))
        errors = self._seconds[quantile] / self._events[quantile]
        judged = totals >= MIN_EVENTS
        off = judged & ((errors > MIN_AHEAD) | (errors < -MIN_BEHIND - max_delay))
        clocks = [
            WrongClock(
                device=names[int(devices[index])].as_py(),
                seconds=round(float(errors[index]), 1),
                events=int(totals[index]),
                dropped=int(self._dropped[devices[index]]),
            )
            for index in np.flatnonzero(off)
        ]
        return int(judged.sum()), sorted(clocks, key=lambda clock: (-abs(clock.seconds), clock.device))
