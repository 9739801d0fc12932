"""Which slices are due, decided one by one from a list of questions. It shares no code with `recapture.keep.due`."""

from collections.abc import Sequence

from recapture.keep.due import SliceFacts, State

DEFINES_ROWS = {"query", "functions", "policies", "inputs", "containers", "suite", "unknown"}
"""Parts that make a slice outdated; another version of the engine alone does not."""
MINUTE = 600_000_000


def due(state: State) -> list[int]:
    """Return the starts of the slices that have to be computed now, in their order, whatever the budget.

    First come the newest complete slice and the requested ones, then the others, and last those that failed alone and
    that nobody requests; the newest first each.
    """
    starts = [*range(state.since, state.until, state.length)]
    for request in state.requests:
        starts += [start for start in range(request.start, request.end, state.length) if start < state.end]
    newest_first = sorted({start for start in starts if is_due(state, start)}, reverse=True)
    complete = [start for start in range(state.since, state.until, state.length) if not waits_for_capture(state, start)]
    urgent = [start for start in newest_first if is_requested(state, start) or [start] == complete[-1:]]
    others = [start for start in newest_first if start not in urgent]
    urgent_retries = [start for start in urgent if is_retry(state, start)]
    return [
        *(start for start in urgent if not is_retry(state, start)),
        *(start for start in others if not is_retry(state, start)),
        *urgent_retries,
        *(start for start in others if is_retry(state, start)),
    ]


def waits_for_capture(state: State, start: int) -> bool:
    return bool(state.slices.get(start, SliceFacts()).waits_for)


def is_requested(state: State, start: int) -> bool:
    requests = (
        request for request in state.requests if request.at <= state.now and (not request.only or start in request.only)
    )
    return any(request.start <= start and start + state.length <= request.end for request in requests)


def is_retry(state: State, start: int) -> bool:
    stop = state.slices.get(start, SliceFacts()).stop
    return stop is not None and stop.repeats and stop.slices == 1 and not is_requested(state, start)


def is_due(state: State, start: int) -> bool:
    facts = state.slices.get(start, SliceFacts())
    is_early = state.schedule.provisional and facts.run is None and (facts.size or 0) > 0
    if (facts.waits_for and not is_early) or any(lease.start <= start < lease.end for lease in state.leases):
        return False
    if is_requested(state, start):
        return True
    if not state.since <= start < state.until or facts.rolled_back:
        return False
    stop = facts.stop
    if stop and stop.repeats and stop.slices == 1 and (stop.error is None or (stop.retry or 0) > state.now):
        return False
    if facts.run is None:
        return True
    if facts.is_provisional:
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
