"""A stored manifest is evidence: it gives the same run again, or names the blobs that have changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from recapture.archive import changes
from recapture.errors import DefinitionError, RunError
from recapture.execute.processes.workers import Workers
from recapture.run.plan import changed_since, load_manifest, plan_run, preview
from tests.blobs import rewrite, touch
from tests.commands import FIRST_HOUR, Command
from tests.worlds import TEN, World, at, backfill, body, files, published, run_file, steady, version


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = steady(tmp_path, hours=1)
    world.define()
    return world


def blobs(world: World, partition: str) -> list[Path]:
    return sorted(
        (world.capture / "contoso/telemetry" / partition).rglob("*.avro"), key=lambda path: path.stat().st_mtime
    )


def test_a_rerun_from_a_stored_manifest_is_the_same_run(processes: Workers, command: Command, world: World) -> None:
    """The manifest is given as a run's name, and as a file for an empty table. What arrived since is not read."""
    first = backfill(processes, world.define(), TEN, at(60))
    manifest = world.table / "_recapture" / first["run"] / "manifest.json"
    assert json.loads(manifest.read_bytes())["digest"].startswith(first["run"].split("-")[-1])
    world.put("0", at(20), [body("new", at(18))], 9000, opened=at(16))
    again = command.json("backfill", world.file, "--manifest", first["run"])
    assert (again["run"], again["changed"]) == (first["run"], False)

    elsewhere = world.home / "elsewhere.json"
    elsewhere.write_bytes(manifest.read_bytes())
    before, rows = files(world.table), published(world.table)
    for table in (world.table, world.home / "table_metrics"):
        table.rename(world.home / f"old_{table.name}")
    assert command.json("backfill", world.file, "--manifest", elsewhere)["run"] == first["run"]
    assert files(world.table) == before
    assert published(world.table) == rows
    assert preview(world.define(), TEN, at(60)).run != first["run"], "the new blob makes another run"


def test_every_changed_blob_is_named_and_the_user_chooses(command: Command, world: World) -> None:
    run = plan_run(world.define(), TEN, at(60)).id
    pinned = run_file(world.table, run, "manifest.json")["inputs"][0]["blobs"]
    in_range = {world.capture / entry["blob"]["name"] for entry in pinned}
    longer, later, deleted = sorted(in_range)[3:6]
    rewrite(longer, longer.read_bytes() + b"x")
    touch(later, at(31))
    deleted.unlink()
    outside = next(path for path in blobs(world, "1") if path not in in_range)
    outside.write_bytes(b"x")

    out, err = command.run("backfill", world.file, "--manifest", run, "--json", code=1)
    assert (out, version(world.table)) == ("", None)
    first, *lines, last = err.splitlines()
    assert first == f"recapture: 3 of the {len(pinned)} blobs of run {run} have changed since it was planned:"
    size = longer.stat().st_size
    assert lines[0].startswith(
        f"  {longer.relative_to(world.capture)} was modified (size {size - 1}, now {size}, etag "
    )
    assert lines[1].startswith(f"  {later.relative_to(world.capture)} was modified (LastModified ")
    assert ", now 2024-03-01T10:31:00Z, etag " in lines[1]
    assert lines[2] == f"  {deleted.relative_to(world.capture)} was deleted"
    assert last == "  restore them, or add --changed replan to plan the range again from the current blobs"

    rewrite(longer, longer.read_bytes()[:-1])
    out, err = command.run("backfill", world.file, "--manifest", run, "--changed", "replan", "--json")
    report = json.loads(out)
    assert report["run"] != run
    assert report["run"].startswith("20240301T100000Z-20240301T110000Z-")
    assert f"planned again as run {report['run']}" in err
    assert f"{deleted.relative_to(world.capture)} was deleted" in err
    assert report["warnings"][-1].startswith("2 of the ")


def test_only_a_changed_archive_has_changes(world: World) -> None:
    pipeline = world.define()
    planned = preview(pipeline, TEN, at(60))
    assert changed_since(pipeline, planned) == []
    for path in blobs(world, "0"):
        path.unlink()
    changed = changed_since(pipeline, planned)
    planned_names = {entry.blob.name for entry in planned.inputs[0].blobs if entry.partition == "0"}
    assert {change.pinned.name for change in changed} == planned_names
    assert changes.summary(changed * 100).endswith(f"  and {len(changed) * 100 - 100:,} more")


def stored_manifest(world: World) -> tuple[Path, dict[str, Any]]:
    """Plan a run, and return the path and the content of its manifest."""
    run = plan_run(world.define(), TEN, at(60)).id
    path = world.table / "_recapture" / run / "manifest.json"
    return path, json.loads(path.read_bytes())


def test_a_manifest_without_one_of_its_blobs_is_refused(world: World) -> None:
    path, content = stored_manifest(world)
    del content["inputs"][0]["blobs"][5]
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="does not match its digests"):
        load_manifest(world.define(), content["run"])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("inputs", 0, "blobs", 5, "blob", "etag"), "other"),
        (("inputs", 0, "blobs", 5, "blob", "size"), 1),
        (("inputs", 0, "blobs", 5, "blob", "last_modified"), "2024-03-01T10:00:07Z"),
        (("inputs", 0, "blobs", 5, "blob", "name"), "x"),
        (("slices", 0, "slice", "end"), 0),
        (("inputs", 0, "alias"), "other"),
        (("inputs", 0, "partitions"), ["0"]),
        (("inputs", 0, "blobs", 5, "partition"), "2"),
        (("inputs", 0, "slices"), []),
        (("inputs", 0, "slices", 0, "incomplete"), ["1"]),
        (("inputs", 0, "newest", 0, "name"), "x"),
        (("pipeline",), "other"),
        (("content_digest",), "0" * 64),
        (("definition", "query"), "SELECT 1"),
        (("definition", "inputs", "telemetry", "policies", "adjust"), False),
    ],
)
def test_no_field_of_a_manifest_can_be_edited(world: World, place: tuple[Any, ...], value: object) -> None:
    path, content = stored_manifest(world)
    inner: Any = content
    for step in place[:-1]:
        inner = inner[step]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="does not match its digests"):
        load_manifest(world.define(), str(path))


def test_a_manifest_may_be_formatted_differently(world: World) -> None:
    path, content = stored_manifest(world)
    before = load_manifest(world.define(), str(path))
    path.write_text(json.dumps(content, indent=4, sort_keys=True))
    assert load_manifest(world.define(), str(path)) == before


def test_a_manifest_of_an_earlier_version_has_no_definition_and_is_read(world: World) -> None:
    path, content = stored_manifest(world)
    before = load_manifest(world.define(), str(path))
    del content["definition"]
    path.write_text(json.dumps(content))
    assert load_manifest(world.define(), str(path)) == before
    with pytest.raises(DefinitionError, match="the policies or an input has changed; plan again"):
        load_manifest(world.define(eventsLateArrivalMaxDelayInSeconds=700), str(path))


def test_a_manifest_of_another_definition_or_place_is_refused(world: World) -> None:
    path, _ = stored_manifest(world)
    changed = r"was planned with: eventsLateArrivalMaxDelayInSeconds \(then 600, now 700\); plan again"
    with pytest.raises(DefinitionError, match=changed):
        load_manifest(world.define(eventsLateArrivalMaxDelayInSeconds=700), str(path))
    pipeline = world.define()
    world.capture.rename(world.home / "moved")
    moved = pipeline.inputs[0].model_copy(update={"container": (world.home / "moved").as_uri()})
    with pytest.raises(DefinitionError, match=r"which is not the input\.container of telemetry"):
        load_manifest(pipeline.model_copy(update={"all_inputs": (moved,)}), str(path))
    with pytest.raises(DefinitionError, match=r"slice_hours is 2, but run .* has slices of another length"):
        load_manifest(pipeline.model_copy(update={"slice_hours": 2}), str(path))


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ((), 2, "give a range with --from and --to, or a manifest with --manifest"),
        (FIRST_HOUR[:2], 2, "give a range with --from and --to"),
        (("--manifest", "x", *FIRST_HOUR), 2, "--manifest has its own range"),
        ((*FIRST_HOUR, "--changed", "replan"), 2, "--changed needs --manifest"),
        (("--manifest", "x", "--changed", "ignore"), 2, "invalid choice"),
        (("--manifest", "x"), 1, "x is neither a file nor a run with a manifest under file://"),
        (("--manifest", "runs/x"), 1, "runs/x is not a file: give the file of a manifest, or the name of a run"),
        (("--manifest", ""), 1, "an empty string is not a file"),
        (("--manifest", "{file}"), 1, "the run's manifest cannot be read"),
    ],
)
def test_a_mistake_in_the_choice_of_a_run_is_one_line(
    command: Command, world: World, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    filled = [argument.replace("{file}", str(world.file)) for argument in arguments]
    assert reason in command.error("backfill", world.file, *filled, "--json", code=code)
    assert version(world.table) is None
