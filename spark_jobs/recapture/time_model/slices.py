"""Slices, and what has to be read to compute one on its own (docs/time-model.md, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

REMEMBERED = from_seconds(3600)
"""How long after an event a duplicate of it may arrive and be recognised, in ticks.

So much is read before what is judged, for the sequence numbers alone.
"""


@dataclass(frozen=True, order=True)
class Slice:
    """A range (start, end] of window ends that is computed and published as one; ticks."""

    start: int
    end: int

    def holds(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these times lie in the slice."""
        return (times > self.start) & (times <= self.end)


@dataclass(frozen=True)
class Arrivals:
    """The arrivals [first, last] that decide a slice; ticks."""

    first: int
    last: int | None
    """None if every later arrival counts."""
    settled: bool = True
    """Whether an event gets the same verdict and time wherever judging begins, if only all of these are read."""

    @property
    def judged(self) -> int:
        """First arrival that is judged; of events before it, only the sequence numbers are read."""
        return self.first + REMEMBERED

    def hold(self, arrival: int) -> bool:
        """Return whether an arrival is one of these."""
        return self.first <= arrival and (self.last is None or arrival <= self.last)


def slices_between(start: int, end: int, length: int) -> Iterator[Slice]:
    """Yield the slices that make up (start, end]; both are bounds of slices."""
    for bound in range(start, end, length):
        yield Slice(bound, bound + length)


def arrivals_of(slice_: Slice, policies: Policies | None, look_back: int) -> Arrivals:
    """Return what must be read, from empty state, for exact rows and exact verdicts of a slice.

    `look_back` is that of the query's windows, in ticks. `policies` is None without TIMESTAMP BY: System.Timestamp is
    the arrival then. Without a late tolerance only the rows are exact. Without an early window neither rows nor
    verdicts are; the slice is read as if the window were ASA's, so that it gives the same each time. The hour of
    REMEMBERED is added before all of this, so that a duplicate finds its event.
    """
    if policies is None:
        return Arrivals(slice_.start - look_back - REMEMBERED, slice_.end)
    early = from_seconds(EARLY_SECONDS) if policies.early is None else policies.early
    settled = policies.early is not None and policies.late is not None
    for_times = slice_.start - look_back - early
    if policies.late is None:
        return Arrivals(for_times - REMEMBERED, None, settled)
    for_verdicts = slice_.start - early - policies.late
    return Arrivals(min(for_times, for_verdicts) - REMEMBERED, slice_.end + policies.late, settled)
