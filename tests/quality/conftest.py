"""A run of two slices and two partitions, and the rows that it would publish."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recapture.quality import suites
from recapture.quality.suites import RunParameters
from recapture.time_model.metrics import COUNTS, WATERMARK, WATERMARK_DELAY
from tests.quality.staging import COLUMNS, Declared, SoundRun

RUN = RunParameters(2, datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def metrics() -> pd.DataFrame:
    counts = dict.fromkeys(COUNTS, 0) | {
        "InputEvents": 20,
        "InputEventBytes": 2000,
        "InputEventsSourcesTotal": 12,
        "EarlyInputEvents": 1,
        "LateInputEvents": 3,
        "DroppedOrAdjustedEvents": 2,
        "on_time": 14,
        "early_dropped": 1,
        "late_adjusted": 2,
        "late_dropped": 1,
        "out_of_order_adjusted": 1,
        "out_of_order_dropped": 1,
        WATERMARK_DELAY: 12.5,
        WATERMARK: RUN.run_start.timestamp() + 3500,
        "complete": True,
        "whole": True,
    }
    slices = pd.date_range(RUN.run_start, periods=2, freq="h")
    return pd.DataFrame(
        [
            {"slice_start": start, "input": "in", "partition": partition, **counts}
            for start in slices
            for partition in ("0", "1")
        ]
    )


@pytest.fixture
def aggregates() -> pd.DataFrame:
    ends = pd.date_range("2026-03-01T10:05:00Z", "2026-03-01T12:00:00Z", freq="5min")
    return pd.DataFrame(
        [
            {"windowEnd": end, "deviceId": device, "events": 3, "avgTemperature": 20 + end.minute / 10}
            for end in ends
            for device in ("a", "b")
        ]
    )


@pytest.fixture
def sound(metrics: pd.DataFrame, aggregates: pd.DataFrame, great_expectations: None) -> SoundRun:
    return SoundRun(metrics, aggregates, RUN)


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    def load(*expectations: dict[str, Any]) -> suites.Suite:
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({"name": "mine", "expectations": expectations}))
        return suites.load(path, COLUMNS)

    return load
