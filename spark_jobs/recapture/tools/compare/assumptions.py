"""What a live job may have done differently, alone or together."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from recapture.archive.definitions import ArrivalTime
from recapture.tools.compare.words import DEADLINE, ENQUEUED, OTHER_DEFINITION, SEPARATOR
from recapture.tools.diff.tried import Tried

_WORDS = {
    "query": "the query in {}",
    "late_seconds": "a late tolerance of {} s",
    "out_of_order_seconds": "an out-of-order tolerance of {} s",
    "policy": "the policy {}",
}


@dataclass(frozen=True)
class Trial:
    """How slices are computed again."""

    tried: Tried
    """Settings of the job, and what an arrival is."""
    new_blobs: bool = False
    """Whether blobs count that came into the archive after the slice was published."""
    each_event_once: bool = False
    """Whether an event that the archive has twice counts once, however far apart."""
    restart: datetime | None = None
    """Time from which events count; None for all of them."""
    session_offset: int = 0
    """Shift of the deadlines of sessions from the multiples of their maximum duration, in ticks."""


@dataclass(frozen=True)
class Assumption:
    """One thing that the live job may have done differently."""

    reason: str
    """Reason of the differences that it explains."""
    setting: str
    """Field of `Trial` or of `Tried` that it sets."""
    value: Any
    is_known: bool = True
    """Whether it is given by the user or a fact of the archive; otherwise only the rows can confirm it."""


def given_settings(tried: Tried) -> Iterator[Assumption]:
    """Yield the settings that the user says the live job had."""
    for name in (field.name for field in fields(tried)):
        value = getattr(tried, name)
        if value is not None:
            yield Assumption(_WORDS[name].format(value), name, value)


def enqueued_arrival() -> Assumption:
    """Return the assumption that an event arrives when it is enqueued."""
    return Assumption(ENQUEUED, "arrival_time", ArrivalTime.EVENT_ENQUEUED, is_known=False)


def other_deadlines(offset: int) -> Assumption:
    """Return the assumption that deadlines of sessions are shifted by this offset, in ticks."""
    return Assumption(DEADLINE, "session_offset", offset, is_known=False)


def combinations_of(assumptions: Sequence[Assumption]) -> list[tuple[Assumption, ...]]:
    """Return the assumptions that are tried together: those that are known first, and fewer before more.

    No two of a combination set the same. Another definition is tried alone: everything is computed with the present
     one. With enqueued times, an event that the archive has twice counts once anyway.
    """
    subsets = itertools.chain.from_iterable(
        itertools.combinations(assumptions, size) for size in range(1, len(assumptions) + 1)
    )

    def is_possible(subset: Sequence[Assumption]) -> bool:
        settings = {assumption.setting for assumption in subset}
        is_alone = len(subset) == 1 or OTHER_DEFINITION not in {assumption.reason for assumption in subset}
        return len(settings) == len(subset) and is_alone and not {"arrival_time", "each_event_once"} <= settings

    return sorted(filter(is_possible, subsets), key=lambda subset: (not are_known(subset), len(subset)))


def are_known(assumptions: Sequence[Assumption]) -> bool:
    """Return whether nothing is assumed that only the rows can confirm."""
    return all(assumption.is_known for assumption in assumptions)


def changes_events(assumptions: Sequence[Assumption]) -> bool:
    """Return whether these change what becomes of events, and not only what the query makes of them."""
    return any(assumption.setting not in ("query", "session_offset", "definition") for assumption in assumptions)


def trial_of(assumptions: Sequence[Assumption]) -> Trial:
    """Return how slices are computed again if all of these hold."""
    values = {assumption.setting: assumption.value for assumption in assumptions}
    own = {field.name for field in fields(Trial)} - {"tried"}
    settings = {field.name for field in fields(Tried)}
    tried = Tried(**{name: value for name, value in values.items() if name in settings})
    return Trial(tried, **{name: value for name, value in values.items() if name in own})


def reason_of(assumptions: Sequence[Assumption]) -> str:
    """Return the reason of the differences that assumptions explain together."""
    return SEPARATOR.join(assumption.reason for assumption in assumptions)
