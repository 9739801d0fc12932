"""Choose the slices whose blobs an update lists: those that Capture or a changed blob may concern. This does no I/O."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recapture.archive.definitions import InputDefinition
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

MARGIN = ticks.from_seconds(3600)
"""Time by which an update looks back further than the last one, in ticks: listings may be a little out of date."""
LONGEST_RUN = ticks.from_seconds(720 * 3600)
"""Longest time from the plan of a run to its publication, in ticks: a person may be asked for so long."""
IN_TURN = 24
"""Largest number of older slices that one update lists."""


@dataclass(frozen=True)
class Scope:
    """The slices whose blobs an update lists; all times are in ticks."""

    first: int
    """Start from which all published slices are compared."""
    starts: tuple[int, ...]
    """Starts of the slices, in order of time."""
    turn: int | None
    """Last of the older slices that are listed in turn; None if there are none."""


@dataclass(frozen=True)
class Candidates:
    """Starts of the slices of which an update may list the blobs, in ticks."""

    kept: range
    """Those that are kept up to date."""
    requested: Collection[int]
    known: Collection[int]
    """Those that were published or stopped."""
    published: Collection[int]
    """Those that were published since the last update."""
    older: Collection[int]
    """Those that wait for their blobs to change."""


def scope(
    definitions: Sequence[InputDefinition],
    length: int,
    now: int,
    candidates: Candidates,
    updated: int | None,
    turn: int | None,
) -> Scope:
    """Return the slices whose blobs an update at `now` lists; `updated` is the time of the last one.

    These are the kept and the requested slices that have ended and that Capture may not have written yet; and the known
    slices of which a blob may have been written, modified or deleted since the last update: all of them if there was
    none. Of the published slices, these are those of which a blob may have been written after their run was planned. Of
    the older slices, it lists one contiguous range, the next one after `turn`.
    """
    end = now // length * length
    reach = max(definition.longest_write_delay for definition in definitions)
    reach += max(definition.last_needed(Slice(0, 0)) for definition in definitions)
    until = 0 if updated is None else min(now, updated) - reach - MARGIN
    first, unwritten = max(0, until // length * length), (now - reach) // length * length
    recent = max(candidates.kept.start, unwritten)
    listed = {
        *range(recent, candidates.kept.stop, length),
        *(start for start in candidates.requested if unwritten <= start < end),
    }
    listed |= {start for start in candidates.known if start + length > first}
    listed |= {start for start in candidates.published if start + length > now - reach - LONGEST_RUN}
    waiting = sorted(start for start in candidates.older if start not in listed)
    after = [start for start in waiting if turn is None or start > turn]
    in_turn = _contiguous(after or waiting, length)[:IN_TURN]
    return Scope(min(first, recent), tuple(sorted({*listed, *in_turn})), in_turn[-1] if in_turn else None)


def _contiguous(starts: Sequence[int], length: int) -> list[int]:
    """Return the first of these slices and those that follow it without a gap; `starts` are in order."""
    return [start for number, start in enumerate(starts) if start == starts[0] + number * length]
