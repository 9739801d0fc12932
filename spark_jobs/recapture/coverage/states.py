"""The state of each slice of a pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from recapture.run.approval import APPROVED
from recapture.time_model import ticks


class State(StrEnum):
    """State of a slice. The first ones need attention most."""

    BLOCKED = "blocked"
    STALE = "stale"
    MISSING = "missing"
    INCOMPLETE = "capture incomplete"
    APPROVED = "published after approval"
    WARNINGS = "published with warnings"
    PUBLISHED = "published"

    @property
    def meaning(self) -> str:
        """Meaning in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    State.BLOCKED: "The audit stopped the last run, so nothing new was published.",
    State.STALE: "Published, but blobs were added, modified or deleted since they were read.",
    State.MISSING: "Capture is complete, but nothing is published.",
    State.INCOMPLETE: "Capture has not written everything yet.",
    State.APPROVED: "Published by a person's decision, although the audit stopped the run.",
    State.WARNINGS: "Published, and the audit warned.",
    State.PUBLISHED: "Published, and the audit passed.",
}
_BY_QUALITY = {"passed": State.PUBLISHED, "passed with warnings": State.WARNINGS, APPROVED: State.APPROVED}


@dataclass(frozen=True)
class SliceState:
    """State of one slice, and what it holds."""

    start: int
    """Start of the slice, in ticks."""
    end: int
    state: State
    run: str | None = None
    """Run that the slice holds; None if it holds none."""
    quality: str | None = None
    """Verdict of the audit of that run, or "approved"."""
    published: str | None = None
    """Time of its publication, ISO 8601."""
    input_events: int | None = None
    late_events: int | None = None
    blocked_run: str | None = None
    """Last run that its audit stopped; None if nothing was stopped since the publication."""
    taken_back: str | None = None
    """Run that the last rollback took back."""


def slice_states(
    entries: Mapping[str, Mapping[str, Any]],
    blocked: Mapping[str, str],
    changed: Mapping[str, str],
    last_end: int,
    length: int,
    incomplete_from: int | None,
) -> list[SliceState]:
    """Return the state of every slice from the first that was ever published or blocked to the last that has ended.

    `entries` are those of the publications' snapshot. `blocked` has the blocking run, and `changed` the run whose blobs
    have changed since; all three are keyed by slice_start. `last_end` is the end of the last slice that has ended,
    `length` that of a slice, and `incomplete_from` the start of the first slice that Capture may not have written; all
    in ticks.
    """
    if not entries and not blocked:
        return []
    first = ticks.from_datetime(ticks.parse_utc(min((*entries, *blocked))))
    states = []
    for start in range(first, last_end, length):
        text = ticks.to_text(start)
        entry = entries.get(text, {})
        run = entry.get("run")
        if text in blocked:
            state = State.BLOCKED
        elif run is not None and changed.get(text) == run:
            state = State.STALE
        elif run is not None:
            state = _BY_QUALITY.get(entry["quality"], State.WARNINGS)
        else:
            state = State.MISSING if incomplete_from is None or start < incomplete_from else State.INCOMPLETE
        states.append(
            SliceState(
                start,
                start + length,
                state,
                run,
                entry.get("quality"),
                entry.get("published"),
                entry.get("input_events"),
                entry.get("late_events"),
                blocked.get(text),
                entry.get("taken_back"),
            )
        )
    return states
