"""How long a slice waits for Capture."""

from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from tests.plugins.conftest import LoadPlugin
from tests.worlds import World


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("slice_schedule")


@pytest.mark.parametrize(("tolerance", "late"), [(0, 0), (3600, 3600), (20 * 86_400, 20 * 86_400), (-1, 0)])
def test_a_slice_is_complete_after_the_late_tolerance_if_there_is_one_and_the_capture_interval(
    plugin: ModuleType, tmp_path: Path, tolerance: int, late: int
) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=tolerance)
    assert plugin.longest_wait(pipeline) == timedelta(seconds=late + pipeline.inputs[0].interval_seconds)
