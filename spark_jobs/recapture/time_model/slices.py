"""Slices, and what has to be read to compute one on its own (time model, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass

from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

REMEMBERED = from_seconds(3600)
"""How long after an event a copy of it may arrive and be known as one. So much is read before what is judged."""


@dataclass(frozen=True, order=True)
class Slice:
    """A range (start, end] of window ends that is computed and published as one; ticks."""

    start: int
    end: int


@dataclass(frozen=True)
class Arrivals:
    """The arrivals [first, last] that decide a slice; ticks. `last` is None where every later arrival counts."""

    first: int
    last: int | None
    settled: bool = True
    """False where what becomes of an event depends on where judging began, whatever was read before."""

    @property
    def judged(self) -> int:
        """From where events are judged; of those before, only the sequence numbers are read."""
        return self.first + REMEMBERED

    def hold(self, arrival: int) -> bool:
        return self.first <= arrival and (self.last is None or arrival <= self.last)


def slices_between(start: int, end: int, length: int) -> Iterator[Slice]:
    """The slices that make up (start, end]; both ends lie on slice borders."""
    for border in range(start, end, length):
        yield Slice(border, border + length)


def arrivals_of(wanted: Slice, policies: Policies | None, look_back: int) -> Arrivals:
    """What must be read, from empty state, for exact rows and exact verdicts of a slice.

    `look_back` is that of the query's windows, in ticks; `policies` is None without TIMESTAMP BY, where
    System.Timestamp is the arrival itself. Without a late limit only the rows are exact. Without an early window
    neither is: it is read as if the window were ASA's, so that a slice gives the same each time. All of this lies
    behind REMEMBERED, in which a copy finds its event.
    """
    if policies is None:
        return Arrivals(wanted.start - look_back - REMEMBERED, wanted.end)
    early = from_seconds(EARLY_SECONDS) if policies.early is None else policies.early
    settled = policies.early is not None and policies.late is not None
    for_times = wanted.start - look_back - early
    if policies.late is None:
        return Arrivals(for_times - REMEMBERED, None, settled)
    for_verdicts = wanted.start - early - policies.late
    return Arrivals(min(for_times, for_verdicts) - REMEMBERED, wanted.end + policies.late, settled)
