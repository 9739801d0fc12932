"""Choose what an update does that computes one range at a time, so that the newest slice waits for one run at most."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from recapture.keep.due import DueRange, DueSlice, SliceFacts, State, Tick, tick

NEXT = "the next update, because its run failed"


Tried = Mapping[int, str | None]
"""Slices that updates tried, by their starts in ticks, each with the stopped run to which it belonged, if any."""


@dataclass(frozen=True)
class NewestRange:
    """What an update does that computes one range, and what it leaves."""

    tick: Tick
    """What is due, without the slices that failed."""
    failed: Tried
    """Slices that were tried and failed."""

    @property
    def range(self) -> DueRange | None:
        """Newest range that is due; None if nothing is due."""
        return next(iter(self.tick.ranges), None)

    @property
    def tried(self) -> Tried:
        """Slices that the next update leaves out if they are still due."""
        return {
            **self.failed,
            **{slice_.start: _stopped(slice_) for slice_ in (self.range.slices if self.range else ())},
        }

    @property
    def next(self) -> int | None:
        """Start of the newest slice that the next update may compute at once, in ticks; None if there is none.

        If the audit stops a range of several slices, these are its halves.
        """
        left = [slice_.start for slice_ in _all_of(replace(self.tick, ranges=self.tick.ranges[1:]))]
        own = self.range.slices if self.range else ()
        return max([*left, *(slice_.start for slice_ in own[-1:] if len(own) > 1)], default=None)


def newest_range(state: State, tried: Tried) -> NewestRange:
    """Return what an update does in this state.

    `tried` are the slices that the updates just before this one tried. Those that are still due failed, and wait, so
    that they do not keep older slices from being computed. Slices that the audit has stopped since are tried again,
    because only those of the same half are computed together now.
    """
    due = tick(state)
    failed = {
        slice_.start: tried[slice_.start]
        for slice_ in _all_of(due)
        if slice_.start in tried and tried[slice_.start] == _stopped(slice_)
    }
    if failed:
        waiting = {start: replace(state.slices.get(start, SliceFacts()), waits_for=(NEXT,)) for start in failed}
        due = tick(replace(state, slices={**state.slices, **waiting}))
    return NewestRange(due, failed)


def _all_of(due: Tick) -> Iterator[DueSlice]:
    for range_ in due.ranges:
        yield from range_.slices
    yield from due.left


def _stopped(slice_: DueSlice) -> str | None:
    return None if slice_.half is None else slice_.half[0]
