"""The tasks of an update: what is due comes first, and what is left comes next."""

from datetime import datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture import cli
from recapture.errors import RunError
from recapture.run_files.work import WORK
from recapture.storage import open_container
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import HOUR, TEN, World, at, steady

ELEVEN, NOON = (TEN + hours * HOUR for hours in (1, 2))


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("update_tasks")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three hours of events, of which the first is published."""
    world = steady(tmp_path, hours=3, partitions=1)
    world.define()
    world.amend(schedule={"since": f"{TEN:%Y-%m-%dT%H:%M:%SZ}"})
    assert cli.main(["backfill", str(world.file), "--from", TEN.isoformat(), "--to", ELEVEN.isoformat()]) == 0
    return world


class Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> "Clock":
        return cls.fromisoformat(at(185).isoformat())


@pytest.fixture
def due(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first task of an update at 13:05, when the last event of the archive was written."""
    monkeypatch.setattr(plugin, "datetime", Clock)

    def run(world: World, run_id: str = "first", try_number: int = 1) -> dict[str, Any]:
        dag_run, ti = SimpleNamespace(run_id=run_id), SimpleNamespace(try_number=try_number)
        result: dict[str, Any] = plugin.due.function(str(world.file), dag_run=dag_run, ti=ti)
        return result

    return run


def ended(plugin: ModuleType, world: World, taken: dict[str, Any], stopped: Any = None, **states: str) -> None:
    """Carry out the last task of an update whose other tasks ended in these states."""

    def xcom_pull(task_ids: str, key: str = "return_value") -> Any:
        return stopped if key == "stopped" else "the run"

    ti = SimpleNamespace(get_task_states=lambda *_, run_ids, task_ids: {run_ids[0]: states}, xcom_pull=xcom_pull)
    plugin.record_job.function(
        str(world.file), taken, dag_run=SimpleNamespace(dag_id="telemetry.update", run_id="first"), ti=ti
    )


def bounds(taken: dict[str, Any]) -> tuple[str, str]:
    return taken["from"][11:16], taken["to"][11:16]


def test_an_update_takes_the_newest_range_and_says_what_is_left(due: Any, world: World) -> None:
    taken = due(world)
    assert bounds(taken) == ("11:00", "13:00")
    assert taken["next"] == "2024-03-01T12:00:00Z", "its halves, if the run fails"


def test_an_update_without_anything_to_do_skips_the_other_tasks(plugin: ModuleType, due: Any, world: World) -> None:
    taken = due(world)
    assert cli.main(["backfill", str(world.file), "--from", taken["from"], "--to", taken["to"]]) == 0
    ended(plugin, world, taken, publish="success")
    with pytest.raises(plugin.AirflowSkipException, match="nothing is due"):
        due(world, "second")


def test_no_other_update_computes_the_range_until_this_one_has_ended(
    plugin: ModuleType, due: Any, world: World
) -> None:
    taken = due(world)
    with pytest.raises(plugin.AirflowSkipException, match="nothing is due"):
        due(world, "second")
    assert due(world, try_number=2) == taken, "a task that is repeated takes its range again"


def test_a_range_that_failed_is_halved_and_a_slice_that_failed_alone_waits(
    plugin: ModuleType, due: Any, world: World
) -> None:
    first = due(world)
    ended(plugin, world, first, order_and_aggregate="failed", publish="upstream_failed")
    half = due(world)
    assert (bounds(half), half["next"]) == (("12:00", "13:00"), "2024-03-01T11:00:00Z")
    ended(plugin, world, half, plan="failed", publish="upstream_failed")
    assert bounds(due(world, "third")) == ("11:00", "12:00")
    with pytest.raises(plugin.AirflowSkipException, match="nothing is due"):
        due(world, "fourth")


def test_a_run_that_its_audit_stopped_is_not_written_down_as_failed(plugin: ModuleType, due: Any, world: World) -> None:
    """The record of stopped runs has it."""
    taken = due(world)
    ended(plugin, world, taken, {"asks": False}, audit="failed", publish="upstream_failed")
    work = WORK.read(open_container(world.table.as_uri()))
    assert (work.failures, work.leases) == ((), ())


def test_an_update_records_what_it_compared(due: Any, world: World) -> None:
    due(world)
    assert (world.table / "_recapture" / "changed.json").exists()


def test_what_cannot_be_finished_keeps_no_slice_from_being_computed_and_is_told_in_the_end(
    plugin: ModuleType, due: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from recapture.keep import due as decision
    from recapture.table import publish

    def bring_in_line(tables: object, starts: list[str]) -> None:
        raise RunError(f"a file of {starts} is gone")

    tick = decision.tick
    monkeypatch.setattr(decision, "tick", lambda state: replace(tick(state), unfinished=(state.since,)))
    monkeypatch.setattr(publish, "bring_in_line", bring_in_line)
    assert bounds(due(world)) == ("11:00", "13:00")
    with pytest.raises(RunError, match="2024-03-01T10:00:00Z"):
        due(world, "second")


def triggered(operator: Any, **context: Any) -> Any:
    """Return the DAG run that an operator triggers."""
    from airflow.providers.common.compat.sdk import DagRunTriggerException

    with pytest.raises(DagRunTriggerException) as raised:
        operator.execute(context)
    return raised.value


def test_the_next_update_begins_at_once_if_it_may_have_something_to_do(plugin: ModuleType) -> None:
    counts = {"queued": 0}
    ti = SimpleNamespace(get_dr_count=lambda dag_id, states: counts[states[0]])

    def operator(start: str | None) -> Any:
        due: dict[str, Any] = {"from": "2024-03-01T11:00:00Z", "to": "2024-03-01T12:00:00Z", "next": start, "job": {}}
        return plugin.NextUpdate(task_id="next_update", trigger_dag_id="telemetry.update", due=due)

    run = triggered(operator("2024-03-01T11:00:00Z"), ti=ti)
    assert (run.trigger_dag_id, run.logical_date) == ("telemetry.update", None)
    assert run.dag_run_id.startswith("continued__2024-03-01T11:00:00Z__")
    with pytest.raises(plugin.AirflowSkipException, match="nothing is left"):
        operator(None).execute({"ti": ti})
    counts["queued"] = 1
    with pytest.raises(plugin.AirflowSkipException, match="queued already"):
        operator("2024-03-01T11:00:00Z").execute({"ti": ti})


def test_a_person_is_asked_once_about_a_run_of_one_slice_that_its_audit_stopped(plugin: ModuleType) -> None:
    operator = plugin.AskPerson(task_id="ask", trigger_dag_id="telemetry.approval", run="the run")

    def ti(stopped: Any) -> SimpleNamespace:
        return SimpleNamespace(xcom_pull=lambda task_ids, key: stopped)

    asked = triggered(operator, ti=ti({"asks": True}), run_id="scheduled__1")
    assert (asked.trigger_dag_id, asked.conf) == ("telemetry.approval", {"run": "the run"})
    assert (asked.dag_run_id, asked.skip_when_already_exists) == ("asked__scheduled__1", True)
    for stopped in (None, {"asks": False}):
        with pytest.raises(plugin.AirflowSkipException):
            operator.execute({"ti": ti(stopped), "run_id": "scheduled__1"})
