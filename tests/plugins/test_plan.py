"""The first task of a run by hand, and of a run of Airflow's backfill."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture import cli
from recapture.errors import RunError
from tests.plugins.conftest import LoadPlugin
from tests.worlds import HOUR, TEN, World, steady

ELEVEN = TEN + HOUR


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("plan_tasks")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = steady(tmp_path, hours=2, partitions=1)
    world.define()
    return world


def plan(
    plugin: ModuleType, world: World, start: datetime, end: datetime, kind: str = "backfill", airflow: Any = None
) -> str:
    return str(plugin.Plan(task_id="plan", file=str(world.file)).execute(context(start, end, kind, airflow)))


def context(start: datetime, end: datetime, kind: str, airflow: Any = None) -> dict[str, Any]:
    run = SimpleNamespace(
        run_type=kind,
        data_interval_start=start,
        data_interval_end=end,
        dag_id="telemetry",
        run_id=f"{kind}__{start}",
        conf={"accept_loss": True},
    )
    return {"dag_run": run, "params": {}, "ti": airflow or Airflow(set())}


class Airflow:
    """What Airflow answers to the tasks of a backfill whose runs of these slices are active."""

    def __init__(self, slices: set[datetime]) -> None:
        self.slices = slices
        self.states: dict[str, str] = {}
        self.confs: dict[str, dict[str, Any]] = {}

    def get_dr_count(
        self,
        dag_id: str,
        logical_dates: Sequence[datetime] = (),
        run_ids: Sequence[str] = (),
        states: Sequence[str] | None = None,
    ) -> int:
        if logical_dates:
            return len(self.slices.intersection(logical_dates))
        return sum(id in self.states and self.states[id] in (states or self.states.values()) for id in run_ids)

    def send(self, message: Any) -> None:
        """Start a run, unless there is one with this id."""
        self.states.setdefault(message.run_id, "queued")
        self.confs.setdefault(message.run_id, message.conf)


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
