"""Choose the slices that a run of Airflow's backfill has computed together with its own."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from recapture.keep.compare import Comparison
from recapture.keep.due import Stop
from recapture.keep.sources import Sources
from recapture.keep.state import read_standing_of
from recapture.keep.stops import Stops
from recapture.keep.up_to_date import outstanding


@dataclass(frozen=True)
class Block:
    """Slices of which one run at a time computes several; all times are in ticks.

    The runs of a backfill agree on the blocks without a word: they follow from the length of a slice, the budget, and
    the runs that failed.
    """

    start: int
    end: int


@dataclass(frozen=True)
class Together:
    """Contiguous slices that are computed in one run; all times are in ticks."""

    block: Block
    start: int
    end: int


def together(
    sources: Sources, start: int, now: datetime, active: Callable[[Sequence[int]], Collection[int]]
) -> Together | None:
    """Return the slices that are computed together with the one from `start`; None if it is computed alone.

    `active` returns those of these slices that have an active run of the same backfill. Slices that are up to date, for
    which Capture has not written everything, or that failed alone, are not among them. Of a run that failed, only
    slices of the same half are computed together, so that the slice at fault is alone in the end.
    """
    length, most = sources.length, sources.schedule.at_most_slices
    if sources.is_never_final:
        return None
    first = start // (most * length) * (most * length)
    others = [other for other in range(first, first + most * length, length) if other != start]
    near = sorted(_contiguous(start, {*active(others)}, length))
    if len(near) == 1:
        return None
    standing = read_standing_of(sources)
    comparison, stops = Comparison(sources, standing, now), Stops(sources, standing)
    archived = {slice_.slice.start: slice_ for slice_ in comparison.archived(near)}
    block = block_of(start, length, most, stops.stop(start, archived[start]))
    if block is None:
        return None
    due = {
        slice_.slice.start
        for slice_ in outstanding(sources, standing, comparison, archived.values())
        if not slice_.waits_for
        and block_of(slice_.slice.start, length, most, stops.stop(slice_.slice.start, slice_)) == block
    }
    slices = _contiguous(start, due, length)
    if sources.schedule.at_most_bytes is not None:
        sizes = itertools.accumulate(archived[slice_].size for slice_ in slices)
        fits = [size <= sources.schedule.at_most_bytes for size in sizes]
        slices = [start, *(slice_ for slice_, is_within in zip(slices[1:], fits[1:], strict=True) if is_within)]
    return Together(block, min(slices), max(slices) + length) if len(slices) > 1 else None


def block_of(start: int, length: int, most: int, stop: Stop | None) -> Block | None:
    """Return the block of a slice, at `most` that many slices; None if it failed alone. `stop` is its last failure."""
    first = start // (most * length) * (most * length)
    end = first + most * length
    if stop is None or not stop.repeats:
        return Block(first, end)
    if stop.is_alone:
        return None
    middle = stop.start + stop.slices // 2 * length
    half = (stop.start, middle) if start < middle else (middle, stop.start + stop.slices * length)
    return Block(max(first, half[0]), min(end, half[1]))


def _contiguous(start: int, slices: Collection[int], length: int) -> list[int]:
    """Return a slice, those after it without a gap, and then those before it without a gap."""
    after = itertools.takewhile(slices.__contains__, itertools.count(start + length, length))
    before = itertools.takewhile(slices.__contains__, itertools.count(start - length, -length))
    return [start, *after, *before]
