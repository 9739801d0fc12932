"""A proposed suite: it loads, the history that it was made from passes it, and other data does not."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recapture.quality import checkpoint, proposal, suites
from recapture.quality.audit import Audit
from recapture.quality.rows import Rows, SliceFile
from recapture.time_model.metrics import WATERMARK
from tests.quality.staging import in_files, in_rows, with_start_strings

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
DAYS, HOURS = 7, 2
STARTS = [FIRST + timedelta(days=day, hours=hour) for day in range(DAYS) for hour in range(HOURS)]
COLUMNS = ("windowEnd", "deviceId", "events", "temperature", "slice_start")


def rows() -> pd.DataFrame:
    """Return windows of two hours on each of some days; the temperatures of a device are null now and then."""
    draw = np.random.default_rng(3)
    listed = [
        {
            "windowEnd": pd.Timestamp(start + timedelta(minutes=5 * number)),
            "deviceId": device,
            "events": int(draw.integers(8, 12)),
            "temperature": None if number == 7 and device == "b" else 20 + draw.normal(),
            "slice_start": pd.Timestamp(start),
        }
        for start in STARTS
        for number in range(1, 13)
        for device in ("a", "b", "c")
    ]
    return pd.DataFrame(listed)


def metrics_of(template: pd.DataFrame, starts: list[datetime]) -> pd.DataFrame:
    """Return the metrics of one partition; shares vary from slice to slice."""
    listed = []
    for number, start in enumerate(starts):
        row = template.iloc[0].to_dict() | {"slice_start": start, WATERMARK: start.timestamp() + 3500}
        listed.append(row | {"LateInputEvents": number % 3, "on_time": 14})
    return pd.DataFrame(listed)


def judge(folder: Path, suite: suites.Suite, frame: pd.DataFrame, metrics: pd.DataFrame, start: datetime) -> Audit:
    """Audit the slice that starts then, with the slices before it as its history."""
    files = []
    for known in STARTS[: STARTS.index(start) + 1]:
        slice_frame = frame[frame["slice_start"] == known].drop(columns="slice_start")
        files.append(SliceFile(in_files(folder, slice_frame).files[0].path, known))
    schema = in_files(folder, frame.drop(columns="slice_start")).schema
    judged = Rows(schema, "slice_start", files[-1:], history=files[:-1])
    is_now = metrics["slice_start"] == start
    earlier = with_start_strings(metrics[metrics["slice_start"] < start])
    return checkpoint.audit(
        in_rows(metrics[is_now]),
        {"rows": judged},
        {"rows": suite},
        suites.RunParameters(1, start, start + timedelta(hours=1)),
        earlier_metrics=earlier if len(earlier) else None,
    )


def propose(frame: pd.DataFrame, metrics: pd.DataFrame, starts: list[datetime]) -> dict[str, Any]:
    """Propose a suite from the slices of these starts."""
    texts = [start.isoformat() for start in starts]
    return proposal.propose("mine", proposal.published_slices(frame, metrics_of(metrics, starts), texts, 1))


@pytest.fixture
def proposed(metrics: pd.DataFrame) -> dict[str, Any]:
    return propose(rows(), metrics, STARTS)


@pytest.mark.usefixtures("great_expectations")
def test_every_slice_of_the_history_passes_what_is_proposed_from_it_and_other_data_does_not(
    tmp_path: Path, proposed: dict[str, Any], metrics: pd.DataFrame
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(proposed))
    suite = suites.load(path, COLUMNS)
    counted, frame = metrics_of(metrics, STARTS), rows()
    for start in STARTS[::5] + STARTS[-1:]:
        audited = judge(tmp_path, suite, frame, counted, start)
        assert [result.sentence for result in audited.results if not result.success] == []
    assert all(result.proved for result in audited.results), "the last slice has enough history for everything"
    fahrenheit = frame.assign(temperature=frame["temperature"] * 1.8 + 32)
    frame = frame.where(frame["slice_start"] != STARTS[-1], fahrenheit)[frame["deviceId"] != "c"]
    frame = frame.astype(rows().dtypes)
    failed = judge(tmp_path, suite, frame, counted, STARTS[-1])
    assert {result.expectation for result in failed.results if not result.success} == {
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_near_earlier_days",
    }


def test_every_bound_has_the_figures_that_led_to_it(proposed: dict[str, Any]) -> None:
    notes = {expectation["type"]: expectation["notes"] for expectation in proposed["expectations"]}
    assert notes["expect_compound_columns_to_be_unique"] == "true for all 504 rows"
    assert notes["expect_share_of_late_events_to_be_at_most"] == (
        "14 slices and partitions: the largest share is 10.00%, the median 5.00%"
    )
    nulls = next(
        expectation
        for expectation in proposed["expectations"]
        if expectation["type"] == "expect_column_values_to_not_be_null"
        and expectation["kwargs"]["column"] == "temperature"
    )
    assert (nulls["kwargs"]["mostly"], nulls["notes"]) == (0.95, "nulls are at most 2.78% of the rows of a slice")
    assert "4 values with 5 earlier days or more: " in notes["expect_table_row_count_to_be_near_earlier_days"]


def test_a_short_history_proposes_nothing_about_earlier_days(metrics: pd.DataFrame) -> None:
    few = rows()[lambda frame: frame["slice_start"] < STARTS[4]]
    suite = propose(few, metrics, STARTS[:4])
    assert not [e for e in suite["expectations"] if "near_earlier_days" in e["type"]]


def test_slices_without_rows_propose_only_what_the_metrics_tell(metrics: pd.DataFrame) -> None:
    suite = propose(rows().iloc[:0], metrics, STARTS[:2])
    assert {e["type"].split("_events")[0] for e in suite["expectations"]} == {
        *(f"expect_share_of_{kind}" for kind in ("late", "adjusted", "malformed")),
        "expect_watermark_to_never_fall",
    }


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0, 0, 0), (33.21, 33.2, 33.3), (-0.01234, -0.0124, -0.0123), (123456, 123000, 124000)]
)
def test_bounds_have_three_digits(value: float, low: float, high: float) -> None:
    assert proposal.rounded(value, math.floor) == low
    assert proposal.rounded(value, math.ceil) == high
