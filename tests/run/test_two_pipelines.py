"""Two pipelines whose files name the same table: the command refuses the second, unless it takes the table over."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from recapture import cli
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.keep.check import check
from recapture.run.plan import plan_run
from recapture.run.status import status
from tests.commands import FIRST_HOUR, Command
from tests.worlds import TEN, World, at, published, steady, version

OPTIONS = (*FIRST_HOUR, "--master", "local[1]")
COUNTS = (
    "SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events INTO {} "
    "FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, {})"
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A published hour."""
    world = steady(tmp_path, hours=1, partitions=1)
    world.define(COUNTS.format("aggregates", 5))
    assert backfill(world.file) == 0
    return world


def backfill(file: Path, *more: str) -> int:
    """Return the exit code of a backfill."""
    return cli.main(["backfill", str(file), *OPTIONS, *more])


def copied(world: World, **changes: object) -> Path:
    """Copy the pipeline file under another name, with another query, but with the table of the first."""
    sections = world.sections()
    sections["job"]["query"] = COUNTS.format("aggregates", 10)
    file = world.home / "copied.yaml"
    file.write_text(json.dumps(sections | {"name": "copied"} | changes))
    return file


@pytest.mark.parametrize(
    "arguments",
    [("plan", *FIRST_HOUR), ("backfill", *OPTIONS), ("rollback", *FIRST_HOUR)],
    ids=lambda arguments: arguments[0],
)
def test_a_copied_pipeline_file_with_a_forgotten_table_is_refused_before_anything_is_computed(
    world: World, command: Command, arguments: tuple[str, ...]
) -> None:
    before, runs = published(world.table), sorted(world.table.glob("_recapture/*"))
    name, *options = arguments
    assert command.error(name, copied(world), *options) == (
        f"recapture: table {world.table.as_uri()}_publications belongs to pipeline telemetry, not to copied: publish "
        "to another table (output.table), or take the table over with recapture backfill --take-over"
    )
    assert published(world.table) == before
    assert sorted(world.table.glob("_recapture/*")) == runs


@pytest.mark.parametrize("stage", [plan_run, check])
def test_the_tasks_of_the_dags_refuse_the_table_of_another_pipeline(
    world: World, stage: Callable[[Pipeline, datetime, datetime], object]
) -> None:
    with pytest.raises(DefinitionError, match="belongs to pipeline telemetry, not to copied"):
        stage(load(copied(world)), TEN, at(60))
    assert not (world.table / "_recapture" / "changed.json").exists()


def test_take_over_gives_the_tables_to_the_pipeline_that_asks_for_it(world: World, command: Command) -> None:
    before, file = published(world.table), copied(world)
    assert backfill(file, "--take-over") == 0
    after = published(world.table)
    assert len(after) < len(before)
    assert status(load(file))["problems"] == []
    problems = status(load(world.file))["problems"]
    tables = [problem["table"].rsplit("/", 1)[-1] for problem in problems]
    assert tables == ["table_publications", "table", "table_metrics"]
    assert all("belongs to pipeline copied, not to telemetry" in problem["problem"] for problem in problems)
    error = command.error("backfill", world.file, *OPTIONS)
    assert "belongs to pipeline copied, not to telemetry" in error
    assert backfill(file) == 0, "once is enough"
    assert published(world.table) == after


def test_a_run_that_its_audit_stops_takes_no_table_over(world: World) -> None:
    strict = world.write_suite({"type": "expect_column_to_exist", "kwargs": {"column": "absent"}})
    file = copied(world, quality={"suite": strict})
    assert backfill(file, "--take-over") == 1
    assert status(load(world.file))["problems"] == []


def test_a_pipeline_that_shares_one_of_its_tables_is_refused(world: World, command: Command) -> None:
    query = f"{COUNTS.format('own', 5)}\n\n{COUNTS.format('shared', 5)}"
    outputs = [{"alias": "own", "table": "own"}, {"alias": "shared", "table": "table"}]
    file = copied(world, job=world.sections()["job"] | {"query": query}, output=outputs)
    assert command.error("backfill", file, *OPTIONS).startswith(
        f"recapture: table {world.table.as_uri()} belongs to pipeline telemetry, not to copied"
    )
    assert version(world.home / "own") is None
