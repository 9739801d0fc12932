"""Compare slices with those before them: pure functions on pandas, for the expectations and for proposed suites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recapture.time_model.metrics import WATERMARK

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


@dataclass(frozen=True)
class KeyWindows:
    """The windows in a range of the keys that had rows before it."""

    windows: int
    """Number of windows that end in the range."""
    present: pd.Series
    """Number of windows that have a row, by key; empty if there were no rows before."""

    @property
    def missing(self) -> pd.Series:
        """Number of windows without a row, by key."""
        return self.windows - self.present


def key_windows(
    ends: pd.Series, keys: pd.Series, hop_seconds: float, since: pd.Timestamp, until: pd.Timestamp, days: int
) -> KeyWindows:
    """Return which keys with rows in the `days` days until `since` have rows in the windows of (since, until].

    `ends` are the aware ends of the windows of rows, `keys` their keys as numbers. Raise ValueError if windows do not
    end every `hop_seconds`.
    """
    import pandas as pd

    in_range = (ends > since - pd.Timedelta(days=days)) & (ends <= until)
    ends, keys = ends[in_range], keys[in_range]
    is_before = ends <= since
    before = keys[is_before].unique()
    if not len(before):
        return KeyWindows(0, pd.Series(dtype="int64"))
    rows = pd.DataFrame({"key": keys[~is_before], "end": ends[~is_before]}).drop_duplicates()
    present = rows["key"].value_counts().reindex(before, fill_value=0)
    return KeyWindows(_windows(ends, round(hop_seconds * 10**6), since, until), present)


def _windows(ends: pd.Series, hop: int, since: pd.Timestamp, until: pd.Timestamp) -> int:
    """Return how many windows end in (since, until]; `hop` is in microseconds."""
    micros = ends.dt.as_unit("us").astype("int64").to_numpy()
    phase = int(micros[0] % hop)
    off = np.flatnonzero(micros % hop != phase)
    if len(off):
        raise ValueError(
            f"hop_seconds is {hop / 10**6:g}, but windows end at {ends.iloc[0]} and at {ends.iloc[off[0]]}"
        )
    first, last = (_micros(bound) - phase for bound in (since, until))
    return last // hop - first // hop


def _micros(time: pd.Timestamp) -> int:
    import pandas as pd

    return int((time - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(microseconds=1))


def falls(metrics: pd.DataFrame) -> pd.Series:
    """Return by how many seconds each watermark is below the highest one of the earlier slices of its partition.

    Negative if it is above; null without an earlier one. WatermarkSeconds has no null, and the slices are in order.
    """
    partition = [metrics["input"], metrics["partition"]]
    highest = metrics.groupby(partition, sort=False)[WATERMARK].cummax()
    return highest.groupby(partition, sort=False).shift() - metrics[WATERMARK]


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
