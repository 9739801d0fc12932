"""How long a slice waits for Capture."""

from datetime import timedelta
from pathlib import Path

import pytest

from recapture.definition.digest import run_definition
from tests.worlds import World


@pytest.mark.parametrize(("tolerance", "late"), [(0, 0), (3600, 3600), (20 * 86_400, 20 * 86_400), (-1, 0)])
def test_a_slice_is_complete_after_the_late_tolerance_if_there_is_one_and_the_capture_interval(
    tmp_path: Path, tolerance: int, late: int
) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=tolerance)
    expected = timedelta(seconds=late + pipeline.inputs[0].interval_seconds)
    assert run_definition(pipeline).longest_wait == expected
