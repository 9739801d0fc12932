"""ASA's early, late and out-of-order policies over one input partition (docs/time-model.md, section 2).

`apply_policies` holds the rules. It is compiled, and `judging.judge` calls it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled, frozen
from recapture.time_model.verdicts import PROCESSED, Verdict

BEFORE_EVERYTHING = np.iinfo(np.int64).min // 2
"""Largest time of a scope without events. It is less than any time, and a tolerance can be subtracted from it."""
EARLY_SECONDS = 300
"""ASA's early arrival window, in seconds."""
LARGEST_LATE = 1_814_399
"""Largest late tolerance of ASA, in seconds: three weeks minus a second."""
LARGEST_OUT_OF_ORDER = 599
"""Largest out-of-order tolerance of ASA, in seconds."""
_NO_LIMIT = int(np.iinfo(np.int64).max)
"""A duration longer than that between any two times, in ticks."""
IS_PROCESSED = frozen(np.array([verdict in PROCESSED for verdict in Verdict]))
"""Whether events with each verdict reach the query."""
EARLY_ADJUSTED, EARLY_DROPPED = int(Verdict.EARLY_ADJUSTED), int(Verdict.EARLY_DROPPED)
LATE_ADJUSTED, LATE_DROPPED = int(Verdict.LATE_ADJUSTED), int(Verdict.LATE_DROPPED)
OUT_OF_ORDER_ADJUSTED, OUT_OF_ORDER_DROPPED = int(Verdict.OUT_OF_ORDER_ADJUSTED), int(Verdict.OUT_OF_ORDER_DROPPED)


@dataclass(frozen=True)
class Policies:
    """A job's time settings."""

    out_of_order_tolerance: int
    """Out-of-order tolerance in ticks."""
    late_tolerance: int | None
    """Late tolerance in ticks; None for no limit."""
    early_window: int | None
    """Early window in ticks; None for no limit."""
    adjust: bool
    """Whether late and out-of-order events are adjusted; otherwise they are dropped."""
    adjust_early: bool = False
    """Whether early events are adjusted to their arrival plus the window; otherwise they are dropped, as in ASA."""

    def without_none(self) -> "PlainPolicies":
        """Return the policies as compiled code reads them."""
        return PlainPolicies(
            early_window=_NO_LIMIT if self.early_window is None else self.early_window,
            late_tolerance=_NO_LIMIT if self.late_tolerance is None else self.late_tolerance,
            out_of_order_tolerance=self.out_of_order_tolerance,
            adjust_early=self.adjust_early,
            adjust=self.adjust,
        )


class PlainPolicies(NamedTuple):
    """Policies as compiled code reads them: no limit is a duration longer than that between any two times."""

    early_window: int
    late_tolerance: int
    out_of_order_tolerance: int
    adjust_early: bool
    adjust: bool


class EventTimes(NamedTuple):
    """The times of the events of a chunk, in arrival order; every array has one entry per event."""

    scope: NDArray[np.int64]
    """Number of the event's scope, from 0; -1 for an event that is not judged."""
    time: NDArray[np.int64]
    """Application time in ticks."""
    arrival: NDArray[np.int64]
    """Arrival time in ticks."""


class Judged(NamedTuple):
    """What became of the events of a chunk; every array has one entry per event."""

    verdict: NDArray[np.int8]
    """Verdict on the event."""
    system_timestamp: NDArray[np.int64]
    """System.Timestamp in ticks; meaningful if the verdict is one of PROCESSED."""
    early: NDArray[np.bool_]
    """Whether the event was beyond the early window, whatever its verdict."""
    late: NDArray[np.bool_]
    """Whether the event was beyond the late tolerance, whatever its verdict."""
    out_of_order: NDArray[np.bool_]
    """Whether the event was below the watermark."""
    largest_time: NDArray[np.int64]
    """Largest System.Timestamp so far in the event's scope, itself included, in ticks.

    BEFORE_EVERYTHING if the event does not reach the disorder rule (docs/time-model.md, section 2).
    """
    behind: NDArray[np.int64]
    """How far the event's time was below `largest_time` when it reached the disorder rule, in ticks; 0 otherwise."""
    scope: NDArray[np.int64]
    """Number of the event's scope in its partition, from 0; -1 for an event that is not judged."""

    @property
    def processed(self) -> NDArray[np.bool_]:
        """Whether the event reaches the query."""
        return IS_PROCESSED[self.verdict]

    def at(self, rows: slice | NDArray[np.intp]) -> "Judged":
        """Return what became of the events at these rows, as compiled code reads it."""
        return Judged._make(frozen(values[rows]) for values in self)


@compiled
def apply_policies(
    policies: PlainPolicies, events: EventTimes, largest_by_scope: NDArray[np.int64], judged: Judged
) -> None:
    """Judge the events of a chunk.

    `largest_by_scope` is the largest System.Timestamp so far in each scope, and is updated. The arrays of `judged` are
    filled in place; they begin as those of events that are on time.
    """
    early_window, late_tolerance = policies.early_window, policies.late_tolerance
    for event in range(len(events.time)):
        scope, time, arrival = events.scope[event], events.time[event], events.arrival[event]
        if scope < 0:
            continue
        system = time
        early = time - arrival > early_window
        late = not early and arrival - time > late_tolerance
        if early:
            judged.early[event] = True
            judged.verdict[event] = EARLY_ADJUSTED if policies.adjust_early else EARLY_DROPPED
            system = arrival + early_window
        elif late:
            judged.late[event] = True
            judged.verdict[event] = LATE_ADJUSTED if policies.adjust else LATE_DROPPED
            system = arrival - late_tolerance
        reaches_disorder_rule = (not early or policies.adjust_early) and (not late or policies.adjust)
        if reaches_disorder_rule:
            largest = max(largest_by_scope[scope], system)
            largest_by_scope[scope] = judged.largest_time[event] = largest
            judged.behind[event] = largest - system
            if largest - system > policies.out_of_order_tolerance:
                judged.out_of_order[event] = True
                judged.verdict[event] = OUT_OF_ORDER_ADJUSTED if policies.adjust else OUT_OF_ORDER_DROPPED
                system = largest - policies.out_of_order_tolerance
        judged.system_timestamp[event] = system
