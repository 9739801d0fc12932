"""How long a slice waits for Capture."""

from datetime import timedelta
from pathlib import Path

import pytest

from recapture.definition.digest import run_definition
from tests.worlds import World


@pytest.mark.parametrize("seconds", [0, 3600, 20 * 86_400])
def test_a_slice_is_complete_after_the_late_tolerance_and_the_capture_interval(tmp_path: Path, seconds: int) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=seconds)
    interval = pipeline.inputs[0].interval_seconds
    assert run_definition(pipeline).longest_wait == timedelta(seconds=seconds + interval)


def test_without_a_late_limit_a_slice_waits_for_the_capture_interval_alone(tmp_path: Path) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=-1)
    assert run_definition(pipeline).longest_wait == timedelta(seconds=pipeline.inputs[0].interval_seconds)
