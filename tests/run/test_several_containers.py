"""An archive that was moved: its blobs are in two containers, and a run reads them as one archive."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from recapture.definition.packed import pack, unpack
from recapture.definition.pipeline import Pipeline
from recapture.execute.processes.workers import Workers
from recapture.run.plan import changed_since, load_manifest, preview
from recapture.run.progress import completeness
from recapture.run_files.computed import METRICS
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import files_of
from tests.commands import Command
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, backfill, body, files, published, steady

END = TEN + 2 * HOUR
UNITED = """\
WITH telemetry AS (
    SELECT deviceId, temperature FROM first TIMESTAMP BY eventTime
    UNION
    SELECT deviceId, temperature FROM second TIMESTAMP BY eventTime
)
SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events INTO aggregates FROM telemetry
GROUP BY TumblingWindow(minute, 15)"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return steady(tmp_path, hours=2)


def defined(world: World, *containers: str) -> Pipeline:
    return world.define(inputs=[TELEMETRY | {"container": list(containers), "empty_blobs": True}])


def move(world: World, since: datetime) -> list[Path]:
    """Move the blobs that were written since a time into another container; return where they are now."""
    moved = []
    for path in sorted(world.capture.rglob("*.avro")):
        if path.stat().st_mtime >= since.timestamp():
            target = world.home / "moved" / path.relative_to(world.capture)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
            moved.append(target)
    return moved


def test_a_moved_archive_gives_the_same_run_and_the_same_bytes(processes: Workers, world: World) -> None:
    """Sequence numbers, watermarks and windows go on from one container to the next: nothing is missing or doubled."""
    first = backfill(processes, defined(world, "capture"), TEN, END)
    before, counts = files(world.table), _counts(first["run"], defined(world, "capture"))
    for path in world.home.glob("table*"):
        shutil.rmtree(path)
    assert move(world, at(57)), "a slice needs blobs of both containers"
    pipeline = defined(world, "capture", "moved")
    again = backfill(processes, pipeline, TEN, END)
    assert (again["run"], again["quality"]["verdict"]) == (first["run"], first["quality"]["verdict"])
    assert files(world.table) == before
    assert _counts(again["run"], pipeline) == counts
    assert files_of(pipeline, again["run"]).read(AUDIT).holes == ()
    assert changed_since(pipeline, load_manifest(pipeline, again["run"])) == []
    assert completeness(pipeline, TEN, END, at(10_000)).waiting == ()


def _counts(run: str, pipeline: Pipeline) -> object:
    return files_of(pipeline, run).read(METRICS)


def test_without_the_second_container_its_blobs_are_a_hole(command: Command, world: World) -> None:
    move(world, at(57))
    defined(world, "capture")
    bounds = ["--from", TEN.isoformat(), "--to", END.isoformat()]
    command.run("backfill", world.file, *bounds, code=1)
    defined(world, "capture", "moved")
    assert command.json("backfill", world.file, *bounds)["quality"]["verdict"].startswith("passed")


def test_a_blob_that_was_copied_counts_once_and_as_in_the_first_container(world: World) -> None:
    single = preview(defined(world, "capture"), TEN, END)
    shutil.copytree(world.capture, world.home / "moved")
    for path in (world.home / "moved").rglob("*.avro"):
        path.touch()
    both = preview(defined(world, "capture", "moved"), TEN, END)
    assert (both.run, both.inputs[0].blobs) == (single.run, single.inputs[0].blobs)


def test_events_are_found_and_explained_in_either_container(command: Command, world: World) -> None:
    for minutes in (20, 80):
        world.put("0", at(minutes), [body("x", at(minutes - 2))], 9000 + minutes, opened=at(minutes - 4))
    move(world, at(57))
    world.define(inputs=[TELEMETRY | {"container": ["capture", "moved"]}])
    bounds = ["--from", TEN.isoformat(), "--to", END.isoformat()]
    found = command.json("explain", world.file, "--where", "deviceId=x", *bounds)
    assert [(event["sequence_number"], event["verdict"]) for event in found["events"]] == [
        (9020, "on_time"),
        (9080, "on_time"),
    ]


def test_another_container_makes_published_slices_outdated(command: Command, world: World) -> None:
    defined(world, "capture")
    command.json("backfill", world.file, "--from", TEN.isoformat(), "--to", END.isoformat())
    move(world, at(57))
    defined(world, "capture", "moved")
    states = {slice_["state"] for slice_ in command.json("status", world.file)["slices"]}
    assert states == {"outdated"}


def test_a_definition_with_several_containers_travels(world: World, tmp_path: Path) -> None:
    pipeline, folder = defined(world, "capture", "moved"), tmp_path / "there"
    folder.mkdir()
    assert unpack(pack(pipeline), folder).inputs == pipeline.inputs


def test_two_namespaces_are_two_inputs_that_the_query_unites(processes: Workers, tmp_path: Path) -> None:
    """The second namespace begins when the first one ends. Its numbers begin again, and windows have events of both."""
    world = World(tmp_path)
    for minutes in range(-60, 61, 5):
        hub, start = ("telemetry", -60) if minutes < 32 else ("other", 35)
        world.put("0", at(minutes), [body("a", at(minutes - 2))], (minutes - start) // 5, hub=hub)
    for hub in ("telemetry", "other"):
        world.put("0", at(90), hub=hub)
    inputs = [TELEMETRY | {"alias": "first"}, TELEMETRY | {"alias": "second", "event_hub": "other"}]
    report = backfill(processes, world.define(UNITED, inputs=inputs), TEN, at(60))
    assert report["quality"]["verdict"].startswith("passed")
    assert [(row["windowEnd"], row["events"]) for row in published(world.table)] == [
        (at(minutes), 3) for minutes in (15, 30, 45, 60)
    ]
