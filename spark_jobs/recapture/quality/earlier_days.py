"""Compare values of slices with those of the slices at the same time on earlier days: pure functions on pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400
"""Seconds in a day."""


def with_earlier_days(judged: pd.DataFrame, known: pd.DataFrame, days: int) -> pd.DataFrame:
    """Return `judged` with what is known of the same group at the same time on each of the `days` days before.

    Both frames have the columns `slice` (aware timestamps), `group` (numbers from 0) and `value` (float), and at most
    one row for each slice and group. The new columns are `earlier_days` (how many days are known), `median` and `mad`
    (the median absolute deviation of their values). The last two are null if no day is known.
    """
    earlier = _earlier_values(judged, known, days)
    count = np.isfinite(earlier).sum(axis=1)
    median, mad = np.full(len(judged), np.nan), np.full(len(judged), np.nan)
    is_known = count > 0
    median[is_known] = np.nanmedian(earlier[is_known], axis=1)
    mad[is_known] = np.nanmedian(np.abs(earlier[is_known] - median[is_known, None]), axis=1)
    return judged.assign(earlier_days=count, median=median, mad=mad)


def limit(compared: pd.DataFrame, max_deviations: float, min_deviation: float) -> pd.Series:
    """Return how far each value may be from the median: a number of deviations, and at least `min_deviation`."""
    return (compared["mad"] * max_deviations).clip(lower=min_deviation)


def _earlier_values(judged: pd.DataFrame, known: pd.DataFrame, days: int) -> np.ndarray:
    """Return a row for each row of `judged` and a column for each day before, with NaN for unknown days."""
    import pandas as pd

    seconds, known_seconds = _seconds(judged["slice"]), _seconds(known["slice"])
    if not len(seconds) or not len(known_seconds):
        return np.full((len(judged), days), np.nan)
    first = min(seconds.min(), known_seconds.min()) - days * DAY
    span = max(seconds.max(), known_seconds.max()) - first + 1
    ids = judged["group"].to_numpy() * span + seconds - first
    by_id = pd.Series(known["value"].to_numpy("float64"), known["group"].to_numpy() * span + known_seconds - first)
    return np.column_stack([by_id.reindex(ids - day * DAY).to_numpy() for day in range(1, days + 1)])


def _seconds(times: pd.Series) -> np.ndarray:
    return times.dt.as_unit("s").astype("int64").to_numpy()
