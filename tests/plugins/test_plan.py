"""The first task of a run by hand, and of a run of Airflow's backfill."""

from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from recapture import cli
from recapture.errors import RunError
from tests.plugins.conftest import LoadPlugin
from tests.worlds import HOUR, TEN, World, steady

ELEVEN = TEN + HOUR


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("backfill_tasks")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = steady(tmp_path, hours=2, partitions=1)
    world.define()
    return world


def plan(plugin: ModuleType, world: World, start: datetime, end: datetime, kind: str = "backfill") -> str:
    run = SimpleNamespace(
        run_type=kind, data_interval_start=start, data_interval_end=end, dag_id="telemetry", run_id="run"
    )
    planned: str = plugin.plan.function(str(world.file), params={}, dag_run=run)
    return planned


def test_airflows_backfill_skips_a_slice_that_is_up_to_date_and_a_run_by_hand_does_not(
    plugin: ModuleType, world: World
) -> None:
    run = plan(plugin, world, TEN, ELEVEN)
    assert cli.main(["backfill", str(world.file), "--from", TEN.isoformat(), "--to", ELEVEN.isoformat()]) == 0
    with pytest.raises(plugin.AirflowSkipException, match="is up to date"):
        plan(plugin, world, TEN, ELEVEN)
    assert plan(plugin, world, TEN, ELEVEN, "manual") == run


def test_a_slice_whose_blobs_have_changed_is_not_up_to_date(plugin: ModuleType, world: World) -> None:
    assert cli.main(["backfill", str(world.file), "--from", TEN.isoformat(), "--to", ELEVEN.isoformat()]) == 0
    sorted((world.capture).rglob("*.avro"))[0].unlink()
    assert plan(plugin, world, TEN, ELEVEN)


def test_a_slice_that_was_rolled_back_is_not_up_to_date(plugin: ModuleType, world: World) -> None:
    bounds = ["--from", TEN.isoformat(), "--to", ELEVEN.isoformat()]
    for command in ("backfill", "rollback"):
        assert cli.main([command, str(world.file), *bounds]) == 0
    assert plan(plugin, world, TEN, ELEVEN)


def test_a_range_that_capture_has_not_written_is_refused(plugin: ModuleType, world: World) -> None:
    world.define(eventsLateArrivalMaxDelayInSeconds=20 * 86_400)
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    with pytest.raises(RunError, match=r"not written the range yet: .*telemetry\.update"):
        plan(plugin, world, now - HOUR, now, "manual")
