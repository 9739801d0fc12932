"""Summarise an update: what is due, what is left and what waits, in JSON types."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from recapture.keep.due import DueSlice, Tick, WaitingSlice
from recapture.keep.state import Reading
from recapture.time_model import ticks


def tick_summary(pipeline: str, reading: Reading, tick: Tick) -> dict[str, Any]:
    """Return what an update does in a state, and why, in JSON types."""
    state = reading.state
    due = [slice_ for range_ in tick.ranges for slice_ in range_.slices]
    return {
        "pipeline": pipeline,
        "now": ticks.whole_seconds(ticks.to_datetime(state.now)),
        "since": ticks.to_text(state.since),
        "until": None if state.schedule.until is None else ticks.text_of(state.schedule.until),
        "due": [_due(slice_) for slice_ in sorted(due, key=lambda slice_: slice_.start)],
        "ranges": [{"from": ticks.to_text(range_.start), "to": ticks.to_text(range_.end)} for range_ in tick.ranges],
        "left": list(_together(sorted(tick.left, key=lambda slice_: slice_.start), state.length)),
        "waiting": list(_together(tick.waiting, state.length)),
        "unfinished": list(map(ticks.to_text, tick.unfinished)),
        "unknown": list(reading.changes.unknown),
        "compared": reading.is_compared,
    }


def _due(slice_: DueSlice) -> dict[str, Any]:
    return {"slice_start": ticks.to_text(slice_.start), "reasons": list(slice_.reasons), "bytes": slice_.size}


def _together(slices: Iterable[DueSlice | WaitingSlice], length: int) -> Iterator[dict[str, Any]]:
    """Yield the ranges of contiguous slices with the same reasons, in order of time."""
    numbered = enumerate(slices)

    def key(item: tuple[int, DueSlice | WaitingSlice]) -> tuple[Any, ...]:
        number, slice_ = item
        waits_for = slice_.waits_for if isinstance(slice_, WaitingSlice) else ()
        return slice_.start - number * length, slice_.reasons, waits_for

    for (_, reasons, waits_for), group in groupby(numbered, key):
        starts = [slice_.start for _, slice_ in group]
        yield {
            "from": ticks.to_text(starts[0]),
            "to": ticks.to_text(starts[-1] + length),
            "reasons": list(reasons),
            "waits_for": list(waits_for),
        }
