"""Slices, and what has to be read to compute one on its own (time model, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_jobs.time_model.policies import Policies


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

    def hold(self, arrival: int) -> bool:
        return self.first <= arrival and (self.last is None or arrival <= self.last)


def slices_between(start: int, end: int, length: int) -> Iterator[Slice]:
    """The slices that make up (start, end]; both ends lie on slice borders."""
    for border in range(start, end, length):
        yield Slice(border, border + length)


def arrivals_of(wanted: Slice, policies: Policies | None, look_back: int) -> Arrivals:
    """What must be read, from empty state, for exact rows and exact verdicts of a slice.

    `look_back` is that of the query's window, in ticks; `policies` is None without TIMESTAMP BY, where
    System.Timestamp is the arrival itself.
    """
    if policies is None:
        return Arrivals(wanted.start - look_back, wanted.end)
    if policies.early is None:
        raise ValueError("without an early window no slice can be computed on its own (time model, section 3)")
    for_times = wanted.start - look_back - policies.early
    if policies.late is None:
        return Arrivals(for_times, None)
    for_verdicts = wanted.start - policies.early - policies.late
    return Arrivals(min(for_times, for_verdicts), wanted.end + policies.late)
