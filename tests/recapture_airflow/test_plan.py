"""The first task of a run by hand, and of a run of Airflow's backfill."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture import cli
from recapture.definition.pipeline import load
from recapture.errors import RunError
from recapture.keep.requests import requests_of
from recapture.run import run_length
from tests.recapture_airflow.conftest import LoadPlugin
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
    plugin: ModuleType,
    world: World,
    start: datetime,
    end: datetime,
    kind: str = "backfill",
    **params: Any,
) -> str:
    return str(plugin.Plan(task_id="plan", file=str(world.file)).execute(context(start, end, kind, **params)))


def context(
    start: datetime, end: datetime, kind: str = "backfill", airflow: Any = None, **params: Any
) -> dict[str, Any]:
    run = SimpleNamespace(
        run_type=kind,
        data_interval_start=start,
        data_interval_end=end,
        dag_id="telemetry",
        run_id=f"{kind}__{start}",
        conf={"accept_loss": True},
        triggering_user_name="ada",
        note="new thresholds",
    )
    return {"dag_run": run, "params": params, "ti": airflow or Airflow(set())}


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


def test_a_range_that_is_too_long_for_one_run_is_refused(
    plugin: ModuleType, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_length, "_SURELY", 0)
    monkeypatch.setattr(run_length, "MOST_COUNTED", 1)
    from airflow.providers.common.compat.sdk import AirflowFailException

    with pytest.raises(
        AirflowFailException, match=r"has 2 slices, .*choose a `to` up to 2024-03-01T11:00:00Z, or give `at`"
    ):
        plan(plugin, world, TEN, TEN + 2 * HOUR, "manual")


def test_a_run_for_later_requests_its_range_once_and_computes_nothing(plugin: ModuleType, world: World) -> None:
    for _ in range(2):
        with pytest.raises(
            plugin.AirflowSkipException, match=r"request \w{8} is made: .* at 2030-01-01T06:30:00Z or later"
        ):
            plan(plugin, world, TEN, ELEVEN, "manual", at="2030-01-01T06:30:00Z")
    (request,) = requests_of(load(world.file))
    asked = (request["from"], request["to"], request["at"], request["by"], request["reason"])
    bounds = ("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z")
    assert asked == (*bounds, "2030-01-01T06:30:00Z", "ada", "new thresholds")
    assert not list(world.table.glob("_recapture/*/manifest.json"))


@pytest.mark.parametrize(
    ("kind", "params", "error"),
    [
        ("backfill", {}, "`at` contradicts Airflow's backfill"),
        ("manual", {"accept_loss": True}, "`at` and `accept_loss` contradict"),
        ("manual", {"stage": True}, "`at` and `stage` contradict"),
        ("manual", {"parameters": {"most": 5}}, "`at` and `parameters` contradict"),
        ("manual", {"at": "tomorrow"}, "`at` is 'tomorrow'"),
    ],
)
def test_a_run_for_later_that_asks_for_more_than_a_request_has_is_refused(
    plugin: ModuleType, world: World, kind: str, params: dict[str, Any], error: str
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    with pytest.raises(AirflowFailException, match=error):
        plan(plugin, world, TEN, ELEVEN, kind, **{"at": "2030-01-01T06:30:00Z", **params})
    assert requests_of(load(world.file)) == []
