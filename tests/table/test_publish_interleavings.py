"""Two publishers of the same slice and a rollback, at the same time: every table ends with the files of one run.

All interleavings of the three at their commits, over three tables, are enumerated on tables in memory. Those of each
two of them over one table are enumerated on Delta tables; `make chaos` enumerates those of all three there.
"""

import copy
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from recapture.table import publications, publish
from recapture.table.delta import OpenTable
from recapture.table.publications import Publications
from tests.table import publishing
from tests.table.interleavings import Actors, InMemory, Schedule
from tests.table.publishing import METRICS, ROWS, Place


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


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


def cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs once for the same arguments, whatever its object."""
    results: dict[str, Any] = {}

    def call(self: object, *arguments: object) -> Any:
        key = repr(arguments)
        if key not in results:
            results[key] = function(self, *arguments)
        return results[key]

    return call


def test_two_publishers_and_a_rollback_leave_one_run_in_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (publish, publications, publishing):
        monkeypatch.setattr(module, "OpenTable", InMemory)
    monkeypatch.setattr(publications, "in_parallel", lambda call, items: [call(item) for item in items])
    for method in ("_read_entry", "_write_entry"):
        monkeypatch.setattr(Publications, method, cached(getattr(Publications, method)))
    monkeypatch.setattr(Place, "publication", cached(Place.publication))
    monkeypatch.setattr(publish, "Look", lambda remedy: Mock())
    monkeypatch.setattr(InMemory, "LOGS", {})
    schedule = Schedule(InMemory.commit)
    monkeypatch.setattr(InMemory, "commit", lambda *arguments: schedule.commit(*arguments))
    place = Place(tmp_path.as_uri(), (ROWS, METRICS))
    place.publish("first")
    place.publish("second")
    before = copy.deepcopy(InMemory.LOGS)

    def world() -> tuple[Actors, Callable[[], None]]:
        InMemory.LOGS.clear()
        InMemory.LOGS.update(copy.deepcopy(before))
        return actors_of(place), lambda: None

    ends: Counter[tuple[str | None, str | None]] = Counter()
    for steps, outcomes in schedule.interleavings(world):
        assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes.values()), (steps, outcomes)
        end = one_run(place, steps)
        place.rollback(run=end)
        ends[end, one_run(place, steps)] += 1
    assert set(ends) == {("run a", "second"), ("run b", "second"), ("run a", "run b"), ("run b", "run a")}
    assert schedule.states > 1000


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("ab", {("run a", "run b"), ("run b", "run a")}),
        ("ar", {("run a", "first"), ("second", "first")}),
    ],
)
def test_any_two_of_them_leave_one_run_on_delta_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, expected: set[tuple[str, str]]
) -> None:
    schedule = Schedule(OpenTable.commit)
    monkeypatch.setattr(OpenTable, "commit", lambda *arguments: schedule.commit(*arguments))
    seed = Place((tmp_path / "seed").as_uri(), (ROWS,))
    seed.publish("first")
    seed.publish("second")
    place = Place((tmp_path / "place").as_uri(), (ROWS,))

    def world() -> tuple[Actors, Callable[[], None]]:
        shutil.copytree(tmp_path / "seed", tmp_path / "place")
        actors = {name: call for name, call in actors_of(place).items() if name in names}
        return actors, lambda: shutil.rmtree(tmp_path / "place")

    ends = set()
    for steps, outcomes in schedule.interleavings(world):
        assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes.values()), (steps, outcomes)
        end = one_run(place, steps)
        place.rollback(run=end)
        ends.add((end, one_run(place, steps)))
    assert ends == expected
    assert schedule.states > 20
