"""Session windows (docs/time-model.md, section 4.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.panes import starts_of
from recapture.ordering.radix import sorted_order
from recapture.process.compilation import compiled, inlined
from recapture.time_model.windows import ALTERNATING_SPANS, SessionWindow


class Sessions(NamedTuple):
    """The session of each row."""

    ends: NDArray[np.int64]
    """End of the session that holds the row, in ticks."""
    ruled: NDArray[np.bool_]
    """Whether the session is cut by the rule for sparse streams."""


class Instants(NamedTuple):
    """The instants of streams, in the order of stream and time. A stream has the events that share sessions."""

    streams: NDArray[np.int64]
    """Number of each instant's stream."""
    times: NDArray[np.int64]
    """Time of each instant, in ticks."""
    events: NDArray[np.int64]
    """Number of events at each instant."""


def sessions_of(streams: NDArray[np.int64], times: NDArray[np.int64], window: SessionWindow) -> Sessions:
    """Return the session of each row, given the number of its stream and its System.Timestamp."""
    order = sorted_order([times, streams])
    starts = starts_of(streams[order], times[order])
    first = order[starts[:-1]]
    instants = Instants(streams[first], times[first] - window.offset, np.diff(starts))
    instant_sessions = Sessions(np.empty(len(first), np.int64), np.empty(len(first), np.bool_))
    _sessions(instants, window.timeout, window.max_duration, ALTERNATING_SPANS, instant_sessions)
    instant_sessions.ends[:] += window.offset
    sessions = Sessions(np.empty(len(order), np.int64), np.empty(len(order), np.bool_))
    for row_values, instant_values in zip(sessions, instant_sessions, strict=True):
        row_values[order] = np.repeat(instant_values, instants.events)
    return sessions


@compiled
def _sessions(instants: Instants, timeout: int, longest: int, alternating: int, sessions: Sessions) -> None:
    """Write the session of each instant.

    A span is a stretch (k * longest, (k + 1) * longest], numbered by its k. After each pause, the first deadline is the
    end of the span `anchor`. The cuts alternate, counted from the last span that always ends with a cut: `anchor`, or a
    later span with several events. After a number of spans, the rule for sparse streams decides.
    """
    streams, times, events = instants
    start = 0
    while start < len(times):
        # No pause interrupts the events from here to `stop`.
        stop = start + 1
        while stop < len(times) and streams[stop] == streams[start] and times[stop] - times[stop - 1] <= timeout:
            stop += 1
        deciding = times[start]
        follows = start > 0 and streams[start - 1] == streams[start]
        has_next = start + 1 < len(times) and streams[start + 1] == streams[start]
        if follows and times[start] - times[start - 1] <= timeout + longest and events[start] == 1 and has_next:
            deciding = times[start + 1]
        reset = anchor = _span(deciding, longest) + 1
        first = instant = start
        begun_by_rule = is_any_ruled = False
        while instant < stop:
            span = _span(times[instant], longest)
            events_in_span = 0
            while instant < stop and _span(times[instant], longest) == span:
                events_in_span += events[instant]
                instant += 1
            if events_in_span > 1 and span > anchor:
                reset = span
            since = span - reset
            is_ruled = since >= alternating
            is_cut = span % 2 != 0 if is_ruled else since >= 0 and since % 2 == 0
            is_any_ruled = is_any_ruled or is_ruled
            if is_cut or instant == stop:
                end = times[instant - 1] + timeout
                if is_cut:
                    end = min(end, (span + 1) * longest)
                for member in range(first, instant):
                    sessions.ends[member], sessions.ruled[member] = end, begun_by_rule or is_any_ruled
                first, begun_by_rule, is_any_ruled = instant, is_ruled, False
        start = stop


@inlined
def _span(instant: int, longest: int) -> int:
    """Return the number of the span that holds an instant."""
    return (instant + longest - 1) // longest - 1
