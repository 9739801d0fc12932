"""Slices, and what has to be read to compute one on its own (docs/time-model.md, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

DUPLICATE_HORIZON = from_seconds(3600)
"""How long after an event a duplicate of it may arrive and be recognised, in ticks.

The arrivals of this period before the first judged arrival are also read, but only for their sequence numbers.
"""


@dataclass(frozen=True, order=True)
class Slice:
    """A range (start, end] of window end times that is computed and published as a unit; ticks."""

    start: int
    """Start of the range, exclusive."""
    end: int
    """End of the range, inclusive."""

    def contains(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these times lie in the slice."""
        return (times > self.start) & (times <= self.end)


@dataclass(frozen=True)
class Arrivals:
    """The arrivals [first, last] that decide a slice; ticks."""

    first: int
    """First arrival that is read."""
    last: int | None
    """Last arrival that is read; None if every later arrival counts."""
    independent_of_start: bool = True
    """Whether verdicts and times stay the same if judging starts earlier than this range."""

    @property
    def first_judged(self) -> int:
        """First arrival that is judged; of events before it, only the sequence numbers are read."""
        return self.first + DUPLICATE_HORIZON

    def contains(self, arrival: int) -> bool:
        """Return whether an arrival is one of these."""
        return self.first <= arrival and (self.last is None or arrival <= self.last)


def slices_between(start: int, end: int, length: int) -> Iterator[Slice]:
    """Yield the slices that make up (start, end]; both are slice boundaries."""
    for bound in range(start, end, length):
        yield Slice(bound, bound + length)


def arrivals_of(slice_: Slice, policies: Policies | None, look_back: int) -> Arrivals:
    """Return what must be read, from empty state, for exact rows and exact verdicts of a slice.

    `look_back` is that of the query, in ticks. `policies` is None without TIMESTAMP BY: System.Timestamp is
    the arrival then. Without a late limit, only the rows are exact. Without an early window, neither the rows nor the
    verdicts are; the slice is then read as if the window were ASA's, so that every run gives the same result. The range
    starts DUPLICATE_HORIZON earlier than rows and verdicts need, so that duplicates are recognised.
    """
    if policies is None:
        return Arrivals(slice_.start - look_back - DUPLICATE_HORIZON, slice_.end)
    early, late = policies.early_window, policies.late_tolerance
    independent = early is not None and late is not None
    early = from_seconds(EARLY_SECONDS) if early is None else early
    for_rows = slice_.start - early - look_back
    if late is None:
        return Arrivals(for_rows - DUPLICATE_HORIZON, None, independent)
    for_verdicts = slice_.start - early - late
    return Arrivals(min(for_rows, for_verdicts) - DUPLICATE_HORIZON, slice_.end + late, independent)
