"""How long a slice waits for Capture."""

import importlib
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import ROOT
from tests.worlds import World


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        environment.syspath_prepend(str(ROOT / "plugins"))
        return importlib.import_module("slice_schedule")


@pytest.mark.parametrize("seconds", [0, 3600, 20 * 86_400])
def test_a_slice_is_complete_after_the_late_tolerance_and_the_capture_interval(
    plugin: ModuleType, tmp_path: Path, seconds: int
) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=seconds)
    interval = pipeline.inputs[0].interval_seconds
    assert plugin.longest_wait(pipeline) == timedelta(seconds=seconds + interval)


def test_without_a_late_limit_a_slice_waits_for_the_capture_interval_alone(plugin: ModuleType, tmp_path: Path) -> None:
    pipeline = World(tmp_path).define(eventsLateArrivalMaxDelayInSeconds=-1)
    assert plugin.longest_wait(pipeline) == timedelta(seconds=pipeline.inputs[0].interval_seconds)
