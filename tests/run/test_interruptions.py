"""Ctrl-C: the command says how far it got, and that is true."""

from pathlib import Path
from typing import Any

import pytest

from recapture.commands import backfill as stages
from recapture.commands import reported
from recapture.commands.backfill import Backfill
from recapture.errors import RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers
from recapture.run.status import status
from recapture.run_files.contents import OUTCOME
from recapture.run_files.json_file import JsonFile
from recapture.table.delta import OpenTable
from tests.commands import FIRST_HOUR, Command
from tests.worlds import TEN, World, at, backfill, body, version


def interrupt(*arguments: Any, **options: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def world(processes: Workers, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A published hour, and then a late blob. The command computes the rows with the workers of the tests."""
    backfill(processes, world.define(), TEN, at(60))
    world.put("0", at(20), [body("a", at(18))], 5)

    def order_and_aggregate(backfill: Backfill) -> None:
        backfill.computed = compute(processes, backfill.run, tmp_path)

    monkeypatch.setattr(Backfill, "order_and_aggregate", order_and_aggregate)
    return world


def stopped(command: Command, world: World, code: int) -> str:
    """Return the error of a backfill that exits with this code."""
    return command.error("backfill", world.file, *FIRST_HOUR, code=code).removeprefix("recapture: ")


def test_an_interruption_before_anything_is_published_says_so(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "audit", interrupt)
    assert stopped(command, world, 130) == "interrupted; nothing was published: run the same command again"
    assert version(world.table) == 1


def test_an_interruption_between_two_commits_names_the_unfinished_publication(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = OpenTable.commit

    def before_the_metrics(table: OpenTable, *arguments: Any) -> bool:
        if table.table.url.endswith("_metrics"):
            raise KeyboardInterrupt
        return commit(table, *arguments)

    monkeypatch.setattr(OpenTable, "commit", before_the_metrics)
    line = stopped(command, world, 130)
    run = status(world.define())["slices"][0]["run"]
    metrics = f"{world.table.as_uri()}_metrics"
    again = "run the same command again to finish it"
    assert line == f"interrupted; the publication of run {run} is unfinished: {metrics} not updated yet; {again}"
    assert (version(world.table), version(world.home / "table_metrics")) == (2, 1)
    command.run("rollback", world.file, *FIRST_HOUR)
    assert (version(world.table), version(world.home / "table_metrics")) == (3, 1), "both hold the first run"


def test_an_interruption_while_the_report_is_made_refers_to_status(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported, "summary", interrupt)
    line = stopped(command, world, 130)
    run = status(world.define())["slices"][0]["run"]
    progress = "was being published or reported: recapture status shows what is published"
    assert line == f"interrupted while run {run} {progress}"
    assert version(world.table) == 2


@pytest.mark.parametrize(("stage", "code"), [("audit", 1), ("summary", 3)])
def test_a_storage_that_fails_says_whether_the_run_is_published(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch, stage: str, code: int
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise RunError("the storage is away")

    monkeypatch.setattr(stages if stage == "audit" else reported, stage, fail)
    line = stopped(command, world, code)
    assert version(world.table) == (1 if code == 1 else 2)
    assert ("is published, but its report failed: the storage is away" in line) == (code == 3)


def test_a_report_that_cannot_be_stored_does_not_hide_that_the_run_is_published(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recapture.run_files.files import RunFiles

    write = RunFiles.write

    def full(files: RunFiles, file: JsonFile[Any], content: Any) -> Any:
        if file is OUTCOME:
            raise RunError("cannot write outcome.json: No space left on device")
        return write(files, file, content)

    monkeypatch.setattr(RunFiles, "write", full)
    assert stopped(command, world, 3).endswith(
        "is published, but its outcome could not be recorded: cannot write outcome.json: No space left on device; "
        "run the same command again for its report"
    )
