"""Propose a suite from the published rows and metrics of some slices, with the figures that led to each bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recapture.process.wording import counted
from recapture.quality import comparisons
from recapture.quality.metrics import ADJUSTED, share_of_events
from recapture.quality.signatures import SIGNATURES
from recapture.time_model.metrics import WATERMARK

if TYPE_CHECKING:
    import pandas as pd

HEADROOM = 1.5
"""How far a bound is from what was observed: so many times the largest observed deviation."""
MIN_PRESENT = 0.5
"""Smallest share of windows or values for which their presence is proposed."""
MIN_ROWS = 6
"""Smallest number of values of a key in a slice that can be called stuck."""
MIN_DAYS = 5
"""Smallest number of earlier days with which a value is compared."""
SLICES_WITH_WINDOWS = 168
"""Number of the newest slices whose windows are compared with the day before."""

Declared = dict[str, Any]
"""Expectation in the form of a suite file."""


@dataclass(frozen=True)
class PublishedSlices:
    """Rows and metrics of published slices of an output."""

    rows: pd.DataFrame
    """Columns of the output, with aware times, and `slice_start`."""
    metrics: pd.DataFrame
    """Metrics as a run has them, one row per slice and partition of an input."""
    slices: Sequence[pd.Timestamp]
    """Starts of the slices, in order, with those without rows."""
    length: pd.Timedelta
    """Length of a slice."""


def published_slices(rows: pd.DataFrame, metrics: pd.DataFrame, starts: Iterable[str], hours: int) -> PublishedSlices:
    """Return the published slices that start at these ISO 8601 times, each `hours` long."""
    import pandas as pd

    in_utc = pd.to_datetime(rows["slice_start"], utc=True)
    slices = [pd.Timestamp(start) for start in starts]
    return PublishedSlices(rows.assign(slice_start=in_utc), metrics, slices, pd.Timedelta(hours=hours))


def propose(name: str, published: PublishedSlices) -> Declared:
    """Return a suite that the slices pass, in the form of a suite file."""
    origin = (
        f"Proposed from {counted(len(published.rows), 'row')} of {counted(len(published.slices), 'slice')}, "
        f"{_text(published.slices[0])} to {_text(published.slices[-1] + published.length)}. Review every bound."
    )
    return {"name": name, "notes": origin, "expectations": [*_of_rows(published), *_of_metrics(published.metrics)]}


def _of_rows(published: PublishedSlices) -> Iterator[Declared]:
    rows = published.rows
    if rows.empty:
        return
    end = _window_end(published)
    key = _key(rows, end)
    if end:
        yield _declared(
            "expect_column_values_to_be_between",
            "critical",
            f"{end}: windows end in the range of the run",
            f"true for all {counted(len(rows), 'row')}",
            column=end,
            min_value={"$PARAMETER": "run_start"},
            strict_min=True,
            max_value={"$PARAMETER": "run_end"},
        )
    if key is not None and end:
        yield _declared(
            *("expect_compound_columns_to_be_unique", "critical", f"one row for each {' and '.join([end, *key])}"),
            f"true for all {counted(len(rows), 'row')}",
            column_list=[end, *key],
        )
    for column in _columns(rows):
        yield from _of_nulls(rows, column, "critical" if column in (end, *(key or ())) else "warning")
    for column in _numbers(rows):
        yield from _of_range(rows[column].dropna(), column)
        yield from _of_variation(rows, column, key or [])
        yield from _of_earlier_days(rows, column, key or [])
    if end and key:
        yield from _of_windows(published, end, key)
    yield from _of_counts(rows)


def _columns(rows: pd.DataFrame) -> list[str]:
    return [name for name in rows.columns if name != "slice_start"]


def _numbers(rows: pd.DataFrame) -> list[str]:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    names = [name for name in _columns(rows) if is_numeric_dtype(rows[name]) and not is_bool_dtype(rows[name])]
    return [name for name in names if rows[name].notna().any()]


def _window_end(published: PublishedSlices) -> str | None:
    """Return the first column of times that lie in their slice: after its start, and at its end at the latest."""
    from pandas.api.types import is_datetime64_any_dtype

    rows = published.rows
    for name in _columns(rows):
        if is_datetime64_any_dtype(rows[name]):
            after = rows[name] - rows["slice_start"]
            if ((after > np.timedelta64(0)) & (after <= published.length)).all():
                return name
    return None


def _key(rows: pd.DataFrame, end: str | None) -> list[str] | None:
    """Return the fewest of the first columns of texts that, with the window's end, identify a row; None if none do."""
    if end is None:
        return None
    texts = [name for name in _columns(rows) if rows[name].dtype == object and rows[name].notna().all()]
    for count in range(len(texts) + 1):
        if not rows.duplicated([end, *texts[:count]]).any():
            return texts[:count]
    return None


def _of_nulls(rows: pd.DataFrame, column: str, severity: str) -> Iterator[Declared]:
    share = float(rows[column].isna().groupby(rows["slice_start"]).mean().max())
    mostly = 1.0 if not share else math.floor((1 - min(HEADROOM * share, 1)) * 100) / 100
    if mostly >= MIN_PRESENT:
        kwargs = {"mostly": mostly} if share else {}
        note = f"nulls are at most {share:.2%} of the rows of a slice"
        what = f"{column} is never null" if not share else f"{column} is rarely null"
        yield _declared("expect_column_values_to_not_be_null", severity, what, note, column=column, **kwargs)


def _of_range(values: pd.Series, column: str) -> Iterator[Declared]:
    values = values[np.isfinite(values.to_numpy("float64"))]
    if values.empty:
        return
    smallest, largest = float(values.min()), float(values.max())
    margin = (largest - smallest or abs(largest) or 1.0) * (HEADROOM - 1)
    low = rounded(smallest - margin, math.floor)
    yield _declared(
        *("expect_column_values_to_be_between", "warning", f"{column} is in its usual range"),
        f"{counted(len(values), 'value')} from {smallest:.6g} to {largest:.6g}; 1 % are below "
        f"{values.quantile(0.01):.6g}, 1 % above {values.quantile(0.99):.6g}, the median is {values.median():.6g}",
        column=column,
        min_value=0 if smallest >= 0 > low else low,
        max_value=rounded(largest + margin, math.ceil),
    )


def _of_variation(rows: pd.DataFrame, column: str, key: list[str]) -> Iterator[Declared]:
    """Propose that the values of every key vary, if they did in every slice. Counts may well stay the same."""
    if rows[column].dtype.kind != "f":
        return
    by_key = rows.dropna(subset=column).groupby(["slice_start", *key], observed=True)[column]
    values, sizes = by_key.nunique(), by_key.size()
    judged = sizes >= MIN_ROWS
    if judged.any() and (values[judged] > 1).all():
        yield _declared(
            *("expect_column_values_to_vary", "warning", f"{column} is not stuck"),
            f"no key repeated one value in a slice with {MIN_ROWS} values or more; "
            f"{counted(int(judged.sum()), 'key and slice', 'keys and slices')} had as many",
            column=column,
            **_key_argument(key),
        )


def _of_earlier_days(rows: pd.DataFrame, column: str, key: list[str]) -> Iterator[Declared]:
    groups = rows.groupby(key, dropna=False, observed=True, sort=False).ngroup() if key else 0
    by_group = rows.assign(slice=rows["slice_start"], group=groups).groupby(["slice", "group"])[column]
    yield from _near_earlier_days(
        by_group.median().dropna().rename("value").reset_index(),
        *("expect_column_values_to_be_near_earlier_days", f"{column} is about as on earlier days"),
        column=column,
        **_key_argument(key),
    )


def _of_counts(rows: pd.DataFrame) -> Iterator[Declared]:
    counts = rows["slice_start"].value_counts().sort_index()
    values = counts.rename_axis("slice").rename("value").astype("float64").reset_index().assign(group=0)
    kind = "expect_table_row_count_to_be_near_earlier_days"
    yield from _near_earlier_days(values, kind, "there are as many rows as on earlier days")


def _key_argument(key: list[str]) -> dict[str, Any]:
    return {"key_columns": key} if key else {}


def _near_earlier_days(values: pd.DataFrame, kind: str, description: str, /, **arguments: Any) -> Iterator[Declared]:
    """Propose how far values may be from the median of earlier days, unless no value has enough of them."""
    history = SIGNATURES[kind].history
    assert history is not None
    compared = comparisons.with_earlier_days(values, values, history.days)
    compared = compared[compared["earlier_days"] >= MIN_DAYS]
    if compared.empty:
        return
    largest = float((compared["value"] - compared["median"]).abs().max())
    typical = float(compared["mad"].median())
    note = (
        f"{counted(len(compared), 'value')} with {MIN_DAYS} earlier days or more: the largest distance from the median "
        f"is {largest:.6g}, the usual deviation (MAD) {typical:.6g}"
    )
    arguments["min_deviation"] = rounded(HEADROOM * largest, math.ceil)
    yield _declared(kind, "warning", description, note, **arguments)


def _of_windows(published: PublishedSlices, end: str, key: list[str]) -> Iterator[Declared]:
    ends = published.rows[end].drop_duplicates().sort_values()
    hops = ends.diff().dropna()
    if hops.empty:
        return
    hop = hops.min().total_seconds()
    keys = published.rows.groupby(key, dropna=False, observed=True, sort=False).ngroup()
    shares = []
    for start in published.slices[-SLICES_WITH_WINDOWS:]:
        try:
            found = comparisons.key_windows(published.rows[end], keys, hop, start, start + published.length, days=1)
        except ValueError:
            return
        if len(found.present) and found.windows:
            shares.append(float(found.present.sum()) / (found.windows * len(found.present)))
    mostly = math.floor((1 - HEADROOM * (1 - min(shares))) * 100) / 100 if shares else 0.0
    allowance: dict[str, Any] = {"mostly": mostly} if mostly < 1 else {}
    if mostly >= MIN_PRESENT:
        yield _declared(
            *("expect_table_windows_to_be_complete", "warning", f"every known {' and '.join(key)} has its windows"),
            f"in {counted(len(shares), 'slice')}, {min(shares):.2%} of the windows or more have a row for each key of "
            "the day before",
            column=end,
            key_columns=key,
            hop_seconds=int(hop) if hop == int(hop) else hop,
            **allowance,
        )


def _of_metrics(metrics: pd.DataFrame) -> Iterator[Declared]:
    for kind, counts in (("late", ["LateInputEvents"]), ("adjusted", list(ADJUSTED)), ("malformed", ["malformed"])):
        shares = share_of_events(metrics, counts).dropna()
        if len(shares):
            largest = float(shares.max())
            yield _declared(
                *(f"expect_share_of_{kind}_events_to_be_at_most", "warning", f"few events are {kind}"),
                f"{counted(len(shares), 'slice and partition', 'slices and partitions')}: the largest share is "
                f"{largest:.2%}, the median {shares.median():.2%}",
                max_value=min(1, rounded(HEADROOM * largest + 0.01, math.ceil, digits=2)),
            )
    known = metrics.dropna(subset=WATERMARK).sort_values("slice_start")
    falls = comparisons.falls(known).dropna()
    if len(falls):
        largest = max(0.0, float(falls.max()))
        allowance: dict[str, Any] = {"max_fall_seconds": rounded(HEADROOM * largest, math.ceil)} if largest else {}
        yield _declared(
            *("expect_watermark_to_never_fall", "warning", "the watermark does not fall"),
            f"{counted(len(falls), 'slice and partition', 'slices and partitions')} with an earlier one: the largest "
            f"fall is {largest:.6g} s",
            **allowance,
        )


def _declared(kind: str, severity: str, description: str, note: str, /, **kwargs: Any) -> Declared:
    return {"type": kind, "severity": severity, "description": description, "kwargs": kwargs, "notes": note}


def rounded(value: float, towards: Any, digits: int = 3) -> float:
    """Return a number with few significant digits, rounded with math.floor or math.ceil."""
    if not value:
        return 0
    exponent = math.floor(math.log10(abs(value))) - digits + 1
    steps = towards(round(value / 10.0**exponent, 6))
    rounded = round(steps * 10.0**exponent, max(0, -exponent))
    return int(rounded) if rounded == int(rounded) else rounded


def _text(instant: pd.Timestamp) -> str:
    return instant.isoformat().replace("+00:00", "Z")
