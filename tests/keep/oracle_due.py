"""Which slices are due, decided one by one from a list of questions. It shares no code with `recapture.keep.due`."""

from collections.abc import Sequence

from recapture.keep.due import SliceFacts, State

DEFINES_ROWS = {"query", "functions", "policies", "inputs", "suite", "unknown"}
"""Parts that make a slice outdated; another version of the engine alone does not."""
MINUTE = 600_000_000


def due(state: State) -> list[int]:
    """Return the starts of the slices that have to be computed now, newest first, whatever the budget."""
    starts = [*range(state.since, state.end, state.length)]
    for request in state.requests:
        starts += [start for start in range(request.start, request.end, state.length) if start < state.end]
    return sorted({start for start in starts if is_due(state, start)}, reverse=True)


def is_due(state: State, start: int) -> bool:
    facts = state.slices.get(start, SliceFacts())
    if facts.waits_for:
        return False
    if any(r.start <= start and start + state.length <= r.end and r.at <= state.now for r in state.requests):
        return True
    if start < state.since or facts.rolled_back:
        return False
    if facts.stop and facts.stop.repeats and facts.stop.slices == 1:
        return False
    if facts.run is None:
        return True
    if facts.difference and state.schedule.late_data == "republish":
        quiet = state.now - facts.difference.last_change
        if quiet >= state.schedule.quiet_minutes * MINUTE:
            return True
    return state.schedule.outdated == "recompute" and any(part in DEFINES_ROWS for part in facts.outdated)


def within_budget(state: State, newest_first: Sequence[int]) -> list[int]:
    """Return the slices of these that one update computes."""
    taken: list[int] = []
    for start in newest_first:
        taken.append(start)
        size = sum(state.slices.get(other, SliceFacts()).size or 0 for other in taken)
        limit = state.schedule.at_most_bytes
        if len(taken) > state.schedule.at_most_slices or (limit is not None and size > limit and len(taken) > 1):
            return taken[:-1]
    return taken
