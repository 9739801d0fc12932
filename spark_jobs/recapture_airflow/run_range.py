"""The range of slices that a DAG run computes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recapture.errors import DefinitionError
from recapture.time_model import ticks

BACKFILL = "backfill"
"""Type of the runs of Airflow's backfills."""
DUE = "due"
"""Task of an update that returns the range which is due."""


def range_of_dag_run(
    params: Mapping[str, Any],
    interval_start: datetime | None,
    interval_end: datetime | None,
    *,
    is_backfill: bool = False,
) -> tuple[datetime, datetime]:
    """Return the range of a DAG run: `from` and `to` of the trigger form, or else the run's data interval.

    Raise DefinitionError if only one of the two is given, if neither is and the run has no interval, if the range is
    empty, or if a run of Airflow's backfill has another range than its data interval.
    """
    bounds = {name: params.get(name) for name in ("from", "to")}
    missing = [name for name, value in bounds.items() if not value]
    if len(missing) == 1:
        raise DefinitionError(f"`{missing[0]}` is missing: give both `from` and `to`, or neither")
    if not missing:
        start, end = (instant(name, str(value)) for name, value in bounds.items())
    elif interval_start is not None and interval_end is not None:
        start, end = interval_start, interval_end
    else:
        raise DefinitionError("this run has no data interval: give `from` and `to`, or trigger it with a logical date")
    if is_backfill and (start, end) != (interval_start, interval_end):
        raise DefinitionError(
            "`from` and `to` contradict Airflow's backfill, in which every run computes its own slice: create the "
            "backfill again without `from` and `to`, or trigger the DAG with them instead"
        )
    if start >= end:
        raise DefinitionError(f"the range ({start.isoformat()}, {end.isoformat()}] is empty: `to` must be after `from`")
    return start, end


def instant(name: str, text: str) -> datetime:
    """Return the time in a field of the trigger form. Raise DefinitionError if it is none."""
    try:
        return ticks.parse_utc(text)
    except ValueError:
        raise DefinitionError(f"`{name}` is {text!r}: write an ISO 8601 time, such as 2026-03-01T10:00:00Z") from None
