"""When a live job has to start so that its rows follow those of the published slices (docs/handover.md).

A job starts at its first output, not at its first input: it emits the rows whose System.Timestamp is its start time or
later, and reads as far back as these rows need. This does no I/O.
"""

from collections.abc import Iterable, Iterator

from recapture.archive.definitions import InputDefinition
from recapture.process.wording import of_input
from recapture.time_model import ticks
from recapture.time_model.policies import EARLY_SECONDS
from recapture.time_model.windows import HoppingWindow, JoinedSide, SessionWindow, Window

EARLY = ticks.from_seconds(EARLY_SECONDS)


def start_time(windows: Iterable[Window | JoinedSide], end: int) -> int:
    """Return the custom start time of the job whose rows follow those up to `end`, inclusive; all in ticks.

    It is one tick after the end. If all rows have the times of windows that end at whole seconds, one second gives the
    same rows, and tools that cut fractions off cannot change it. `windows` are those of `CompiledQuery.windows`.
    """
    return end + (ticks.TICKS_PER_SECOND if all(map(_ends_at_whole_seconds, windows)) else 1)


def _ends_at_whole_seconds(window: Window | JoinedSide) -> bool:
    return isinstance(window, HoppingWindow) and not (
        window.hop % ticks.TICKS_PER_SECOND or window.offset % ticks.TICKS_PER_SECOND
    )


def first_read(definition: InputDefinition, end: int) -> int:
    """Return the first arrival of an input that can reach a row after `end`; all in ticks.

    The early window is ASA's, whatever that of the pipeline is.
    """
    return end - definition.look_back - (0 if definition.policies is None else EARLY)


def start_text(instant: int) -> str:
    """Return a start time as ISO 8601 in UTC, with all seven decimals if it needs them."""
    seconds, fraction = divmod(instant, ticks.TICKS_PER_SECOND)
    text = ticks.to_text(seconds * ticks.TICKS_PER_SECOND)
    return f"{text.removesuffix('Z')}.{fraction:07}Z" if fraction else text


def not_guaranteed(windows: Iterable[Window | JoinedSide], definitions: Iterable[InputDefinition]) -> Iterator[str]:
    """Yield why the rows of the job may not follow those of the slices exactly, a sentence each."""
    inputs = list(definitions)
    name_input = len(inputs) > 1
    if any(isinstance(window, SessionWindow) for window in windows):
        yield (
            "the query has session windows, and Microsoft's pages do not say how far back a job reads for them: a "
            "session that begins before the start time may end at another time"
        )
    for definition in inputs:
        of, policies = of_input(definition.alias if name_input else None), definition.policies
        if not definition.by_enqueued_time:
            yield (
                f"events{of} arrive at their blob's LastModified here, and at their enqueued time in a job that reads "
                "the hub: near the start time, an event may count twice or not at all; set input.arrival_time to "
                "EventEnqueuedUtcTime, or let the job read the blobs"
            )
        if policies is not None and policies.late_tolerance is None:
            yield (
                f"events{of} have no late limit: slices are not compared with the archive, and later events may still "
                "belong to them"
            )
        if policies is not None and (policies.early_window != EARLY or policies.adjust_early):
            yield f"early events{of} are treated differently from a job (job.early_arrival_seconds, job.early_policy)"
