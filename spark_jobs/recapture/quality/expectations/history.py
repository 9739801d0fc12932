"""Expectations that compare the rows since an instant with the rows before it."""

from typing import ClassVar

import pandas as pd
from great_expectations.compatibility.pydantic import Field

from recapture.process.wording import counted
from recapture.quality import comparisons
from recapture.quality.expectations.base import (
    Columns,
    Count,
    FrameExpectation,
    Instant,
    Mostly,
    NotNegative,
    examples,
    groups,
    in_utc,
    instant,
    number,
)
from recapture.quality.finding import Finding
from recapture.quality.signatures import DEVIATIONS
from recapture.time_model.metrics import WATERMARK


class _WithHistory(FrameExpectation):
    """Base of the expectations that judge the rows from `since` to `until` and know those before."""

    since: Instant
    until: Instant
    slice_column: str = "slice_start"

    def _judged(self, starts: pd.Series) -> pd.Series:
        """Return which of these slices are judged, by their starts."""
        return (starts >= instant(self.since)) & (starts < instant(self.until))


class ExpectWatermarkToNeverFall(_WithHistory):
    """Expect the watermark of a partition to be at least what it was after each earlier slice.

    Judges each slice of a partition in which events were processed: WatermarkSeconds is not below the largest one of
    the earlier slices by more than `max_fall_seconds`. A watermark falls if the clocks of all devices were set back, or
    if blobs of an earlier time were written again.

    Args:
        since: the start of the first slice to judge. The rows before are the history.
        until: the end of the last slice to judge.
        max_fall_seconds: how far the watermark may fall; default 0.
        days: how many days before `since` count; default 1.
        slice_column: the column with the start of the slice; default slice_start.
    """

    max_fall_seconds: NotNegative = 0.0
    days: Count = 1
    success_keys: ClassVar[tuple[str, ...]] = ("since", "until", "max_fall_seconds", "days", "slice_column")

    def needed_columns(self) -> list[str]:
        return [self.slice_column, "input", "partition", WATERMARK]

    def judge(self, frame: pd.DataFrame) -> Finding:
        frame = frame.assign(slice=in_utc(frame[self.slice_column]))
        is_known = frame[WATERMARK].notna() & (frame["slice"] >= instant(self.since) - pd.Timedelta(days=self.days))
        frame = frame[is_known].sort_values("slice")
        fall = comparisons.falls(frame)
        judged = self._judged(frame["slice"])
        has_earlier = judged & fall.notna()
        failed = has_earlier & (fall > number(self.max_fall_seconds))
        shown = pd.DataFrame(
            {
                "watermark": pd.to_datetime(frame[WATERMARK], unit="s", utc=True),
                "fell_by_seconds": fall.round(3),
                "slice_start": frame["slice"],
                "input": frame["input"],
                "partition": frame["partition"],
            }
        )
        first = examples(shown[failed].sort_values("fell_by_seconds", ascending=False, kind="stable"))
        numbers = int(has_earlier.sum()), int(failed.sum())
        unjudged = int((judged & ~has_earlier).sum())
        return Finding("watermark", *numbers, first, unjudged, "no earlier slice", "the watermark fell")


class ExpectTableWindowsToBeComplete(_WithHistory):
    """Expect every key that had rows before to have a row for every window.

    Judges each pair of a window between `since` and `until` and a key with a row in the `days` days before. New keys
    are not judged.

    Args:
        column: the column with the end of the window.
        key_columns: the columns of the key, such as a device.
        hop_seconds: the time between the ends of neighbouring windows: the size of a tumbling window, or the hop.
        since: the start of the range to judge. The rows until then are the history.
        until: the end of the range to judge, inclusive.
        mostly: the share of the pairs that must have a row, 0 to 1; default 1.
        days: how many days before `since` count; default 1.
    """

    column: str
    key_columns: Columns
    hop_seconds: float = Field(gt=0)
    mostly: Mostly = 1.0
    days: Count = 1
    success_keys: ClassVar[tuple[str, ...]] = (
        *("column", "key_columns", "hop_seconds", "since", "until", "mostly", "days"),
    )

    def needed_columns(self) -> list[str]:
        return [self.column, *self.key_columns]

    def judge(self, frame: pd.DataFrame) -> Finding:
        keys = groups(frame, self.key_columns)
        found = comparisons.key_windows(
            in_utc(frame[self.column]), keys, self.hop_seconds, instant(self.since), instant(self.until), self.days
        )
        if found.present.empty:
            return Finding("window", 0, 0, (), 1, "no earlier rows")
        names = frame[self.key_columns].groupby(keys).head(1).set_axis(keys.drop_duplicates())
        shown = names.assign(missing_windows=found.missing, of_windows=found.windows)
        shown = shown[shown["missing_windows"] > 0].sort_values("missing_windows", ascending=False, kind="stable")
        first = examples(shown.astype({"missing_windows": "int64"}))
        numbers = found.windows * len(found.present), int(found.missing.sum())
        return Finding("window", *numbers, first, failure="windows of known keys have no row")


class _NearEarlierDays(_WithHistory):
    """Base of the expectations that compare slices with those at the same time on earlier days."""

    max_deviations: NotNegative = 10.0
    min_deviation: NotNegative = 0.0
    min_days: Count = 5
    mostly: Mostly = 1.0
    days: Count = 14

    def _compare(
        self, judged: pd.DataFrame, known: pd.DataFrame, shown: pd.DataFrame, item: str, compared_name: str
    ) -> Finding:
        """Return the values that are far from the median of earlier days; `shown` identifies them in examples.

        The furthest ones come first. `compared_name` names what is compared in a sentence.
        """
        compared = comparisons.with_earlier_days(judged, known, self.days)
        is_judged = compared["earlier_days"] >= self.min_days
        limit = comparisons.limit(compared, number(self.max_deviations), number(self.min_deviation))
        difference = (compared["value"] - compared["median"]).abs()
        failed = is_judged & (difference > limit)
        figures = compared[["median", "mad", "earlier_days"]].round({"median": 6, "mad": 6})
        furthest = difference[failed].sort_values(ascending=False, kind="stable").index
        first = examples(shown.join(figures).loc[furthest])
        numbers = int(is_judged.sum()), int(failed.sum())
        why = f"fewer than {counted(self.min_days, 'earlier day')} published"
        failure = f"{compared_name} differs from that of earlier days"
        return Finding(item, *numbers, first, int((~is_judged).sum()), why, failure)


class ExpectColumnValuesToBeNearEarlierDays(_NearEarlierDays):
    """Expect the values of a slice to be near those of the slices at the same time on earlier days.

    Judges each slice and key: the median of the column is compared with the medians of the same key in the slices at
    the same time on the `days` days before. It may differ from their median by `max_deviations` times their median
    absolute deviation (MAD), and by `min_deviation` in any case. Nulls are ignored. A slice and key with fewer than
    `min_days` earlier days is not judged, and the result says so.

    Args:
        column: the column of numbers.
        since: the start of the first slice to judge. The rows before are the history.
        until: the end of the last slice to judge.
        key_columns: the columns of the key, such as a device; default none.
        max_deviations: the largest distance from the median, in MADs; default 10.
        min_deviation: the distance that is always allowed, in the unit of the column; default 0.
        min_days: the smallest number of earlier days; default 5.
        mostly: the share of the slices and keys that must meet this, 0 to 1; default 1.
        days: how many days before a slice count; default 14.
        slice_column: the column with the start of the slice; default slice_start.
    """

    column: str
    key_columns: Columns = Field(default_factory=list)
    success_keys: ClassVar[tuple[str, ...]] = ("column", "key_columns", "since", "until", *DEVIATIONS, "slice_column")

    def needed_columns(self) -> list[str]:
        return [self.column, *self.key_columns, self.slice_column]

    def judge(self, frame: pd.DataFrame) -> Finding:
        if not pd.api.types.is_numeric_dtype(frame[self.column]):
            raise TypeError(f"the column {self.column} does not hold numbers")
        frame = frame.assign(slice=in_utc(frame[self.slice_column]), group=groups(frame, self.key_columns))
        medians = frame.groupby(["slice", "group"])[self.column].median().dropna().rename("value").reset_index()
        judged = medians[self._judged(medians["slice"])]
        keys = frame.drop_duplicates("group").set_index("group")[self.key_columns]
        shown = judged.rename(columns={"value": self.column, "slice": self.slice_column}).join(keys, on="group")
        columns = [*self.key_columns, self.slice_column, self.column]
        return self._compare(judged, medians, shown[columns], "value", self.column)


class ExpectTableRowCountToBeNearEarlierDays(_NearEarlierDays):
    """Expect a slice to have about as many rows as the slices at the same time on earlier days.

    Judges each slice, also one without rows: its number of rows may differ from the median of the slices at the same
    time on the `days` days before by `max_deviations` times their median absolute deviation (MAD), and by
    `min_deviation` in any case. A slice with fewer than `min_days` earlier days with rows is not judged, and the result
    says so.

    Args:
        since: the start of the first slice to judge. The rows before are the history.
        until: the end of the last slice to judge.
        max_deviations: the largest distance from the median, in MADs; default 10.
        min_deviation: the number of rows that may always be missing or too many; default 0.
        min_days: the smallest number of earlier days; default 5.
        mostly: the share of the slices that must meet this, 0 to 1; default 1.
        days: how many days before a slice count; default 14.
        slice_column: the column with the start of the slice; default slice_start.
    """

    success_keys: ClassVar[tuple[str, ...]] = ("since", "until", *DEVIATIONS, "slice_column")

    def needed_columns(self) -> list[str]:
        return [self.slice_column]

    def judge(self, frame: pd.DataFrame) -> Finding:
        counts = in_utc(frame[self.slice_column]).value_counts().sort_index()
        known = pd.DataFrame({"slice": counts.index, "group": 0, "value": counts.to_numpy("float64")})
        starts = self._expected_slices(known["slice"])
        rows = counts.reindex(starts, fill_value=0).to_numpy("float64")
        judged = pd.DataFrame({"slice": starts, "group": 0, "value": rows})
        if judged.empty:
            return Finding("slice", 0, 0, (), 1, "no rows, and none at the same time on earlier days")
        shown = pd.DataFrame({self.slice_column: starts, "rows": rows.astype("int64")})
        return self._compare(judged, known, shown, "slice", "the number of rows")

    def _expected_slices(self, starts: pd.Series) -> pd.DatetimeIndex:
        """Return the slices to judge: those with rows, and those at the time of day of one with rows before."""
        shifted = [starts + pd.Timedelta(days=day) for day in range(self.days + 1)]
        candidates = pd.concat(shifted).drop_duplicates().sort_values()
        return pd.DatetimeIndex(candidates[self._judged(candidates)])
