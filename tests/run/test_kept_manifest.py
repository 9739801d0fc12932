"""A kept manifest is evidence: run again, it is the same run, or the blobs that are not as they were are named."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recapture import cli
from recapture.archive import changes
from recapture.errors import DefinitionError, RunError
from recapture.run.plan import changed_since, load_manifest, plan_run, preview
from tests.worlds import TEN, World, at, backfill, body, files, published, run_file, steady, version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGE = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T11:00:00Z")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = steady(tmp_path, hours=1)
    world.define()
    return world


@pytest.fixture
def _one_session(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in the session of these tests."""

    @contextlib.contextmanager
    def given(master: str, name: str, scratch: Path) -> Iterator["SparkSession"]:
        yield spark

    monkeypatch.setattr("recapture.run.session.started", given)


def called(capsys: pytest.CaptureFixture[str], world: World, *arguments: object) -> tuple[int, Any, str]:
    """The exit code of `recapture backfill`, its JSON, and what it says on standard error."""
    code = cli.main(["backfill", str(world.file), *map(str, arguments), "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else None, told.err


def blobs(world: World, partition: str) -> list[Path]:
    return sorted(
        (world.capture / "contoso/telemetry" / partition).rglob("*.avro"), key=lambda path: path.stat().st_mtime
    )


def touch(path: Path, content: bytes) -> None:
    """Write it, with the same LastModified."""
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_mtime_ns,) * 2)


@pytest.mark.usefixtures("_one_session")
def test_a_rerun_from_a_kept_manifest_is_the_same_run(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str], world: World
) -> None:
    """By the run's name, and by a file, into an empty table; what arrived since is not read."""
    first = backfill(spark, world.define(), TEN, at(60))
    kept = world.table / "_recapture" / first["run"] / "manifest.json"
    assert json.loads(kept.read_bytes())["digest"].startswith(first["run"].split("-")[-1])
    world.put("0", at(20), [body("new", at(18))], 9000, opened=at(16))
    code, again, _ = called(capsys, world, "--manifest", first["run"])
    assert (code, again["run"], again["changed"]) == (0, first["run"], False)

    elsewhere = world.home / "elsewhere.json"
    elsewhere.write_bytes(kept.read_bytes())
    before, rows = files(world.table), published(world.table)
    for table in (world.table, world.home / "table_metrics"):
        table.rename(world.home / f"old_{table.name}")
    code, anew, _ = called(capsys, world, "--manifest", elsewhere)
    assert (code, anew["run"]) == (0, first["run"])
    assert files(world.table) == before
    assert published(world.table) == rows
    assert preview(world.define(), TEN, at(60)).run != first["run"], "the new blob makes another run"


@pytest.mark.usefixtures("_one_session")
def test_all_blobs_that_are_not_as_they_were_are_named_and_the_user_chooses(
    capsys: pytest.CaptureFixture[str], world: World
) -> None:
    run = plan_run(world.define(), TEN, at(60)).id
    pinned = run_file(world.table, run, "manifest.json")["blobs"]
    in_range = {world.capture / each["blob"]["name"] for each in pinned}
    longer, later, gone = sorted(in_range)[3:6]
    touch(longer, longer.read_bytes() + b"x")
    os.utime(later, (at(31).timestamp(),) * 2)
    gone.unlink()
    outside = next(path for path in blobs(world, "1") if path not in in_range)
    outside.write_bytes(b"x")

    code, told, said = called(capsys, world, "--manifest", run)
    assert (code, told) == (1, None)
    assert version(world.table) is None
    first, *lines, last = said.splitlines()
    assert first == f"recapture: 3 of the {len(pinned)} blobs of run {run} are not as they were:"
    size = longer.stat().st_size
    assert lines[0].startswith(
        f"  {longer.relative_to(world.capture)} was modified (size {size - 1}, now {size}, etag "
    )
    assert lines[1].startswith(f"  {later.relative_to(world.capture)} was modified (LastModified ")
    assert ", now 2024-03-01T10:31:00Z, etag " in lines[1]
    assert lines[2] == f"  {gone.relative_to(world.capture)} was deleted"
    assert last == "restore them, or plan the range again from what is there now with --changed replan"

    touch(longer, longer.read_bytes()[:-1])
    code, told, said = called(capsys, world, "--manifest", run, "--changed", "replan")
    assert code == 0, said
    assert told["run"] != run
    assert told["run"].startswith("20240301T100000Z-20240301T110000Z-")
    assert f"planned anew: run {told['run']}" in said
    assert f"{gone.relative_to(world.capture)} was deleted" in said
    assert told["warnings"][-1].startswith("2 of the ")


def test_what_did_not_change_has_no_changes(world: World) -> None:
    pipeline = world.define()
    planned = preview(pipeline, TEN, at(60))
    assert changed_since(pipeline, planned) == []
    for path in blobs(world, "0"):
        path.unlink()
    changed = changed_since(pipeline, planned)
    assert {each.pinned.name for each in changed} == {each.blob.name for each in planned.blobs if each.partition == "0"}
    assert changes.summary(changed * 100).endswith(f"  and {len(changed) * 100 - 100:,} more")


def kept(world: World) -> tuple[Path, dict[str, Any]]:
    run = plan_run(world.define(), TEN, at(60)).id
    path = world.table / "_recapture" / run / "manifest.json"
    return path, json.loads(path.read_bytes())


@pytest.mark.parametrize("field", ["etag", "size", "last_modified", "name"])
def test_a_manifest_that_somebody_changed_is_refused(world: World, field: str) -> None:
    path, content = kept(world)
    values = {"etag": "other", "size": 1, "last_modified": "2024-03-01T10:00:07Z", "name": "x"}
    content["blobs"][5]["blob"][field] = values[field]
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="does not match its digests"):
        load_manifest(world.define(), str(path))


def test_a_manifest_without_one_of_its_blobs_is_refused(world: World) -> None:
    path, content = kept(world)
    del content["blobs"][5]
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="does not match its digests"):
        load_manifest(world.define(), content["run"])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("partitions",), ["0"]),
        (("blobs", 5, "partition"), "2"),
        (("slices", 0, "incomplete"), ["1"]),
        (("newest", 0, "name"), "x"),
        (("pipeline",), "other"),
        (("content_digest",), "0" * 64),
    ],
)
def test_nothing_in_a_manifest_can_be_changed(world: World, place: tuple[Any, ...], value: object) -> None:
    path, content = kept(world)
    inner: Any = content
    for step in place[:-1]:
        inner = inner[step]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="does not match its digests"):
        load_manifest(world.define(), str(path))


def test_a_manifest_may_be_laid_out_otherwise(world: World) -> None:
    path, content = kept(world)
    before = load_manifest(world.define(), str(path))
    path.write_text(json.dumps(content, indent=4, sort_keys=True))
    assert load_manifest(world.define(), str(path)) == before


def test_a_manifest_of_another_definition_or_place_is_refused(world: World) -> None:
    path, _ = kept(world)
    with pytest.raises(DefinitionError, match="was planned by another engine, query, policies or input"):
        load_manifest(world.define(eventsLateArrivalMaxDelayInSeconds=700), str(path))
    pipeline = world.define()
    world.capture.rename(world.home / "moved")
    moved = pipeline.input.model_copy(update={"container": (world.home / "moved").as_uri()})
    with pytest.raises(DefinitionError, match=r"which is not this pipeline's input\.container"):
        load_manifest(pipeline.model_copy(update={"input": moved}), str(path))
    with pytest.raises(DefinitionError, match="are not of 2 h"):
        load_manifest(pipeline.model_copy(update={"slice_hours": 2}), str(path))


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ((), 2, "give a range with --from and --to, or a manifest with --manifest"),
        (RANGE[:2], 2, "give a range with --from and --to"),
        (("--manifest", "x", *RANGE), 2, "--manifest has a range of its own"),
        ((*RANGE, "--changed", "replan"), 2, "--changed is for --manifest"),
        (("--manifest", "x", "--changed", "ignore"), 2, "invalid choice"),
        (("--manifest", "x"), 1, "x is not a file, and no run with a manifest under file://"),
        (("--manifest", "runs/x"), 1, "runs/x is not a file: give the file of a manifest, or the name of a run"),
        (("--manifest", ""), 1, "an empty text is not a file"),
        (("--manifest", "{file}"), 1, "the run's manifest cannot be read"),
    ],
)
def test_a_mistake_in_what_to_run_is_one_line(
    capsys: pytest.CaptureFixture[str], world: World, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    found, told, said = called(capsys, world, *(each.replace("{file}", str(world.file)) for each in arguments))
    assert (found, told) == (code, None)
    (line,) = said.splitlines()
    assert reason in line
    assert version(world.table) is None
