"""The frame of a run's metrics, as the audit judges it (time model, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = (
    "on_time",
    "early_dropped",
    "late_adjusted",
    "late_dropped",
    "out_of_order_adjusted",
    "out_of_order_dropped",
    "invalid_timestamp",
    "malformed",
)
COLUMNS = (
    "slice_start",
    "partition",
    "InputEvents",
    "InputEventBytes",
    "InputEventsSourcesTotal",
    "DeserializationError",
    "InvalidInputTimeStamp",
    "EarlyInputEvents",
    "LateInputEvents",
    "DroppedOrAdjustedEvents",
    *VERDICTS,
    "complete",
)
"""What a run counts: one row for each slice and partition."""
DERIVED_COLUMNS = ("law_difference", "late_share")
"""What the audit adds: see `derive`."""


def derive(metrics: pd.DataFrame) -> pd.DataFrame:
    """Add what follows from the counts.

    `law_difference`: InputEvents less the sum of the verdicts; 0 where the law holds, null where a count is missing.
    `late_share`: LateInputEvents / InputEvents, 0 to 1; null where nothing arrived.
    Raises RunError for a frame without the columns of `COLUMNS`.
    """
    missing = [column for column in COLUMNS if column not in metrics.columns]
    if missing:
        raise RunError(f"the run's metrics lack {', '.join(missing)}; run the slices again")
    arrived = metrics["InputEvents"]
    return metrics.assign(
        law_difference=arrived - metrics[list(VERDICTS)].sum(axis=1, skipna=False),
        late_share=metrics["LateInputEvents"] / arrived.where(arrived > 0),
    )
