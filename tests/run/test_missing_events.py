"""A run says what is missing from the archive, and does not replace what is published by less."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import AuditError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers
from recapture.run.plan import plan_run
from recapture.run.status import status
from tests.blobs import touch
from tests.stages import audit, publish
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, blob_name, body, published, run_file

HOURS = 4
Publish = Callable[..., dict[str, str]]
"""Function that runs and publishes hours of a world, and returns the sentences of the failed checks by their names."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Four hours of two partitions, with a blob every five minutes, and one hour after them."""
    world = World(tmp_path_factory.mktemp("whole"))
    for partition in range(2):
        for number in range(12 * (HOURS + 1) + 1):
            opened = at(5 * number - 5)
            put(world, str(partition), opened, ten_events(f"device-{partition}", opened), 10 * number)
    return world


def put(world: World, partition: str, opened: datetime, bodies: list[bytes], first: int) -> None:
    """Write the blob of an interval, three seconds after its end."""
    world.put(partition, opened + timedelta(minutes=5, seconds=3), bodies, first, opened)


def ten_events(device: str, opened: datetime) -> list[bytes]:
    """Return an event every half minute."""
    return [body(device, opened + timedelta(seconds=30 * n)) for n in range(10)]


@pytest.fixture
def world(whole: World, tmp_path: Path) -> World:
    shutil.copytree(whole.home, tmp_path, dirs_exist_ok=True)
    return World(tmp_path)


@pytest.fixture
def publish_hours(world: World, processes: Workers, tmp_path: Path) -> Publish:
    def run(first: int, last: int, *, accept_loss: bool = False, **definition: Any) -> dict[str, str]:
        inputs = [TELEMETRY | {"empty_blobs": True} | definition.pop("input", {})]
        pipeline = world.define(inputs=inputs, **definition)
        planned = plan_run(pipeline, TEN + first * HOUR, TEN + last * HOUR)
        compute(processes, planned, tmp_path)
        with contextlib.suppress(AuditError):
            audit(planned, accept_loss=accept_loss)
            publish(planned)
        results = run_file(world.table, planned.id, "audit.json")["json"]["results"]
        return {
            result["expectation"]: f"{result['severity']}: {result['sentence']}"
            for result in results
            if not result["success"]
        }

    return run


def remove(world: World, partition: str, first: float, last: float) -> None:
    """Remove a partition's blobs whose intervals begin in these minutes after ten; the last one is exclusive."""
    for path in world.capture.rglob("*.avro"):
        opened = opened_at(path)
        if path.match(f"*/{partition}/*/*/*/*/*/*.avro") and at(first) <= opened < at(last):
            path.unlink()


def opened_at(path: Path) -> datetime:
    parts = list(map(int, path.with_suffix("").parts[-6:]))
    return datetime(*parts, tzinfo=TEN.tzinfo)  # type: ignore[misc,arg-type]


def hours(world: World) -> dict[int, int]:
    """Return the number of rows of each hour after ten that is published."""
    return Counter((row["slice_start"] - TEN) // HOUR for row in published(world.table))


def test_a_whole_archive_has_no_hole(world: World, publish_hours: Publish) -> None:
    assert publish_hours(0, HOURS) == {}
    assert sorted(hours(world)) == [0, 1, 2, 3]


def test_two_lost_hours_of_a_partition_stop_the_run_and_are_named(world: World, publish_hours: Publish) -> None:
    remove(world, "1", 60, 180)
    failed = publish_hours(0, HOURS)
    assert list(failed) == ["archive_has_no_holes"]
    assert failed["archive_has_no_holes"].startswith(
        "critical: the archive has holes: partition 1 lacks 240 events from 2024-03-01T11:00:00Z to "
        "2024-03-01T13:00:00Z: sequence numbers 130 to 369; 24 blobs are missing; restore the blobs if they were moved "
        "or deleted; the hub may still have the events, until 2024-03-08T13:00:00Z"
    )
    assert hours(world) == {}


def test_an_hour_without_any_blob_is_stopped_alone_too(world: World, publish_hours: Publish) -> None:
    for partition in "01":
        remove(world, partition, 55, 125)
    failed = publish_hours(1, 2)
    assert failed["archive_has_no_holes"].startswith("critical: the archive has holes: partition 0: 14 blobs")
    assert hours(world) == {}


def test_the_chain_of_numbers_goes_from_published_slice_to_slice(world: World, publish_hours: Publish) -> None:
    """Without a promise of empty blobs, only the numbers tell."""
    assert publish_hours(0, 2, input={"empty_blobs": False}) == {}
    remove(world, "1", 115, 175)
    failed = publish_hours(2, 3, input={"empty_blobs": False})
    assert failed == {}, "partition 0 has blobs, and no number of partition 1 has come after the hole"
    failed = publish_hours(3, 4, input={"empty_blobs": False})
    assert failed["archive_has_no_holes"].startswith(
        "warning: the archive has holes: partition 1 lacks 120 events from 2024-03-01T11:50:00Z to 2024-03-01T12:55:00Z"
    ), "the hole lies before this hour, which is whole"


def test_a_later_publication_is_compared_with_the_slices_on_both_sides(world: World, publish_hours: Publish) -> None:
    assert publish_hours(0, 1) == publish_hours(2, 3) == {}
    remove(world, "0", 80, 100)
    failed = publish_hours(1, 2)
    assert "partition 0 lacks 40 events" in failed["archive_has_no_holes"]


def test_missing_blobs_are_no_hole_if_the_numbers_continue(world: World, publish_hours: Publish) -> None:
    """Partition 1 sends nothing from 11:20 to 11:45, and Capture writes nothing."""
    remove(world, "1", 80, 400)
    for number in range(43):
        opened = at(105 + 5 * number)
        put(world, "1", opened, [body("device-1", opened)], 170 + number)
    assert publish_hours(0, 3) == {}
    slices = status(world.define())["slices"]
    assert [slice_["missing_blobs"] for slice_ in slices] == [0, 0, 0]


def test_a_hub_that_was_created_anew_is_named_as_such(world: World, publish_hours: Publish) -> None:
    remove(world, "1", 90, 400)
    for number in range(6, 48):
        opened = at(60 + 5 * number)
        put(world, "1", opened, [body("device-1", opened)], number - 6)
    failed = publish_hours(1, 2)
    assert failed["archive_has_no_holes"].startswith(
        "warning: the archive has holes: partition 1: the sequence numbers start again at 0"
    )
    assert 1 in hours(world)


def test_an_archive_that_was_copied_does_not_publish_empty_hours(world: World, publish_hours: Publish) -> None:
    for path in world.capture.rglob("*.avro"):
        touch(path, at(60 * 24 * 30))
    failed = publish_hours(0, 2)
    holes = failed["archive_has_no_holes"]
    assert "every blob from 2024-03-01T09:55:00Z to 2024-03-01T10:55:00Z was written in another slice" in holes
    assert "set arrival_time to EventEnqueuedUtcTime" in holes
    assert hours(world) == {}


def test_a_poorer_archive_does_not_replace_what_is_published(world: World, publish_hours: Publish) -> None:
    assert publish_hours(0, HOURS) == {}
    before = published(world.table)
    remove(world, "1", 60, 120)
    failed = publish_hours(1, 2)
    run = status(world.define())["slices"][1]["run"]
    assert failed["no_published_event_is_lost"].startswith(
        "critical: the archive has fewer events than are published: in slice 2024-03-01T11:00:00Z, 10 of the 120 "
        f"events of partition 1 that run {run} published; this run no longer reads "
        f"{blob_name('1', at(60))}, {blob_name('1', at(65))}, {blob_name('1', at(70))} and 8 more"
    )
    assert published(world.table) == before


def test_a_loss_is_published_if_it_is_accepted_and_status_knows(world: World, publish_hours: Publish) -> None:
    assert publish_hours(0, HOURS) == {}
    remove(world, "1", 60, 120)
    failed = publish_hours(1, 2, accept_loss=True)
    assert [line.split(":")[0] for line in failed.values()] == ["warning", "warning"]
    slices = {slice_["slice_start"]: slice_ for slice_ in status(world.define())["slices"]}
    poorer = slices["2024-03-01T11:00:00Z"]
    assert (poorer["missing_events"], poorer["missing_blobs"]) == (110, 11)
    assert poorer["state"] == "published with warnings"


def test_an_input_that_moved_to_another_arrival_time_may_lose_nothing(world: World, publish_hours: Publish) -> None:
    assert publish_hours(0, 2) == {}
    assert publish_hours(0, 2, input={"arrival_time": "EventEnqueuedUtcTime"}) == {}


def test_a_device_of_which_every_event_is_dropped_is_named(world: World, publish_hours: Publish) -> None:
    world.put("2", at(10), ten_events("T-009", at(5 + 11)), opened=at(5))
    failed = publish_hours(0, 1)
    assert failed["events_of_every_key_reach_the_query"] == (
        "warning: no event of these keys (deviceId) reached the query: T-009 (10 events, all early); correct the "
        "clock, which is ahead"
    )


def test_a_device_that_disappears_from_the_rows_is_named(world: World, publish_hours: Publish) -> None:
    for path in world.capture.rglob("contoso/telemetry/1/2024/03/01/*/*/*.avro"):
        opened = opened_at(path)
        if opened >= at(175):
            number = round((opened - at(-5)) / timedelta(minutes=5))
            put(world, "1", opened, ten_events("device-0", opened), 10 * number)
    failed = publish_hours(0, HOURS)
    assert failed["no_key_disappears"].startswith(
        "warning: keys have no rows, but had some in each of the three slices before: device-1 in slice "
        "2024-03-01T13:00:00Z"
    )


def test_a_partition_below_another_one_exists_even_if_no_blob_of_it_is_left(
    world: World, publish_hours: Publish
) -> None:
    """A hub numbers its partitions from 0."""
    shutil.rmtree(world.capture / "contoso/telemetry/0")
    failed = publish_hours(0, HOURS)
    assert failed["archive_has_no_holes"].startswith("critical: the archive has holes: partition 0: 52 blobs")
    assert hours(world) == {}


@pytest.mark.parametrize(
    ("empty_blobs", "sentence"),
    [
        (True, "critical: the archive has holes: partition 1: 28 blobs are missing"),
        (False, "warning: the archive has holes: partition 1: no blob arrived from 2024-03-01T11:00:00Z"),
    ],
)
def test_a_published_partition_of_which_no_blob_is_left_is_named(
    world: World, publish_hours: Publish, empty_blobs: bool, sentence: str
) -> None:
    assert publish_hours(0, 1) == {}
    shutil.rmtree(world.capture / "contoso/telemetry/1")
    failed = publish_hours(1, 3, input={"empty_blobs": empty_blobs})
    assert failed["archive_has_no_holes"].startswith(sentence)
