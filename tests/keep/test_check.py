"""Which published slices a check finds changed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recapture.archive.manifest import Manifest
from recapture.cli import main
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.keep.archived import archived_slices
from recapture.keep.check import check
from recapture.run.plan import preview
from recapture.run_files.changes import read_changes
from recapture.storage import open_container
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, body

ELEVEN, NOON = TEN + HOUR, TEN + 2 * HOUR
STARTS = ["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"]
Publish = Callable[[], None]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for number in range(30):
        world.put("0", at(5 * number + 5), [body("a", at(5 * number + 3))], first=number)
    world.define()
    return world


@pytest.fixture
def publish(world: World, capsys: pytest.CaptureFixture[str]) -> Publish:
    """Backfill the two hours from ten on."""

    def run() -> None:
        bounds = "--from", TEN.isoformat(), "--to", NOON.isoformat()
        assert main(["backfill", str(world.file), *bounds, "--master", "local[1]"]) == 0
        capsys.readouterr()

    return run


def test_a_slice_is_compared_although_the_manifest_of_its_run_is_gone(world: World, publish: Publish) -> None:
    publish()
    for manifest in world.table.glob("_recapture/*/manifest.json"):
        manifest.unlink()
    found = check(world.define(), TEN, NOON)
    assert (found["checked"], found["changed"], found["unknown"]) == (2, [], [])
    world.put("0", at(15), [body("a", at(13))] * 2, first=2)
    assert check(world.define(), TEN, NOON)["changed"] == STARTS


def test_a_slice_that_an_older_version_published_is_compared_with_its_manifest(
    world: World, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "reads", property(lambda manifest: [None] * len(manifest.slices)))
        publish()
    assert check(world.define(), TEN, NOON)["changed"] == []
    assert check(world.define(eventsLateArrivalMaxDelayInSeconds=1200), TEN, NOON)["changed"] == []
    world.put("0", at(115), [body("a", at(113))] * 2, first=22)
    assert check(world.define(), TEN, NOON)["changed"] == ["2024-03-01T11:00:00Z"]
    for manifest in world.table.glob("_recapture/*/manifest.json"):
        manifest.unlink()
    assert check(world.define(), TEN, NOON)["unknown"] == STARTS
    changes = read_changes(open_container(world.table.as_uri()))
    assert not changes.covers("2024-03-01T10:00:00Z", "2024-03-01T12:00:00Z"), "nobody compared these slices"


def test_another_definition_alone_does_not_make_a_slice_stale(world: World, publish: Publish) -> None:
    publish()
    found = check(world.define(eventsLateArrivalMaxDelayInSeconds=1200), TEN, NOON)
    assert (found["changed"], found["unknown"]) == ([], [])


def test_a_changed_version_of_reference_data_makes_a_slice_stale(world: World) -> None:
    rooms = world.home / "rooms" / "rooms.json"
    rooms.parent.mkdir()
    rooms.write_text(json.dumps([{"deviceId": "a", "room": "hall"}]))
    section = {"type": "Reference", "alias": "rooms", "container": "rooms", "format": "Json", "path": "rooms.json"}
    query = (
        "SELECT System.Timestamp() AS windowEnd, rooms.room, COUNT(*) AS events INTO aggregates "
        "FROM telemetry TIMESTAMP BY eventTime JOIN rooms ON telemetry.deviceId = rooms.deviceId "
        "GROUP BY rooms.room, TumblingWindow(minute, 5)"
    )
    pipeline = world.define(inputs=[TELEMETRY, section], query=query)
    manifest = preview(pipeline, TEN, ELEVEN)
    assert difference(pipeline, manifest) is None
    rooms.write_text(json.dumps([{"deviceId": "a", "room": "kitchen"}]))
    assert difference(pipeline, manifest) == "reference data rooms changed"


def difference(pipeline: Pipeline, manifest: Manifest) -> str | None:
    """Return how the archive differs from what the only slice of a manifest reads."""
    containers = {section.alias: open_container(section.container) for section in pipeline.all_inputs}
    slices = [run_slice.slice for run_slice in manifest.slices]
    (archived,) = archived_slices(run_definition(pipeline), containers, slices, NOON)
    found = archived.difference_from(manifest, 0)
    assert (found is None) == ([archived.read] == manifest.reads)
    return None if found is None else str(found)
