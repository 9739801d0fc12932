"""Say in a sentence what a hole is, and what can be done about it."""

from recapture.archive.holes import Hole, Kind
from recapture.process.wording import counted, of_input
from recapture.time_model import ticks

_RETENTIONS = (7, 90)
"""Longest times that a hub keeps events, in days: in the standard tier, and in the premium and dedicated ones."""
_DAY = ticks.from_seconds(24 * 3600)


def sentence(hole: Hole, *, name_input: bool) -> str:
    """Return what a hole is. If `name_input`, name the input.

    For example: partition 2 lacks 2,878 events from 02:00 to 04:00: sequence numbers 2881 to 5758; 24 blobs are missing
    """
    place = f"partition {hole.partition}{of_input(hole.input if name_input else None)}"
    blobs = f"{counted(hole.blobs, 'blob is', 'blobs are')} missing"
    between = _between(hole)
    match hole.kind:
        case Kind.LOST:
            numbers = f"sequence number{'s' * (hole.events != 1)} {_range(hole)}"
            with_blobs = f"; {blobs}" if hole.blobs else ""
            return f"{place} lacks {counted(hole.events or 0, 'event')}{between}: {numbers}{with_blobs}"
        case Kind.UNKNOWN:
            numbers = f"; sequence numbers 0 to {hole.last} are not in the archive" if hole.last is not None else ""
            return f"{place}: {blobs}{between}{numbers}; it is not known whether they held events"
        case Kind.RECREATED:
            with_blobs = f"; {blobs}" if hole.blobs else ""
            return (
                f"{place}: the sequence numbers start again at {hole.first}{_between(hole, 'between', 'and')}, so the "
                f"hub was recreated; it is not known whether the last events of the old hub were captured{with_blobs}"
            )
        case Kind.BEGINS if hole.events == 0:
            return f"{place} begins at {_text(hole.end)} with sequence number 0: no earlier event is missing"
        case Kind.BEGINS:
            numbers = "" if hole.first is None else f", and its first sequence number is {hole.first}"
            return (
                f"{place} has no blob before {_text(hole.end)}{numbers}: "
                "it is not known whether the partition is new, or its earlier blobs were removed"
            )
        case Kind.DISPLACED:
            some_were = f"1 blob{between} was" if hole.blobs == 1 else f"{hole.blobs:,} blobs{between} were"
            were = f"every blob{between} was" if hole.is_whole else some_were
            return (
                f"{place}: {were} written in another slice (the first at {_text(hole.written)}), so the events count "
                "there"
            )
        case Kind.SILENT | Kind.QUIET:
            return f"{place}: no blob arrived{between}; it is not known whether events are missing"
        case Kind.PAUSED:
            return f"{place}: {blobs}{between}, but the sequence numbers continue: no event is missing"


def remedy(hole: Hole) -> str:
    """Return what can be done about a hole; empty if nothing is missing."""
    if hole.severity == "info":
        return ""
    if hole.kind is Kind.DISPLACED:
        return "if the blobs were copied, or Capture was late, set arrival_time to EventEnqueuedUtcTime"
    restore = "restore the blobs if they were moved or deleted"
    if hole.end is None or not hole.from_hub:
        return restore
    week, quarter = (_text(hole.end + days * _DAY) for days in _RETENTIONS)
    return (
        f"{restore}; the hub may still have the events, until {week} if it keeps events for 7 days, or until {quarter} "
        "if it keeps them for 90"
    )


def _between(hole: Hole, before_start: str = "from", before_end: str = "to") -> str:
    if hole.start is None or hole.end is None:
        return ""
    start, end = sorted((hole.start, hole.end))  # numbers may have been enqueued in another order
    return f" {before_start} {_text(start)} {before_end} {_text(end)}"


def _range(hole: Hole) -> str:
    return f"{hole.first}" if hole.first == hole.last else f"{hole.first} to {hole.last}"


def _text(instant: int | None) -> str:
    if instant is None:
        return "an unknown time"
    return ticks.to_text(min(instant, ticks.LARGEST) // ticks.TICKS_PER_SECOND * ticks.TICKS_PER_SECOND)
