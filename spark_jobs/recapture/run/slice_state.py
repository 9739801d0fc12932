"""The state of a slice: what is published for it, and whether that can still be trusted."""

from collections.abc import Collection
from enum import StrEnum

from recapture.run.approval import APPROVED
from recapture.run.outdated import is_outdated


class State(StrEnum):
    """State of a slice. The first ones need attention most."""

    AWAITING = "awaiting a decision"
    BLOCKED = "blocked"
    FAILED = "failed"
    STALE = "stale"
    OUTDATED = "outdated"
    MISSING = "missing"
    PAUSED = "paused"
    RUNNING = "running"
    QUEUED = "queued"
    INCOMPLETE = "capture incomplete"
    APPROVED = "published after approval"
    WARNINGS = "published with warnings"
    PUBLISHED = "published"

    @property
    def meaning(self) -> str:
        """Meaning in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    State.AWAITING: "The audit stopped the run, and a person is asked whether to publish it.",
    State.BLOCKED: "The audit stopped the last run, so nothing new was published.",
    State.FAILED: "The last run failed before it published anything: see the log of its task.",
    State.STALE: "Published, but blobs were added, modified or deleted since they were read.",
    State.OUTDATED: "Published, but by another query, policy, function, input or suite than the pipeline has now.",
    State.MISSING: "Capture is complete, nothing is published, and no run will compute it: backfill it.",
    State.PAUSED: "Nothing is published, and no run starts before the DAG is unpaused.",
    State.RUNNING: "A run computes it now.",
    State.QUEUED: "A run will compute it when its turn comes.",
    State.INCOMPLETE: "Capture has not written everything yet.",
    State.APPROVED: "Published by a person's decision, although the audit stopped the run.",
    State.WARNINGS: "Published, and the audit warned.",
    State.PUBLISHED: "Published, and the audit passed.",
}
_BY_QUALITY = {"passed": State.PUBLISHED, "passed with warnings": State.WARNINGS, APPROVED: State.APPROVED}


def published_state(quality: str, *, is_stale: bool, differing: Collection[str]) -> State:
    """Return the state of a published slice.

    `quality` is that of its publication, `is_stale` says whether its blobs have changed since, and `differing` are the
    parts of its definition that differ from the pipeline's present one.
    """
    if is_stale:
        return State.STALE
    if is_outdated(differing):
        return State.OUTDATED
    return _BY_QUALITY.get(quality, State.WARNINGS)
