"""Two publishers of the same slice and a rollback, at the same time: every table ends with the files of one run.

All interleavings of the three at their commits, over three tables, are enumerated on tables in memory. Those of each
two of them over one table are enumerated on Delta tables; `make chaos` enumerates those of all three there.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from recapture.table import change_feed, publish
from tests.table.feeds import Feed, require_true_feed, shared_comparisons
from tests.table.interleavings import Actors, Memory, PlaceInMemory, Schedule, ScheduledTables
from tests.table.publishing import ROWS, WRITTEN_BY, Place


def actors_of(place: Place) -> Actors:
    return {
        "a": lambda: place.publish("run a"),
        "b": lambda: place.publish("run b"),
        "r": lambda: place.rollback(),
    }


def one_run(place: Place, steps: str) -> str | None:
    """Return the run that nine o'clock holds; in every table it is the same one."""
    held = place.held()
    assert len(set(held.values())) == 1, f"after {steps}: {held}"
    return held["publications"]


def test_two_publishers_and_a_rollback_leave_one_run_in_every_table() -> None:
    memory = Memory()
    place = PlaceInMemory.of(memory)
    place.publish("first")
    place.publish("second")
    before = {url: tuple(versions) for url, versions in memory.logs.items()}

    def world() -> tuple[Actors, Callable[[], None]]:
        memory.logs.clear()
        memory.logs.update({url: [*versions] for url, versions in before.items()})
        return actors_of(place), lambda: None

    ends = set(ends_of(memory.schedule, world, place))
    assert ends == {("run a", "second"), ("run b", "second"), ("run a", "run b"), ("run b", "run a")}
    assert memory.schedule.states > 1000


def ends_of(
    schedule: Schedule, world: Callable[[], tuple[Actors, Callable[[], None]]], place: Place
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the run that every table holds at each end, and after a rollback of that run."""
    for steps, outcomes in schedule.interleavings(world):
        assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes.values()), (steps, outcomes)
        end = one_run(place, steps)
        place.rollback(run=end)
        yield end, one_run(place, steps)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(change_feed, "comparisons", shared_comparisons)


@pytest.mark.parametrize(
    ("names", "expected"),
    [("ab", {("run a", "run b"), ("run b", "run a")}), ("ar", {("run a", "first"), ("second", "first")})],
)
def test_any_two_of_them_leave_one_run_and_a_true_feed_on_delta_tables(
    tmp_path: Path, names: str, expected: set[tuple[str, str]]
) -> None:
    schedule = Schedule()
    seed = Place((tmp_path / "seed").as_uri(), (ROWS,), change_feed=True)
    seed.publish("first")
    seed.publish("second")
    scheduled = partial(ScheduledTables, schedule=schedule)
    place = Place((tmp_path / "place").as_uri(), (ROWS,), change_feed=True, tables_type=scheduled)

    def world() -> tuple[Actors, Callable[[], None]]:
        shutil.copytree(tmp_path / "seed", tmp_path / "place")
        actors = {name: call for name, call in actors_of(place).items() if name in names}
        return actors, lambda: shutil.rmtree(tmp_path / "place")

    ends = set()
    for end in ends_of(schedule, world, place):
        require_true_feed(Feed(place.url, WRITTEN_BY))
        ends.add(end)
    assert ends == expected
    assert schedule.states > 20
