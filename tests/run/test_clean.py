"""`recapture clean`: what it removes of runs, and what stays because somebody may still need it."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recapture.errors import AuditError
from recapture.execute.processes.workers import Workers
from recapture.run.approval import approve
from recapture.run.clean import FILES, MARKS, RUNS, clean
from recapture.run.needs import StoredRun
from recapture.run.rollback import rollback
from recapture.run.status import status
from recapture.run_files.planned import PlannedRun
from recapture.storage import Blob
from recapture.table.publications import Approval, Entry
from recapture.time_model import ticks
from recapture.tools.reports.write import write_range_report
from tests.commands import Command
from tests.stages import audit, publish
from tests.table.aging import age
from tests.worlds import HOUR, TEN, World, at, backfill, body, not_warmer_than, one_event, published, staged

ELEVEN = TEN + HOUR
APPROVAL = Approval("Ada", datetime(2024, 3, 2, 8, tzinfo=UTC), "the heating was on")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path)


def pass_time(world: World, days: float = 8) -> None:
    """Make the tables older; the archive stays as it is."""
    for folder in world.home.glob("table*"):
        age(folder, days)


def removed(world: World, run: PlannedRun) -> dict[str, int]:
    """Clean, and return how many files of each kind were removed."""
    counts: dict[str, int] = {}
    for removal in clean(run.pipeline, dry_run=False):
        counts[removal.what] = counts.get(removal.what, 0) + removal.files
    return counts


def run_files(world: World, run: PlannedRun) -> list[Path]:
    return [path for path in (world.table / "_recapture" / run.id).rglob("*") if path.is_file()]


def stopped(processes: Workers, world: World, largest: float = 19) -> PlannedRun:
    """Return a run of the first hour that its audit stopped."""
    run = staged(processes, world.define(quality=world.write_suite(not_warmer_than(largest))), TEN, ELEVEN)
    with pytest.raises(AuditError):
        audit(run)
    return run


def test_a_run_that_waits_for_a_decision_stays_however_old_it_is(processes: Workers, world: World) -> None:
    run = stopped(processes, world)
    pass_time(world, days=400)
    assert removed(world, run) == {}
    approve(run, APPROVAL)
    assert publish(run).quality == "approved"
    assert len(published(world.table)) == 1


def test_a_stopped_run_whose_slices_were_published_since_is_forgotten(processes: Workers, world: World) -> None:
    run = stopped(processes, world)
    world.put("0", at(14), [body("a", at(11), 10)], 1)
    backfill(processes, world.define(), TEN, ELEVEN)
    assert removed(world, run) == {}, "it may be in progress"
    pass_time(world)
    files = len(run_files(world, run))
    counts = removed(world, run)
    assert (counts[RUNS], counts[MARKS], counts[FILES]) == (files, 1, 1)
    assert run_files(world, run) == []
    assert [slice_["state"] for slice_ in status(world.define())["slices"]] == ["published"]
    assert removed(world, run) == {}


def test_a_killed_run_is_forgotten_and_can_be_repeated(processes: Workers, world: World) -> None:
    killed = staged(processes, world.define(), TEN, ELEVEN)
    pass_time(world)
    counts = removed(world, killed)
    assert (counts[RUNS] > 3, counts[FILES]) == (True, 1)
    assert backfill(processes, killed.pipeline, TEN, ELEVEN)["run"] == killed.id
    assert len(published(world.table)) == 1


def test_the_staged_files_of_a_run_in_progress_stay_however_old_they_are(processes: Workers, world: World) -> None:
    run = staged(processes, world.define(), TEN, ELEVEN)
    pass_time(world)
    manifest = world.table / "_recapture" / run.id / "manifest.json"
    os.utime(manifest, (time.time(),) * 2)
    assert removed(world, run) == {}
    audit(run)
    publish(run)
    assert len(published(world.table)) == 1


def test_a_run_in_progress_whose_manifest_cannot_be_read_keeps_its_staged_files(
    processes: Workers, world: World
) -> None:
    run = staged(processes, world.define(), TEN, ELEVEN)
    pass_time(world)
    manifest = world.table / "_recapture" / run.id / "manifest.json"
    manifest.write_bytes(b"damaged")
    assert removed(world, run) == {}


def test_what_is_published_can_be_reported_and_what_was_before_can_be_restored(
    processes: Workers, world: World
) -> None:
    first = backfill(processes, world.define(), TEN, ELEVEN)["run"]
    world.put("0", at(14), [body("a", at(11), 10)], 1)
    pipeline = world.define()
    second = backfill(processes, pipeline, TEN, ELEVEN)["run"]
    pass_time(world)
    clean(pipeline, dry_run=False)
    assert {path.name for path in (world.table / "_recapture").iterdir() if any(path.iterdir())} == {first, second}
    assert write_range_report(pipeline, TEN, ELEVEN, world.home / "range.html")["verdict"]
    assert rollback(pipeline, TEN, ELEVEN)["rolled_back"][0]["run"] == first
    assert [row["events"] for row in published(world.table)] == [1]


def test_the_command_says_what_it_removes_and_a_dry_run_what_it_would(
    processes: Workers, world: World, command: Command
) -> None:
    run = staged(processes, world.define(), TEN, ELEVEN)
    pass_time(world)
    text = command.text("clean", world.file, "--dry-run")
    assert "would be removed: 1 file, " in text
    assert text.splitlines()[-1].endswith("would be removed")
    announced = command.json("clean", world.file, "--dry-run")
    assert run_files(world, run)
    result = command.json("clean", world.file)
    assert result == announced | {"dry_run": False}
    assert result["files"] == sum(removal["files"] for removal in result["removed"]) > 4
    assert command.text("clean", world.file) == "telemetry: 0 files, 0 bytes removed\n"


START = ticks.from_datetime(TEN)
NEVER = Entry(None)


def run_with(**written: int) -> StoredRun:
    """Return a run with these files, written so many hours after ten."""
    blobs = [
        Blob(f"_recapture/run/{name}.json", "etag", 1, TEN + timedelta(hours=hours)) for name, hours in written.items()
    ]
    return StoredRun("run", START, START + ticks.from_seconds(7200), tuple(blobs))


@pytest.mark.parametrize(
    ("run", "is_undecided"),
    [
        (run_with(manifest=0, staged=1), False),
        (run_with(manifest=0, staged=1, audit=2), True),
        (run_with(manifest=0, staged=1, audit=2, outcome=3), False),
        (run_with(manifest=0, staged=1, audit=4, outcome=3), True),
    ],
)
def test_an_audited_run_is_undecided_until_it_is_published(run: StoredRun, is_undecided: bool) -> None:
    assert run.is_undecided([NEVER, NEVER]) is is_undecided
