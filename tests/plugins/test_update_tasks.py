"""The tasks of an update: what is due comes first, and what is left comes next."""

from datetime import datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture import cli
from recapture.errors import RunError
from tests.plugins.conftest import LoadPlugin
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

    def run(world: World, **conf: Any) -> dict[str, Any]:
        result: dict[str, Any] = plugin.due.function(str(world.file), dag_run=SimpleNamespace(conf=conf))
        return result

    return run


def test_an_update_takes_the_newest_range_and_says_what_is_left(due: Any, world: World) -> None:
    taken = due(world)
    assert (taken["from"], taken["to"]) == ("2024-03-01T11:00:00Z", "2024-03-01T13:00:00Z")
    assert taken["next"] == "2024-03-01T12:00:00Z"
    assert taken["tried"] == {"2024-03-01T11:00:00Z": None, "2024-03-01T12:00:00Z": None}


def test_an_update_without_anything_to_do_skips_the_other_tasks(plugin: ModuleType, due: Any, world: World) -> None:
    taken = due(world)
    with pytest.raises(plugin.AirflowSkipException, match="nothing is due"):
        due(world, tried=taken["tried"])
    assert cli.main(["backfill", str(world.file), "--from", taken["from"], "--to", taken["to"]]) == 0
    with pytest.raises(plugin.AirflowSkipException, match="nothing is due"):
        due(world)


def test_an_update_records_what_it_compared(due: Any, world: World) -> None:
    due(world)
    assert (world.table / "_recapture" / "changed.json").exists()


def test_an_update_finishes_what_was_interrupted_or_fails_if_it_cannot(
    plugin: ModuleType, due: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recapture.keep import newest
    from recapture.table import publish

    finished: list[list[str]] = []

    def unfinished(state: Any, tried: Any) -> Any:
        found = choose(state, tried)
        return newest.NewestRange(plugin_replace(found.tick, unfinished=(state.since,)), found.failed)

    def bring_in_line(tables: Any, starts: list[str]) -> None:
        finished.append(starts)
        if len(finished) > 1:
            raise RunError("a file is gone")

    from dataclasses import replace as plugin_replace

    choose = newest.newest_range
    monkeypatch.setattr(newest, "newest_range", unfinished)
    monkeypatch.setattr(publish, "bring_in_line", bring_in_line)
    taken = due(world)
    assert finished == [["2024-03-01T10:00:00Z"]]
    assert due(world) == taken, "what cannot be finished does not keep slices from being computed"
    with pytest.raises(RunError, match="a file is gone"):
        due(world, tried=taken["tried"])


def triggered(operator: Any, **context: Any) -> Any:
    """Return the DAG run that an operator triggers."""
    from airflow.sdk.exceptions import DagRunTriggerException

    with pytest.raises(DagRunTriggerException) as raised:
        operator.execute(context)
    return raised.value


def test_the_next_update_begins_at_once_if_it_may_have_something_to_do(plugin: ModuleType) -> None:
    tried = {"2024-03-01T12:00:00Z": None}
    counts = {"queued": 0}
    ti = SimpleNamespace(get_dr_count=lambda dag_id, states: counts[states[0]])

    def operator(start: str | None) -> Any:
        due = {"next": start, "tried": tried}
        return plugin.NextUpdate(task_id="next_update", trigger_dag_id="telemetry.update", due=due)

    run = triggered(operator("2024-03-01T11:00:00Z"), ti=ti)
    assert (run.trigger_dag_id, run.conf, run.logical_date) == ("telemetry.update", {"tried": tried}, None)
    assert run.dag_run_id.startswith("continued__2024-03-01T11:00:00Z__")
    with pytest.raises(plugin.AirflowSkipException, match="nothing is left"):
        operator(None).execute({"ti": ti})
    counts["queued"] = 1
    with pytest.raises(plugin.AirflowSkipException, match="queued already"):
        operator("2024-03-01T11:00:00Z").execute({"ti": ti})


def test_a_person_is_asked_once_about_a_run_of_one_slice_that_its_audit_stopped(plugin: ModuleType) -> None:
    operator = plugin.AskPerson(task_id="ask", trigger_dag_id="telemetry.approval", run="the run")
    asked = triggered(operator, ti=SimpleNamespace(xcom_pull=lambda task_ids, key: True), run_id="scheduled__1")
    assert (asked.trigger_dag_id, asked.conf) == ("telemetry.approval", {"run": "the run"})
    assert (asked.dag_run_id, asked.skip_when_already_exists) == ("asked__scheduled__1", True)
    with pytest.raises(plugin.AirflowSkipException):
        operator.execute({"ti": SimpleNamespace(xcom_pull=lambda task_ids, key: None), "run_id": "scheduled__1"})
