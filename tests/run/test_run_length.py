"""Ranges that are too long for one run."""

from pathlib import Path

import pytest

from recapture.run import run_length
from tests.commands import Command
from tests.worlds import World, at, body, files, not_warmer_than, one_event, published

FIVE_HOURS = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T15:00:00Z")


@pytest.fixture
def two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs have up to two slices of an input with one partition."""
    monkeypatch.setattr(run_length, "_SURELY", 0)
    monkeypatch.setattr(run_length, "MOST_COUNTED", 2)


@pytest.fixture
def five_hours(tmp_path: Path) -> World:
    world = one_event(tmp_path, hours=5)
    world.define()
    return world


@pytest.mark.usefixtures("two_slices")
def test_a_range_that_is_too_long_is_published_in_several_runs(five_hours: World, command: Command) -> None:
    planned = command.json("plan", five_hours.file, *FIVE_HOURS)
    result = command.json("backfill", five_hours.file, *FIVE_HOURS)
    assert [len(run["slices"]) for run in result["runs"]] == [2, 2, 1]
    assert [run["run"] for run in result["runs"]] == [run["run"] for run in planned["runs"]]
    assert [run["quality"]["verdict"] for run in result["runs"]] == ["passed"] * 3


def test_the_files_are_those_of_one_run(five_hours: World, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "runs" not in command.json("backfill", five_hours.file, *FIVE_HOURS)
    of_one_run = files(five_hours.table)
    five_hours.define(table="divided")
    monkeypatch.setattr(run_length, "MOST_BYTES", 1)
    assert len(command.json("backfill", five_hours.file, *FIVE_HOURS)["runs"]) == 5, "each slice has more bytes"
    assert files(five_hours.home / "divided") == of_one_run


@pytest.mark.usefixtures("two_slices")
def test_if_a_run_fails_the_message_says_where_to_go_on(tmp_path: Path, command: Command) -> None:
    world = one_event(tmp_path, hours=5)
    world.define(quality=world.write_suite(not_warmer_than(30)))
    world.put("0", at(3 * 60 + 40), [body("b", at(3 * 60 + 39), 40)], 5)
    _, error = command.run("backfill", world.file, *FIVE_HOURS, code=3)
    assert "2 earlier" not in error
    assert "1 earlier run of the range is published; go on with --from 2024-03-01T12:00:00Z" in error
    assert {row["slice_start"].hour for row in published(world.table)} == {10, 11}


@pytest.mark.usefixtures("two_slices")
def test_runs_of_a_long_range_may_be_staged(five_hours: World, command: Command) -> None:
    command.run("backfill", five_hours.file, *FIVE_HOURS, "--stage")
    assert len(command.json("staged", five_hours.file)["runs"]) == 3
    assert published(five_hours.table) == []


def test_a_plan_of_an_empty_range_is_refused(five_hours: World, command: Command) -> None:
    bounds = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T10:00:00Z")
    assert "the range is empty" in command.error("plan", five_hours.file, *bounds)


@pytest.mark.usefixtures("two_slices")
def test_a_manifest_is_one_run(five_hours: World, command: Command) -> None:
    runs = command.json("backfill", five_hours.file, *FIVE_HOURS)["runs"]
    assert command.json("backfill", five_hours.file, "--manifest", runs[0]["run"])["run"] == runs[0]["run"]


def test_a_day_is_planned_without_a_look_at_the_partitions(
    five_hours: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_length, "MOST_COUNTED", 1)
    assert "runs" not in command.json("plan", five_hours.file, *FIVE_HOURS)
