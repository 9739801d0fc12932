"""The runs of Airflow's backfill whose slices are next to each other are computed together."""

from datetime import datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture import cli
from recapture.definition.pipeline import load
from recapture.run.plan import plan_run
from recapture.run_files.work import WORK
from recapture.storage import open_container
from recapture.time_model import ticks
from tests.recapture_airflow.conftest import LoadPlugin
from tests.recapture_airflow.test_plan import Airflow, context
from tests.worlds import HOUR, TEN, World, steady

HOURS = [TEN + hours * HOUR for hours in range(6)]
DAY = "together__2024-03-01T00:00:00Z__2024-03-02T00:00:00Z"


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("plan_tasks")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six hours of events, from ten on."""
    world = steady(tmp_path, hours=6, partitions=1)
    world.define()
    return world


class Backfill:
    """Airflow's backfill of a world, whose runs are all active."""

    def __init__(self, plugin: ModuleType, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plugin, self.world, self.airflow = plugin, world, Airflow(set(HOURS))
        self.deleted: str | None = None
        """DAG run that was deleted while others waited for it."""
        monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", self.airflow, raising=False)

    def run(self, start: datetime, block: list[int] | None = None) -> Any:
        """Run the first task of a slice's run, or let it go on after a run of the block.

        Return the reason for which it waits, the id of its own run, or None if it is skipped.
        """
        from airflow.providers.common.compat.sdk import AirflowSkipException, TaskDeferred

        task = self.plugin.Plan(task_id="plan", file=str(self.world.file))
        own = context(start, start + HOUR, airflow=self.airflow)
        try:
            return task.execute(own) if block is None else task.resume(own, self.event(block), block)
        except AirflowSkipException:
            return None
        except TaskDeferred as waiting:
            return waiting

    def event(self, block: list[int]) -> dict[str, Any]:
        """Return what the trigger says of the last run of a block."""
        if self.deleted is not None:
            return {"run_id": self.deleted, "state": "deleted"}
        start, end = map(ticks.to_text, block)
        *_, run_id = (run_id for run_id in self.airflow.states if run_id.startswith(f"together__{start}__{end}__"))
        return {"run_id": run_id, "state": self.airflow.states[run_id]}

    def waits_for(self, start: datetime, block: list[int] | None = None) -> tuple[str, tuple[str, str]]:
        """Return the DAG run for which the run of a slice waits, and the hours of its range."""
        run_id = self.run(start, block).trigger.run_id
        conf = self.airflow.confs[run_id]
        return run_id, (conf["from"][11:13], conf["to"][11:13])

    def end(self, run_id: str, state: str) -> None:
        """Let a run of several slices end. If it fails, its last task records that it was not the audit's doing."""
        conf = self.airflow.confs[run_id]
        self.airflow.states[run_id] = state
        bounds = [datetime.fromisoformat(conf[name]) for name in ("from", "to")]
        if state == "failed":
            run = plan_run(load(self.world.file), bounds[0], bounds[1])
            results = {"plan": run.id, "audit": None}
            ti = SimpleNamespace(xcom_pull=lambda task_ids, key=None: results[task_ids])
            self.plugin.record_failure.function(str(self.world.file), dag_run=SimpleNamespace(run_id=run_id), ti=ti)
        else:
            publish(self.world, *bounds)


def publish(world: World, start: datetime, end: datetime) -> None:
    assert cli.main(["backfill", str(world.file), "--from", start.isoformat(), "--to", end.isoformat()]) == 0


@pytest.fixture
def backfill(plugin: ModuleType, world: World, monkeypatch: pytest.MonkeyPatch) -> Backfill:
    return Backfill(plugin, world, monkeypatch)


def test_one_run_computes_the_slices_of_all_runs_and_they_are_skipped_after_it(backfill: Backfill) -> None:
    waiting = [backfill.waits_for(start) for start in HOURS[:2]]
    assert waiting == [(f"{DAY}__1", ("10", "16"))] * 2
    assert backfill.airflow.confs[f"{DAY}__1"]["accept_loss"], "it has the parameters of the backfill"
    assert list(backfill.airflow.states) == [f"{DAY}__1"], "the second run found the first one's"
    backfill.end(f"{DAY}__1", "success")
    assert [backfill.run(start) for start in HOURS] == [None] * 6


def test_the_runs_of_a_range_that_failed_compute_its_halves_until_the_slice_at_fault_is_alone(
    backfill: Backfill, world: World
) -> None:
    run_id, _ = backfill.waits_for(HOURS[0])
    block = backfill.run(HOURS[0]).kwargs["block"]
    backfill.end(run_id, "failed")
    halves = [backfill.waits_for(start, block) for start in HOURS]
    assert [hours for _, hours in halves] == [("10", "13")] * 3 + [("13", "16")] * 3
    block = backfill.run(HOURS[0], block).kwargs["block"]
    backfill.end(halves[3][0], "success")
    backfill.end(halves[0][0], "failed")
    assert backfill.waits_for(HOURS[1], block)[1] == ("11", "13")
    assert str(backfill.run(HOURS[0], block)).startswith("20240301T100000Z"), "it computes its own slice"


def test_a_run_goes_on_alone_if_it_is_not_known_why_a_run_of_its_neighbours_published_nothing(
    backfill: Backfill,
) -> None:
    """For example, because a person marked that run as failed."""
    run_id, _ = backfill.waits_for(HOURS[0])
    block = backfill.run(HOURS[0]).kwargs["block"]
    backfill.airflow.states[run_id] = "failed"
    assert str(backfill.run(HOURS[0], block)).startswith("20240301T100000Z")


def test_the_runs_that_waited_for_a_deleted_run_have_their_slices_computed_together_again(
    backfill: Backfill, caplog: pytest.LogCaptureFixture
) -> None:
    run_id, hours = backfill.waits_for(HOURS[0])
    block = backfill.run(HOURS[0]).kwargs["block"]
    del backfill.airflow.states[run_id]
    backfill.deleted = run_id
    assert [backfill.waits_for(start, block) for start in HOURS[:2]] == [(run_id, hours)] * 2
    assert list(backfill.airflow.states) == [run_id], "it was started again, once"
    assert f"the DAG run {run_id} was deleted before it ended" in caplog.text


def test_only_slices_that_are_due_and_have_an_active_run_are_taken_along(backfill: Backfill, world: World) -> None:
    publish(world, HOURS[1], HOURS[2])
    backfill.airflow.slices.remove(HOURS[5])
    assert backfill.waits_for(HOURS[3])[1] == ("12", "15")
    assert str(backfill.run(HOURS[0])).startswith("20240301T100000Z"), "its neighbour is published"


def test_a_later_backfill_of_the_same_slices_has_a_run_of_its_own(backfill: Backfill, world: World) -> None:
    backfill.end(backfill.waits_for(HOURS[0])[0], "success")
    for blob in sorted(world.capture.rglob("*.avro"))[14:30]:
        blob.unlink()
    assert backfill.waits_for(HOURS[0])[0] == f"{DAY}__2"


@pytest.mark.parametrize(
    ("budget", "hours"), [({"at_most_slices": 2}, ("12", "14")), ({"at_most_bytes": 130_000}, ("12", "15"))]
)
def test_a_run_takes_at_most_as_many_neighbours_as_an_update_may(
    backfill: Backfill, world: World, budget: dict[str, int], hours: tuple[str, str]
) -> None:
    world.amend(schedule=budget)
    assert backfill.waits_for(HOURS[2])[1] == hours


def test_slices_that_were_left_by_the_budget_are_computed_together_next(backfill: Backfill, world: World) -> None:
    world.amend(schedule={"at_most_bytes": 130_000})
    run_id, _ = backfill.waits_for(HOURS[2])
    block = backfill.run(HOURS[0]).kwargs["block"]
    backfill.end(run_id, "success")
    assert backfill.waits_for(HOURS[0], block) == (f"{DAY}__2", ("10", "12"))


def test_a_run_that_is_planned_keeps_updates_from_computing_its_range_until_it_fails(
    backfill: Backfill, world: World
) -> None:
    backfill.airflow.slices = set()
    run, run_files = backfill.run(HOURS[0]), open_container(world.table.as_uri())
    (lease,) = WORK.read(run_files).leases
    ti = SimpleNamespace(xcom_pull=lambda task_ids, key=None: run if task_ids == "plan" else None)
    backfill.plugin.record_failure.function(str(world.file), dag_run=SimpleNamespace(run_id=lease.id), ti=ti)
    assert (WORK.read(run_files).leases, WORK.read(run_files).failures) == ((), ()), "only updates try it again"
