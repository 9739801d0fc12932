"""The stages of a run are one list, which the command carries out and `recapture plan` explains."""

from pathlib import Path

import pytest

from recapture import cli
from recapture.commands.backfill import Backfill
from recapture.definition.pipeline import Pipeline, load
from recapture.execute.engine import Engine
from recapture.run.stages import Stage, description, stages_of
from tests.commands import FIRST_HOUR, Command
from tests.worlds import World, lenient, steady


def asking(world: World) -> Pipeline:
    """Return a pipeline whose runs wait for approval if their audit fails."""
    world.define(quality=lenient(world))
    world.amend(approval={"wait_hours": 3})
    return load(world.file)


def test_a_command_waits_for_no_person_and_a_run_that_is_staged_ends_unpublished() -> None:
    stages = ["plan", "order_and_aggregate", "audit", "publish", "report"]
    assert stages_of() == stages
    assert stages_of(is_staged=True) == [*stages[:3], "report"]


def test_every_stage_is_explained(tmp_path: Path) -> None:
    pipeline = asking(World(tmp_path))
    assert {stage: description(stage, pipeline, Engine.SPARK) for stage in Stage} == {
        "plan": "pin the blobs of telemetry",
        "order_and_aggregate": "compute the rows with Spark",
        "audit": "judge the rows with the built-in checks, lenient.json",
        "approval": "if the audit fails or the run is staged, wait for a person's decision",
        "publish": f"replace the slices in {pipeline.outputs[0].table}",
        "report": "write the report to the run files",
    }


def test_the_command_carries_out_the_stages_that_the_plan_explains(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = steady(tmp_path, hours=1, partitions=1)
    pipeline = world.define()
    explanation = command.json("plan", world.file, *FIRST_HOUR)["stages"]
    assert command.text("plan", world.file, *FIRST_HOUR).splitlines()[-6:] == [
        "a backfill of this range:",
        "  plan: pin the blobs of telemetry",
        "  order and aggregate: compute the rows in processes of this machine",
        "  audit: judge the rows with the built-in checks",
        f"  publish: replace the slices in {pipeline.outputs[0].table}",
        "  report: write the report to the run files",
    ]
    carry_out, carried_out = Backfill.carry_out, list[Stage]()

    def watched(backfill: Backfill, stage: Stage) -> None:
        carry_out(backfill, stage)
        carried_out.append(stage)

    monkeypatch.setattr(Backfill, "carry_out", watched)
    assert cli.main(["backfill", str(world.file), *FIRST_HOUR, "--json"]) == 0
    assert carried_out == [stage["name"] for stage in explanation]
