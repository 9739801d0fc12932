"""Staged runs: they wait, unseen by readers, until a person publishes or discards them, or they expire."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.errors import AuditError
from recapture.execute.processes.workers import Workers
from recapture.keep.due import tick
from recapture.keep.sources import sources_of
from recapture.keep.state import read_state
from recapture.keep.waiting import Waiting, WaitingRun
from recapture.run.approval import approve
from recapture.run.clean import RUNS, STAGED_MARKS, clean
from recapture.run.rollback import rollback
from recapture.run_files.planned import PlannedRun
from recapture.tools.coverage.marks import why
from recapture.tools.coverage.reading import CoverageReader
from tests.commands import FIRST_HOUR, Command
from tests.run.test_approval import APPROVAL
from tests.stages import audit, publish
from tests.table.aging import age
from tests.worlds import COUNTS, HOUR, TEN, World, at, backfill, body, contents, not_warmer_than, one_event, published
from tests.worlds import staged as computed

ELEVEN = TEN + HOUR


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path)


def staged(processes: Workers, world: World) -> PlannedRun:
    """Return a run of the first hour that waits."""
    run = computed(processes, world.define(), TEN, ELEVEN)
    audit(run, is_staged=True)
    return run


def waiting(world: World) -> WaitingRun:
    """Return the only run that waits for the pipeline as it is defined now."""
    (run,) = Waiting(load(world.file)).runs()
    return run


def test_a_staged_run_is_listed_and_no_reader_sees_it(processes: Workers, world: World) -> None:
    run = staged(processes, world)
    found = waiting(world)
    assert (found.run, found.slices, found.verdict, found.obstacles) == (run.id, 1, "passed", ())
    assert found.expires == found.at + timedelta(days=7)
    assert not (world.table / "_delta_log").exists()


def test_a_staged_run_is_published_as_it_was_staged(processes: Workers, world: World, command: Command) -> None:
    run = staged(processes, world)
    result = command.json("publish", world.file, run.id)
    assert (result["run"], result["changed"], result["staged_until"]) == (run.id, True, None)
    assert [row["events"] for row in published(world.table)] == [1]
    assert command.text("staged", world.file) == "no run waits for a decision\n"
    assert command.json("publish", world.file, run.id)["changed"] is False, "a call that was interrupted is repeated"


def test_a_blob_that_was_added_replaced_or_removed_keeps_a_run_from_being_published(
    processes: Workers, world: World
) -> None:
    staged(processes, world)
    added = world.put("0", at(14), [body("a", at(11))], 1)
    (changed,) = waiting(world).obstacles
    assert changed == "the archive has changed since, for slice 2024-03-01T10:00:00Z (1 blob added)"
    added.unlink()
    assert waiting(world).obstacles == ()
    read = world.put("0", at(12), [body("a", at(10)), body("a", at(11))])
    assert "(1 blob modified)" in waiting(world).obstacles[0]
    read.unlink()
    assert "(1 blob deleted)" in waiting(world).obstacles[0]


def test_a_later_publication_keeps_a_run_from_being_published_until_it_is_rolled_back(
    processes: Workers, world: World, command: Command
) -> None:
    run = staged(processes, world)
    late = world.put("0", at(14), [body("a", at(11))], 1)
    other = backfill(processes, world.define(), TEN, ELEVEN)["run"]
    late.unlink()
    assert waiting(world).obstacles == (
        f"another run was published after its audit, for slice 2024-03-01T10:00:00Z by run {other}",
    )
    assert f"run {run.id} cannot be published any more: another run was published" in command.error(
        "publish", world.file, run.id, code=1
    )
    assert len(published(world.table)) == 2
    rollback(load(world.file), TEN, ELEVEN)
    assert waiting(world).obstacles == ()


def test_another_query_or_suite_keeps_a_run_from_being_published(processes: Workers, world: World) -> None:
    staged(processes, world)
    world.define(COUNTS.replace("minute, 5", "minute, 10"))
    (changed,) = waiting(world).obstacles
    assert "is not what run" in changed
    world.define(quality=world.write_suite(not_warmer_than(30)))
    assert waiting(world).obstacles == ("telemetry.yaml has changed since: other suite",)
    world.define()
    assert waiting(world).obstacles == ()


def test_a_run_that_its_audit_stopped_waits_for_an_approval_and_does_not_expire(
    processes: Workers, world: World, command: Command
) -> None:
    run = computed(processes, world.define(quality=world.write_suite(not_warmer_than(19))), TEN, ELEVEN)
    with pytest.raises(AuditError):
        audit(run, is_staged=True)
    found = waiting(world)
    assert (found.verdict, found.expires, found.obstacles) == ("failed", None, ())
    (listed,) = command.json("staged", world.file)["runs"]
    assert (listed["needs_approval"], listed["publishable"]) == (True, False)
    assert "  needs approval, but the pipeline asks nobody: add approval to its file" in command.text(
        "staged", world.file
    )
    world.amend(approval={})
    assert "  needs approval in Airflow (docs/coverage.md, Approval)" in command.text("staged", world.file)
    assert "let a person approve it" in command.error("publish", world.file, run.id, code=1)
    approve(run, APPROVAL)
    assert command.json("publish", world.file, run.id)["quality"]["approval"]["by"] == "Ada"
    assert len(published(world.table)) == 1


def test_status_and_the_calendar_show_the_run_that_was_staged_after_a_stopped_one(
    processes: Workers, world: World, command: Command
) -> None:
    stopped = computed(processes, world.define(quality=world.write_suite(not_warmer_than(19))), TEN, ELEVEN)
    with pytest.raises(AuditError):
        audit(stopped)
    world.put("0", at(14), [body("a", at(11))], 1)
    world.write_suite(not_warmer_than(21))
    run = computed(processes, world.define(quality="rooms.json"), TEN, ELEVEN)
    audit(run, is_staged=True)
    (shown,) = command.json("status", world.file)["slices"]
    assert (shown["state"], shown["blocked_run"], shown["staged_run"]) == ("blocked", stopped.id, run.id)
    assert f"run {run.id} was staged later, and waits" in " ".join(command.text("status", world.file).split())
    state = CoverageReader(run.pipeline).read(ELEVEN + HOUR).slices[0]
    assert (state.blocked_run, state.staged_run) == (None, run.id)
    assert why(state, {stopped.id: ["too warm"]}).startswith("A later run passed its audit. It is staged")
    age(world.table, 7.1)
    (shown,) = command.json("status", world.file)["slices"]
    assert (shown["state"], shown["staged_run"]) == ("blocked", None), "it has expired"
    state = CoverageReader(run.pipeline).read(ELEVEN + HOUR).slices[0]
    assert (state.blocked_run, state.staged_run) == (stopped.id, None)
    command.run("discard", world.file, run.id)
    (shown,) = command.json("status", world.file)["slices"]
    assert (shown["state"], shown["blocked_run"], shown["staged_run"]) == ("blocked", stopped.id, None)


def test_an_update_computes_what_is_due_whether_a_run_of_it_waits_or_not(processes: Workers, world: World) -> None:
    def due() -> Any:
        pipeline = world.define()
        world.amend(schedule={"since": "2024-03-01T10:00:00Z"})
        return tick(read_state(pipeline, sources_of(load(world.file)), ELEVEN + HOUR / 2).state)

    before = due()
    run = staged(processes, world)
    assert due() == before
    assert [slice_.start for range_ in before.ranges for slice_ in range_.slices]
    publish(run)
    assert Waiting(world.define()).runs() == [], "an update computed the same run and published it"


def test_a_discarded_run_cannot_be_published_and_its_rows_are_removed_later(
    processes: Workers, world: World, command: Command
) -> None:
    run = staged(processes, world)
    assert command.json("discard", world.file, run.id) == {"pipeline": "telemetry", "run": run.id}
    assert not [name for name in contents(world.table / "_recapture") if run.id in name]
    for name in ("publish", "discard"):
        assert "does not wait for a decision" in command.error(name, world.file, run.id, code=1)
    age(world.table, 8)
    clean(run.pipeline, dry_run=False)
    assert contents(world.table) == {}


def test_discarding_a_run_that_was_published_before_keeps_what_a_rollback_needs(
    processes: Workers, world: World, command: Command
) -> None:
    run = staged(processes, world)
    publish(run)
    late = world.put("0", at(14), [body("a", at(11))], 1)
    backfill(processes, world.define(), TEN, ELEVEN)
    late.unlink()
    before = contents(world.table / "_recapture" / run.id).keys()
    age(world.table, 1)
    audit(run, accept_loss=True, is_staged=True)
    command.run("discard", world.file, run.id)
    assert contents(world.table / "_recapture" / run.id).keys() == before
    rollback(load(world.file), TEN, ELEVEN)
    assert [row["events"] for row in published(world.table)] == [1]


def test_clean_keeps_a_staged_run_for_seven_days_and_removes_it_then(
    processes: Workers, world: World, command: Command
) -> None:
    run = staged(processes, world)
    age(world.table, 6.9)
    assert clean(run.pipeline, dry_run=False) == []
    assert waiting(world).obstacles == ()
    age(world.table, 7.1)
    (expired,) = waiting(world).obstacles
    assert expired.startswith("it expired at ")
    assert "it expired at" in command.error("publish", world.file, run.id, code=1)
    assert {RUNS, STAGED_MARKS} <= {removal.what for removal in clean(run.pipeline, dry_run=True)}
    clean(run.pipeline, dry_run=False)
    assert contents(world.table) == {}
    assert Waiting(load(world.file)).runs() == []


def test_an_expired_mark_stays_while_a_run_of_the_same_name_is_in_progress(processes: Workers, world: World) -> None:
    run = staged(processes, world)
    age(world.table, 8)
    os.utime(world.table / "_recapture" / run.id / "manifest.json", (time.time(),) * 2)
    assert clean(run.pipeline, dry_run=False) == []


def test_the_command_stages_a_run_lists_it_and_publishes_it(world: World, command: Command) -> None:
    world.define()
    text = command.text("backfill", world.file, *FIRST_HOUR, "--stage")
    run = waiting(world)
    assert run.expires is not None
    assert text.splitlines()[-2:] == [
        f"run {run.run} is staged: nothing is published. Until {run.expires:%Y-%m-%dT%H:%M:%SZ}, publish it with",
        f"  recapture publish telemetry.yaml {run.run}",
    ]
    (listed,) = command.json("staged", world.file)["runs"]
    assert (listed["run"], listed["audit"], listed["publishable"], listed["obstacles"]) == (run.run, "passed", True, [])
    assert not listed["needs_approval"]
    assert Path(listed["report"].removeprefix("file://")).is_file()
    assert command.text("staged", world.file).startswith(f"{run.run}: 1 slice from 2024-03-01T10:00:00Z to ")
    assert f"run {run.run} published as version 1 of " in command.text("publish", world.file, run.run)


def test_a_run_that_is_staged_takes_no_tables_over(world: World, command: Command) -> None:
    world.define()
    assert "leave out --take-over" in command.error("backfill", world.file, *FIRST_HOUR, "--stage", "--take-over")
