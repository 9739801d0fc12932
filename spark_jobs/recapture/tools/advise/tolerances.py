"""The tolerances that are compared: durations that people use, up to what a range can judge; seconds.

A late tolerance of None is no limit; it is the largest.
"""

from dataclasses import dataclass, replace

from recapture.definition.sections import Job
from recapture.time_model.policies import LARGEST_LATE, LARGEST_OUT_OF_ORDER, Policies
from recapture.time_model.ticks import from_seconds

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
NO_LIMIT = -1
"""Stands for a late tolerance without limit in the pipeline file and in results."""
LATE = (
    *(0, 1, 2, 5, 10, 20, 30),
    *(minutes * _MINUTE for minutes in (1, 2, 3, 5, 7, 10, 15, 20, 30, 45)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 3, 7, 14)),
    LARGEST_LATE,
)
OUT_OF_ORDER = (0, 1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, LARGEST_OUT_OF_ORDER)


@dataclass(frozen=True, order=True)
class Setting:
    """The two tolerances of a job."""

    late: int | None
    out_of_order: int


@dataclass(frozen=True)
class Tolerances:
    """Tolerances to compare, ascending. Each late tolerance is combined with each out-of-order tolerance."""

    late: tuple[int | None, ...]
    out_of_order: tuple[int, ...]


def tolerances(job: Job, range_seconds: int) -> Tolerances:
    """Return the tolerances to compare for a range, those of the job included.

    To judge the events of a range with a late tolerance, a run reads what arrived up to that long before it. So no
    late tolerance is longer than the range, unless the job's is.
    """
    own = None if job.late_seconds == NO_LIMIT else job.late_seconds
    longest = max(range_seconds, own or 0)
    limited = {late for late in LATE if late <= longest} | ({own} - {None})
    return Tolerances(
        (*sorted(late for late in limited if late is not None), *([None] if own is None else [])),
        tuple(sorted({*OUT_OF_ORDER, job.out_of_order_seconds})),
    )


def with_late(policies: Policies, late: int | None) -> Policies:
    """Return the policies with another late tolerance and without an out-of-order tolerance."""
    late_tolerance = None if late is None else from_seconds(late)
    return replace(policies, out_of_order_tolerance=0, late_tolerance=late_tolerance)
