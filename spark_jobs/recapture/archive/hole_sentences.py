"""Say in a sentence what a hole is, and what can be done about it."""

from recapture.archive.holes import Hole, Kind
from recapture.time_model import ticks
from recapture.wording import counted, of_input

_RETENTIONS = (7, 90)
"""Longest times that a hub keeps events, in days: in the standard tier, and in the premium and dedicated ones."""
_DAY = ticks.from_seconds(24 * 3600)


def sentence(hole: Hole, *, name_input: bool) -> str:
    """Return what a hole is. If `name_input`, name the input.

    For example: partition 2 lacks 2,878 events (sequence numbers 2881 to 5758) from 02:00 to 04:00, and 24 blobs.
    """
    place = f"partition {hole.partition}{of_input(hole.input if name_input else None)}"
    blobs = (
        f"{counted(hole.blobs, 'blob that Capture must have written is', 'blobs that Capture must have written are')}"
    )
    between = _between(hole)
    match hole.kind:
        case Kind.LOST:
            numbers = f"sequence number{'s' * (hole.events != 1)} {_range(hole)}"
            with_blobs = f"; {blobs} missing" if hole.blobs else ""
            return f"{place} lacks {counted(hole.events or 0, 'event')}{between}: {numbers}{with_blobs}"
        case Kind.UNKNOWN:
            numbers = f"; sequence numbers 0 to {hole.last} are not in the archive" if hole.last is not None else ""
            return f"{place}: {blobs} missing{between}{numbers}"
        case Kind.RECREATED:
            with_blobs = f"; {blobs} missing" if hole.blobs else ""
            return (
                f"{place}: the sequence numbers start again at {hole.first}{between}, so the hub was created anew; "
                f"nothing tells whether its last events before that were captured{with_blobs}"
            )
        case Kind.BEGINS if hole.events == 0:
            return f"{place} begins at {_text(hole.end)}, with sequence number 0: nothing is missing before"
        case Kind.BEGINS:
            numbers = "" if hole.first is None else f", with sequence number {hole.first}"
            return (
                f"{place} has no blob before {_text(hole.end)}{numbers}: "
                "nothing tells whether it existed before, or its blobs were removed"
            )
        case Kind.DISPLACED:
            every = "every blob" if hole.is_whole else counted(hole.blobs, "blob")
            return (
                f"{place}: {every}{between} was written at another time (the first at {_text(hole.written)}), so that "
                "its events count in other slices"
            )
        case Kind.SILENT | Kind.QUIET:
            return f"{place}: no blob arrived{between}; nothing tells whether events are missing"
        case Kind.PAUSED:
            return f"{place}: {blobs} missing{between}, but its sequence numbers continue: no event is missing"


def remedy(hole: Hole) -> str:
    """Return what can be done about a hole; empty if nothing is missing."""
    if hole.severity == "info":
        return ""
    if hole.kind is Kind.DISPLACED:
        return "if the archive was copied, or Capture was late, read it by arrival_time: EventEnqueuedUtcTime"
    restore = "restore the blobs if they were moved or deleted"
    if hole.end is None or not hole.from_hub:
        return restore
    week, quarter = (_text(hole.end + days * _DAY) for days in _RETENTIONS)
    return (
        f"{restore}; the hub itself may hold the events until {week} if it keeps events for 7 days, "
        f"or until {quarter} if it keeps them for 90"
    )


def _between(hole: Hole) -> str:
    if hole.start is None or hole.end is None:
        return ""
    return f" from {_text(hole.start)} to {_text(hole.end)}"


def _range(hole: Hole) -> str:
    return f"{hole.first}" if hole.first == hole.last else f"{hole.first} to {hole.last}"


def _text(instant: int | None) -> str:
    if instant is None:
        return "an unknown time"
    return ticks.to_text(min(instant, ticks.LARGEST) // ticks.TICKS_PER_SECOND * ticks.TICKS_PER_SECOND)
