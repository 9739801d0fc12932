"""Two publishers and a rollback of the same slice on Delta tables: every interleaving at their commits."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.table.interleavings import Actors, Schedule, ScheduledTables
from tests.table.publishing import METRICS, QUARANTINE, ROWS, Place
from tests.table.test_publish_interleavings import actors_of, one_run

NAMES = (ROWS, METRICS, QUARANTINE)


def table(tables: int) -> Iterator[str]:
    """Yield a row for each final state: the actors in the order of their steps, and what they published.

    The first step of an actor only reads.
    """
    schedule = Schedule()
    with tempfile.TemporaryDirectory() as folder:
        seed, copy = Path(folder, "seed"), Path(folder, "here")
        before = Place(seed.as_uri(), NAMES[:tables])
        place = Place(copy.as_uri(), NAMES[:tables], tables_type=partial(ScheduledTables, schedule=schedule))
        before.publish("first")
        before.publish("second")

        def world() -> tuple[Actors, Callable[[], None]]:
            shutil.copytree(seed, copy)
            return actors_of(place), lambda: shutil.rmtree(copy)

        yield f"a and b publish, r rolls back; {tables} tables besides the publications"
        yield "| steps | every table and the publications | after a rollback |"
        yield "|---|---|---|"
        ends = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", lambda seconds: None)
            for steps, _ in schedule.interleavings(world):
                end = one_run(place, steps)
                place.rollback(run=end)
                yield f"| {' '.join(steps)} | {end} | {one_run(place, steps)} |"
                ends += 1
        yield f"{schedule.states:,} states, {ends} ends, one run in every table at each"
