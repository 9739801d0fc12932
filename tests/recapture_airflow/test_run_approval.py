"""The task that asks a person about a blocked run, and the notifications of the tasks around it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.execute.processes.workers import Workers
from recapture.keep.waiting import Waiting
from recapture.run_files.planned import PlannedRun
from tests.recapture_airflow.conftest import LoadPlugin
from tests.stages import approval_of
from tests.worlds import TEN, World, at, body, not_warmer_than, one_event, staged

WHEN = datetime(2024, 3, 2, 8, tzinfo=UTC)


class _Events:
    """Stands for the events of a task's assets, which nobody reads."""

    def __getitem__(self, asset: Any) -> SimpleNamespace:
        return SimpleNamespace(add_partitions=lambda slices: None)


EVENTS = _Events()


@pytest.fixture(scope="module")
def plugins(load_plugin: LoadPlugin) -> tuple[ModuleType, ModuleType]:
    """The modules of the tasks and of the approval."""
    return load_plugin("backfill_tasks"), load_plugin("run_approval")


def define(world: World, largest: float, **keys: Any) -> None:
    """Write a pipeline file that tells a notifier, and a suite that requires temperatures of at most `largest`."""
    world.define(quality=world.write_suite(not_warmer_than(largest, description="no `room` is too warm")))
    arguments = {"file": str(world.home / "notes"), "line": "{{ recapture.event }}: {{ recapture.message }}"}
    world.amend(notifications={"notifier": "tests.notes.FileNotifier", "arguments": arguments}, **keys)


@pytest.fixture
def run(processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedRun:
    """A run that a strict suite stops. Its temperature is 20."""
    world = one_event(tmp_path)
    define(world, 19, approval={"wait_hours": 2})
    context = {"dag_run": SimpleNamespace(dag_id="telemetry", run_id="manual__1")}
    monkeypatch.setattr("recapture_airflow.run_notifications.get_current_context", lambda: context)
    return staged(processes, load(world.file), TEN, at(60))


def notes(run: PlannedRun) -> list[str]:
    return (run.pipeline.file.parent / "notes").read_text().splitlines()


def asking(approval: ModuleType, run: PlannedRun, audited: dict[str, Any]) -> Any:
    """Return the task of a run whose audit gave this result."""
    ends = {"response_timeout": timedelta(hours=2)}
    return approval.RunApproval(task_id="approval", file=str(run.pipeline.file), run=run.id, audited=audited, **ends)


def asks() -> Any:
    """Return what a task raises to wait for an answer, which depends on the version of Airflow."""
    from airflow.providers.common.compat.sdk import TaskDeferred
    from airflow.sdk import exceptions

    return getattr(exceptions, "TaskAwaitingInput", TaskDeferred)


def wait_of(asking: Any) -> timedelta:
    """Return how long a task waits for an answer. Before Airflow 3.3, its trigger has the end of the wait."""
    timeout: timedelta | None = asking.timeout
    return asking.trigger.timeout_datetime - datetime.now(UTC) if timeout is None else timeout


def final_error() -> type[Exception]:
    """Return what a task raises if Airflow must not retry it."""
    from airflow.providers.common.compat.sdk import AirflowFailException

    return AirflowFailException


def answer(option: str, reason: str | None) -> dict[str, Any]:
    """Return what a person answered, as Airflow passes it on: with its own class of times, a subclass of datetime."""
    import pendulum

    by = {"responded_at": pendulum.instance(WHEN), "responded_by_user": {"id": "7", "name": "Ada"}}
    return {"chosen_options": [option], "params_input": {"reason": reason}, **by}


def test_a_run_that_passed_is_not_asked_about(plugins: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    _, approval = plugins
    task = approval.RunApproval(task_id="approval", file="none.yaml", run="RUN", audited={"verdict": "passed"})
    assert task.execute({}) == {"verdict": "passed"}


def test_a_blocked_run_is_told_approved_published_and_told_again(
    plugins: tuple[ModuleType, ModuleType], run: PlannedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, approval = plugins
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **of: asked.append(of))
    file = str(run.pipeline.file)
    audited = tasks.audit.function(file, run.id)
    assert audited["verdict"] == "failed"
    task = asking(approval, run, audited)
    context = {"task_instance": SimpleNamespace(id="1")}
    with pytest.raises(asks()) as waiting:
        task.execute(context)
    assert abs(wait_of(waiting.value) - timedelta(hours=2)) < timedelta(minutes=1)
    assert "* `FAILED rooms aggregates not met: no 'room' is too warm (" in asked[0]["body"]
    assert asked[0]["params"]["reason"]["schema"]["type"] == "string", "the form requires a reason"

    with pytest.raises(asks()):
        task.execute_complete(context, answer("Approve", " "))
    assert (len(asked), approval_of(run)) == (2, None)
    assert task.execute_complete(context, answer("Approve", "heating"))["verdict"] == "approved"
    assert approval_of(run) is not None
    assert task.execute(context)["verdict"] == "approved", "a retry does not ask again"
    tasks.publish.function(file, run.id, audited, outlet_events=EVENTS)
    assert [note.split(" ")[0] for note in notes(run)] == ["blocked:", "approved:"]
    assert notes(run)[1] == f"approved: Ada approved run {run.id}: heating"
    assert "report: file://" in notes(run)[0]


def test_a_run_that_is_rejected_or_not_answered_publishes_nothing(
    plugins: tuple[ModuleType, ModuleType], run: PlannedRun
) -> None:
    tasks, approval = plugins
    task = asking(approval, run, tasks.audit.function(str(run.pipeline.file), run.id))
    stopped = f"run {run.id} was stopped by its audit"
    with pytest.raises(final_error(), match=f"{stopped}, and Ada rejected it: too warm"):
        task.execute_complete({}, answer("Reject", "too warm"))
    with pytest.raises(final_error(), match=r"and Ada rejected it without a reason$"):
        task.execute_complete({}, answer("Reject", " "))
    late = {"error": "late", "error_type": "timeout"}
    with pytest.raises(final_error(), match="nobody approved it in time"):
        task.execute_complete({}, late)
    assert approval_of(run) is None


def test_a_staged_run_is_asked_about_and_published_unless_the_archive_has_changed(
    plugins: tuple[ModuleType, ModuleType], run: PlannedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, approval = plugins
    world = World(run.pipeline.file.parent)
    file = str(world.file)
    define(world, 21)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **of: asked.append(of))
    audited = tasks.audit.function(file, run.id, params={"stage": True})
    assert (audited["verdict"], audited["staged"]) == ("passed", True)
    task = asking(approval, run, audited)
    with pytest.raises(asks()):
        task.execute({"task_instance": SimpleNamespace(id="1")})
    assert asked[0]["subject"] == f"Publish telemetry {run.id}?"
    assert "null" in asked[0]["params"]["reason"]["schema"]["type"], "the form requires no reason"
    (waiting,) = Waiting(load(world.file)).runs()
    assert (waiting.run, waiting.report is not None) == (run.id, True)
    decided = task.execute_complete({}, answer("Approve", None))
    assert (decided["verdict"], approval_of(run)) == ("passed", None), "the audit stopped nothing"
    added = world.put("0", at(14), [body("a", at(11))], 1)
    with pytest.raises(final_error(), match="the archive has changed since"):
        tasks.publish.function(file, run.id, decided, outlet_events=EVENTS)
    added.unlink()
    for _ in range(2):
        assert tasks.publish.function(file, run.id, decided, outlet_events=EVENTS)["quality"] == "passed"
    assert Waiting(load(world.file)).runs() == []


def test_the_approval_of_a_staged_run_that_was_discarded_in_the_meantime_says_that_it_does_not_wait(
    plugins: tuple[ModuleType, ModuleType], run: PlannedRun
) -> None:
    tasks, approval = plugins
    define(World(run.pipeline.file.parent), 21)
    file = str(run.pipeline.file)
    task = asking(approval, run, tasks.audit.function(file, run.id, params={"stage": True}))
    Waiting(load(run.pipeline.file)).discard(run.id)
    decided = task.execute_complete({}, answer("Approve", None))
    why = f"run {run.id} does not wait for a decision: it was published, discarded"
    with pytest.raises(final_error(), match=why):
        tasks.publish.function(file, run.id, decided, outlet_events=EVENTS)


def test_a_staged_run_that_is_rejected_is_discarded(plugins: tuple[ModuleType, ModuleType], run: PlannedRun) -> None:
    tasks, approval = plugins
    define(World(run.pipeline.file.parent), 21)
    task = asking(approval, run, tasks.audit.function(str(run.pipeline.file), run.id, params={"stage": True}))
    with pytest.raises(final_error(), match=f"run {run.id} is staged, and Ada rejected it: too warm"):
        task.execute_complete({}, answer("Reject", "too warm"))
    assert Waiting(load(run.pipeline.file)).runs() == []


def test_slices_that_were_blocked_recover_when_a_run_that_passed_is_published(
    plugins: tuple[ModuleType, ModuleType], run: PlannedRun
) -> None:
    tasks, _ = plugins
    world = World(run.pipeline.file.parent)
    file = str(world.file)
    define(world, 19)
    with pytest.raises(final_error()):
        tasks.audit.function(file, run.id)
    define(world, 21)
    for _ in range(2):
        tasks.publish.function(file, run.id, tasks.audit.function(file, run.id), outlet_events=EVENTS)
    assert [note.split(" ")[0] for note in notes(run)] == ["blocked:", "recovered:"]
    assert notes(run)[1] == f"recovered: slice 2024-03-01T10:00:00Z: run {run.id} is published, and its audit passed"
