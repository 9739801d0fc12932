"""A live job that starts at a custom time, as Microsoft's pages describe it. It shares no code with the engine.

"How to start an Azure Stream Analytics job": the first possible output has a timestamp equal to or greater than the
start time; if a temporal operator is used, the job reads data from before it; no partial aggregates are generated.

"Understand time handling in Azure Stream Analytics": the job start time is the time of the first output, not of the
first input. The system derives the time of the first event from the query, and translates it to an arrival: the
starting event time minus the early window of five minutes.
"""

from collections.abc import Sequence

from tests.oracle import Event, Outcome, Policy, process
from tests.oracle_windows import Content, Hopping, Sliding, Snapshot, contents
from tests.oracle_windows import Event as Placed

FIVE_MINUTES = 5 * 60 * 10_000_000
Window = Hopping | Sliding | Snapshot


def outcomes_of_job(events: Sequence[Event], policy: Policy, size: int, start_time: int) -> list[Outcome]:
    """Return what the job does with the events that it reads; it begins without any state."""
    starting_event_time = start_time - size
    return process([event for event in events if event.arrival >= starting_event_time - FIVE_MINUTES], policy)


def rows_of_job(events: Sequence[Event], policy: Policy, window: Window, start_time: int, until: int) -> list[Content]:
    """Return the rows that the job emits up to `until`, inclusive."""
    size = 0 if isinstance(window, Snapshot) else window.size
    outcomes = outcomes_of_job(events, policy, size, start_time)
    return rows(outcomes, window, size, start_time - 1, until)


def rows(outcomes: Sequence[Outcome], window: Window, size: int, start: int, end: int) -> list[Content]:
    """Return the rows of windows that end in (start, end], by their ends."""
    near = [
        Placed(outcome.system_timestamp, {"sequence": outcome.event.sequence}, outcome.event.partition)
        for outcome in outcomes
        if outcome.system_timestamp is not None and start - size < outcome.system_timestamp <= end
    ]
    return sorted(
        (content for content in contents(near, window) if start < content.end <= end), key=lambda content: content.end
    )
