"""Every kind of damage has a verdict or a one-line error; nothing is lost, and no slice is published in part."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recapture.errors import RunError
from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers, workers
from recapture.run.plan import plan_run
from tests.blobs import rewrite, touch
from tests.oracle import VERDICTS
from tests.worlds import TEN, World, at, backfill, body, files, published, quarantine, version


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Write two hours of two partitions, with an event every five minutes in each."""
    world = World(tmp_path)
    for partition in "01":
        for number in range(30):
            arrival = at(-10 + 5 * number)
            world.put(partition, arrival, [body(f"device-{partition}", at(-12 + 5 * number), number)], number)
    return world


def blob_of(world: World, minutes: float) -> Path:
    """Return the blob of partition 1 that arrived then."""
    (blob,) = (
        path
        for path in world.capture.glob("contoso/telemetry/1/**/*.avro")
        if path.stat().st_mtime == at(minutes).timestamp()
    )
    return blob


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "damage",
    [half, lambda content: content[:-1] + bytes([content[-1] ^ 1]), lambda content: b""],
    ids=["half", "flipped_in_a_marker", "nothing"],
)
def test_a_damaged_blob_stops_the_run_with_one_line_and_leaves_the_table_unchanged(
    world: World, damage: Callable[[bytes], bytes]
) -> None:
    pipeline = world.define()
    path = blob_of(world, 90)
    rewrite(path, damage(path.read_bytes()))
    with workers(1) as processes, pytest.raises(RunError, match="is damaged") as error:
        backfill(processes, pipeline, TEN, at(120))
    assert "\n" not in str(error.value)
    assert str(path.relative_to(world.capture)) in str(error.value)
    assert version(world.table) is None


def test_damage_in_a_rerun_leaves_the_published_slices_alone_and_the_repair_publishes(
    spark: SparkSession, processes: Workers, world: World
) -> None:
    pipeline = world.define()
    backfill(processes, pipeline, TEN, at(60))
    held = version(world.table), published(world.table), files(world.table)
    path = blob_of(world, 90)
    sound = path.read_bytes()
    rewrite(path, half(sound))
    with pytest.raises(RunError):
        backfill(spark, pipeline, TEN, at(120))
    assert (version(world.table), published(world.table), files(world.table)) == held
    rewrite(path, sound)
    report = backfill(processes, pipeline, TEN, at(120))
    assert report["metrics"]["InputEvents"] == report["metrics"]["on_time"] == 2 * 24


@pytest.mark.parametrize("change", ["changed", "touched", "deleted"])
def test_a_blob_that_is_not_as_planned_stops_the_run_and_the_next_plan_reads_it_as_it_is(
    processes: Workers, tmp_path: Path, world: World, change: str
) -> None:
    pipeline = world.define()
    run = plan_run(pipeline, TEN, at(120))
    path = blob_of(world, 90)
    match change:
        case "changed":
            rewrite(path, path.read_bytes() * 2)
        case "touched":
            touch(path, at(91))
        case "deleted":
            path.unlink()
    message = f"{path.name} .*since it was planned .*: plan again"
    with workers(1) as killed, pytest.raises(RunError, match=message) as error:
        local.compute(killed, run, tmp_path)
    assert "\n" not in str(error.value)
    assert version(world.table) is None
    if change != "changed":
        report = backfill(processes, pipeline, TEN, at(120))
        assert report["run"] != run.id
        assert report["metrics"]["InputEvents"] == 2 * 24 - (change == "deleted")


def test_a_flipped_byte_in_a_body_makes_the_body_malformed(processes: Workers, world: World) -> None:
    path = blob_of(world, 90)
    content = path.read_bytes()
    place = content.rindex(b'{"deviceId"')
    rewrite(path, content[:place] + bytes([content[place] ^ 0x80]) + content[place + 1 :])
    report = backfill(processes, world.define(), TEN, at(120))
    assert report["metrics"]["malformed"] == 1
    (row,) = quarantine(world.table, report["run"])
    assert (row["partition"], row["sequence_number"], row["verdict"]) == ("1", 20, "malformed")
    assert row["blob"] == str(path.relative_to(world.capture))


def test_bad_bodies_are_counted_and_quarantined_and_their_neighbours_are_unchanged(
    processes: Workers, world: World
) -> None:
    clean = backfill(processes, world.define(table="clean"), TEN, at(120))
    good = body("device-0", at(32), 6.0)
    bad = {
        0: b"device-0;32",
        1: b"",
        2: b"null",
        3: b'{"deviceId": "device-0", "place": "caf\xe9"}',
        4: good + good,
        5: b'{"deviceId": "device-0", "temperature": "warm", "eventTime": "2024-03-01T10:32:00Z"}',
        6: body("device-0", None),
        7: b'{"deviceId": "device-0", "eventTime": null}',
        8: b'{"deviceId": "device-0", "eventTime": "soon"}',
        9: body(None, at(32)),
    }
    world.put_numbered("0", at(36), bad.items())
    report = backfill(processes, world.define(), TEN, at(120))
    assert report["metrics"]["InputEvents"] == clean["metrics"]["InputEvents"] + len(bad)
    assert (report["metrics"]["malformed"], report["metrics"]["invalid_timestamp"]) == (6, 4)
    assert report["metrics"]["InputEvents"] == sum(report["metrics"][verdict] for verdict in VERDICTS)
    quarantined = {row["sequence_number"]: row for row in quarantine(world.table, report["run"])}
    assert {number: row["body"] for number, row in quarantined.items()} == bad
    assert all(row["reason"] for row in quarantined.values())
    assert [number for number, row in quarantined.items() if row["verdict"] == "invalid_timestamp"] == [6, 7, 8, 9]
    assert published(world.table) == published(world.home / "clean")
