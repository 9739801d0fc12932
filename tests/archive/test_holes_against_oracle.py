"""The holes that runs name over archives with losses are those of a naive oracle."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.holes import Hole, Kind
from recapture.execute.processes.compute import compute
from recapture.run.holes import holes_of
from recapture.run.plan import plan_run
from recapture.run.tables import tables_of
from recapture.run_files.computed import METRICS
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Publications
from recapture.tools.sample import SampleEvent, capture_file
from tests.draws import slow
from tests.oracle_holes import Archive, Blob, Event, Found, arrived, holes
from tests.stages import audit, publish
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, blob_name, body, lenient

INTERVAL, LATE, LOOK_BACK = 15, 20, 5
INTERVALS_OF_AN_HOUR = 60 // INTERVAL
FIRST, LAST = -2, 7
"""Hours after ten of the first and the last blob of an archive."""


class Pool:
    """The part of a pool that computing needs, in this process: starting others takes longer than these archives."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


class Here:
    """Workers of this process."""

    pool = Pool()
    count = 1

    def kill(self) -> None:
        """End nothing."""


@dataclass(frozen=True)
class Case:
    """An archive as it was written, as it is, and which hours of it are published and run."""

    written: tuple[Blob, ...]
    left: tuple[Blob, ...]
    empty_blobs: bool
    partitions: tuple[str, ...]
    before: tuple[int, int]
    """Hours that are published before the run, from and to; the same twice if there are none."""
    after: tuple[int, int]
    run: tuple[int, int]
    lost_before: bool
    """Whether the blobs were gone before anything was published."""


def hub(random: Random, partition: str) -> list[Blob]:
    """Draw what Capture wrote of one partition: it begins at some time, and its hub may have been created anew."""
    begins = random.choice([FIRST * 4, FIRST * 4, FIRST * 4, 1, 6, 9])
    anew = random.choice([None, None, None, 2, 5, 8, 13])
    number = random.choice([0, 0, 7, 500])
    silence = random.choice([range(0), range(0), range(2, 5), range(3, 12), range(8, 14)])
    blobs = []
    for index in range(begins, LAST * 4):
        if index == anew and index > begins:
            number = 0
        count = 0 if index in silence else random.choice([0, 1, 1, 2])
        opened = index * INTERVAL
        events = tuple(Event(number + n, opened + 2 + 6 * n) for n in range(count))
        number += count
        blobs.append(Blob(partition, opened, opened + INTERVAL + 3 / 60, events))
    return blobs


def drawn(seed: int) -> Case:
    """Draw an archive, what is deleted of it, and what was published before."""
    random = Random(seed)
    partitions, empty_blobs = tuple("012"[: random.randint(1, 3)]), random.random() < 0.6
    written = [blob for partition in partitions for blob in hub(random, partition)]
    if not empty_blobs:
        written = [blob for blob in written if blob.events]
    deletions = [
        (random.choice([*partitions, *partitions, "all"]), range(first, first + random.choice([1, 2, 3, 4, 5, 8, 12])))
        for first in random.choices(range(FIRST * 4, 5 * 4), k=random.choice([0, 1, 1, 2, 3]))
    ]

    def is_deleted(blob: Blob) -> bool:
        return any(
            partition in (blob.partition, "all") and blob.opened // INTERVAL in indexes
            for partition, indexes in deletions
        )

    left = tuple(blob for blob in written if not is_deleted(blob))
    start = random.randint(0, 3)
    end = random.randint(start + 1, 4)
    before = random.choice([(start, start), (start - 1, start), (-1, start), (-1, start - 1)])
    after = random.choice([(end, end), (end, end), (end, end + 1), (end + 1, end + 2)])
    lost_before = random.random() < 0.5
    return Case(tuple(written), left, empty_blobs, partitions, before, after, (start, end), lost_before)


def write(world: World, blobs: Sequence[Blob], partitions: Sequence[str]) -> None:
    """Write the archive anew; the folders of the partitions stay."""
    shutil.rmtree(world.capture, ignore_errors=True)
    for partition in partitions:
        world.capture.joinpath("contoso/telemetry", partition).mkdir(parents=True)
    for blob in blobs:
        path = world.capture / blob_name(blob.partition, at(blob.opened))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            capture_file(
                SampleEvent(event.number, str(event.number), at(event.enqueued), body("device", at(event.enqueued)))
                for event in blob.events
            )
        )
        os.utime(path, (at(blob.arrival).timestamp(),) * 2)


def computed(world: World, case: Case, hours: tuple[int, int], scratch: Path) -> PlannedRun:
    pipeline = world.define(
        inputs=[
            TELEMETRY
            | {
                "empty_blobs": case.empty_blobs,
                "capture_interval_seconds": INTERVAL * 60,
                "partitions": len(case.partitions),
            }
        ],
        eventsLateArrivalMaxDelayInSeconds=LATE * 60,
        quality=lenient(world),
    )
    run = plan_run(pipeline, TEN + hours[0] * HOUR, TEN + hours[1] * HOUR)
    usual = tempfile.tempdir
    try:
        compute(Here(), run, scratch)  # type: ignore[arg-type]
    finally:
        tempfile.tempdir = usual  # a task sets that of its process
    return run


def named(case: Case, world: World) -> list[Hole]:
    """Return the holes that the run of a case names, after what is published before it."""
    scratch = world.home / "scratch"
    scratch.mkdir()
    write(world, case.left if case.lost_before else case.written, case.partitions)
    for hours in case.before, case.after:
        if hours[0] < hours[1]:
            neighbour = computed(world, case, hours, scratch)
            audit(neighbour, accept_loss=True)
            publish(neighbour)
    write(world, case.left, case.partitions)
    run = computed(world, case, case.run, scratch)
    metrics = run.files.read(METRICS)
    return holes_of(run, metrics, Publications(tables_of(run.pipeline).publications))


def slices(hours: tuple[int, int]) -> list[tuple[float, float]]:
    return [(60 * hour, 60 * hour + 60) for hour in range(*hours)]


def expected(case: Case) -> list[Found]:
    source = case.left if case.lost_before else case.written
    known = []
    if case.before[1] == case.run[0]:
        known += slices(case.before)
    if case.after[0] == case.run[1]:
        known += slices(case.after)
    published = {partition: arrived(source, partition, known) for partition in case.partitions}
    archive = Archive(INTERVAL, case.empty_blobs, LATE, LOOK_BACK, case.left)
    return holes(archive, case.partitions, (60.0 * case.run[0], 60.0 * case.run[1]), published)


def disagreements(real: Sequence[Hole], found: Sequence[Found]) -> list[str]:
    """Return what only the run names, and what only the oracle does."""
    unmatched = [hole for hole in real if hole.kind is not Kind.PAUSED]
    missed = []
    for hole in found:
        same = next((named for named in unmatched if agrees(named, hole)), None)
        if same is not None:
            unmatched.remove(same)
        elif not hole.need_not_be_named:
            missed.append(f"only the oracle names {hole}")
    return [*missed, *(f"only the run names {hole}" for hole in unmatched)]


def agrees(hole: Hole, found: Found) -> bool:
    """Return whether a run names a hole of the oracle."""
    least, most = found.blobs
    return (
        (hole.kind, hole.partition, hole.first, hole.last) == (found.kind, found.partition, found.first, found.last)
        and hole.severity in found.severities
        and least <= hole.blobs <= most
    )


@slow(25)
@given(seed=st.integers(0, 2**32))
def test_runs_name_the_holes_of_the_oracle(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    case, folder = drawn(seed), tmp_path_factory.mktemp("case")
    assert disagreements(named(case, World(folder)), expected(case)) == []
    shutil.rmtree(folder)
