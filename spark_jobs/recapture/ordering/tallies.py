"""Counts and extremes of the events of a chunk that arrived in a slice."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled
from recapture.time_model.policies import Judged

BEFORE_ALL = -(1 << 63)
"""Less than any time in ticks."""


class Tally(NamedTuple):
    """What `tally` counts."""

    early: int
    late: int
    out_of_order: int
    newest_arrival: int
    """Largest arrival in ticks."""
    largest_time: int
    """Largest System.Timestamp of a processed event in ticks; BEFORE_ALL if there is none."""
    first_ahead: int
    """First of the processed events whose System.Timestamp is furthest ahead of their arrival; -1 if there is none."""
    last_ahead: int
    """Last of these events."""


@compiled
def tally(
    judged: Judged, arrival: NDArray[np.int64], is_processed: NDArray[np.bool_], verdicts: NDArray[np.int64]
) -> Tally:
    """Return the counts of some events, and add their verdicts to `verdicts`.

    `arrival` is in ticks, one entry per event; `is_processed` and `verdicts` have one entry per verdict.
    """
    early = late = out_of_order = 0
    newest = largest = furthest = BEFORE_ALL
    first = last = -1
    for event in range(len(arrival)):
        verdict, arrived, time = judged.verdict[event], arrival[event], judged.system_timestamp[event]
        verdicts[verdict] += 1
        early += judged.early[event]
        late += judged.late[event]
        out_of_order += judged.out_of_order[event]
        newest = max(newest, arrived)
        if is_processed[verdict]:
            largest = max(largest, time)
            if time - arrived > furthest:
                furthest = time - arrived
                first = event
            if time - arrived == furthest:
                last = event
    return Tally(early, late, out_of_order, newest, largest, first, last)
