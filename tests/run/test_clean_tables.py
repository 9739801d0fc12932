"""What is removed of tables: only files that no reader, no publication, no rollback and no run needs."""

import random
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recapture.errors import DefinitionError, PermanentError
from recapture.run import clean as cleaning
from recapture.run.clean import Removal, clean_tables
from recapture.storage import Blob
from recapture.storage.folder import FolderContainer
from recapture.table import delta, publish
from recapture.table.delta import Table
from recapture.table.files import is_written_by_recapture
from recapture.time_model import ticks
from tests.draws import slow
from tests.table.aging import age
from tests.table.interleavings import Actors, Schedule, ScheduledTables
from tests.table.publishing import METRICS, NINE, ROWS, TEN, Place

LENGTH = ticks.from_seconds(3600)


@pytest.fixture(autouse=True)
def no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no checkpoints: `age` changes only commits."""
    monkeypatch.setattr(delta, "PROPERTIES", {"delta.checkpointInterval": "1000"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.as_uri(), (ROWS, METRICS))


def clean(place: Place, *, dry_run: bool = False) -> list[Removal]:
    return clean_tables(place.tables, place.container(ROWS), LENGTH, dry_run=dry_run)


def files(place: Place, name: str = ROWS) -> set[str]:
    folder = place.folder(name)
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if is_written_by_recapture(path.name)}


def named(place: Place, name: str = ROWS, *starts: str) -> set[str]:
    """Return the files of a table that the publications of slices name, those that rollback can restore included."""
    entries = [place.entry(start) for start in starts or (NINE, TEN)]
    publications = [item for entry in entries for item in (entry.current, *entry.earlier) if item is not None]
    return {file.path for item in publications if (file := item.files[name]) is not None}


def test_a_staged_file_that_nobody_publishes_is_removed_when_it_is_old(place: Place) -> None:
    place.publish("first")
    place.publication("staged")
    assert clean(place) == []
    age(place.folder().parent)
    assert sum(removal.files for removal in clean(place)) == 2
    assert files(place) == named(place)
    assert clean(place) == []


def test_what_a_rollback_can_restore_stays_however_old_it_is(place: Place) -> None:
    for run in ("a", "b", "c"):
        place.publish(run)
    age(place.folder().parent)
    assert [removal.what for removal in clean(place)] == [cleaning.ENTRIES]
    for run in ("b", "a"):
        assert place.rollback(run=place.entry().run).superseded == {}
        assert place.shown(ROWS) == {NINE: run}


def test_a_publication_that_rollback_no_longer_remembers_loses_its_files(place: Place) -> None:
    for number in range(13):
        place.publish(f"run {number}")
    before = files(place)
    assert len(before) == 13
    age(place.folder().parent)
    clean(place)
    assert files(place) == named(place)
    assert len(before - files(place)) == 2


def test_a_reader_of_an_old_version_within_the_retention_finds_its_files(place: Place) -> None:
    place.publish("a")
    place.publish("b")
    place.rollback()
    age(place.folder().parent, days=6)
    assert clean(place) == []
    assert len(files(place)) == 2


def test_files_of_other_programs_stay(place: Place) -> None:
    place.publish("a")
    foreign = place.folder() / "slice_start=20240301T090000Z" / "part-00000.parquet"
    foreign.write_bytes(b"foreign")
    age(place.folder().parent)
    clean(place)
    assert foreign.exists()


def test_change_data_is_removed_after_the_retention(place: Place) -> None:
    place.publish("a")
    change = place.folder() / "_change_data" / "cdc-1.parquet"
    change.parent.mkdir()
    change.write_bytes(b"change")
    clean(place)
    assert change.exists()
    age(change.parent)
    assert clean(place) == [Removal(place.table_url(ROWS), cleaning.CHANGES, 1, 6)]
    assert not change.exists()


def test_a_dry_run_removes_nothing_and_tells_the_same(place: Place) -> None:
    for number in range(12):
        place.publish(f"run {number}")
    place.publication("staged")
    age(place.folder().parent)
    before = {path: path.stat().st_mtime_ns for path in place.folder().parent.rglob("*") if path.is_file()}
    announced = clean(place, dry_run=True)
    assert before == {path: path.stat().st_mtime_ns for path in place.folder().parent.rglob("*") if path.is_file()}
    assert clean(place) == announced != []


def test_tables_of_another_pipeline_are_left_alone(place: Place) -> None:
    place.publish("a")
    place.publication("staged")
    age(place.folder().parent)
    other = Place(place.url, place.names, pipeline="another")
    with pytest.raises(DefinitionError, match="belongs to pipeline telemetry"):
        clean(other)
    assert len(files(place)) == 2


def test_without_tables_there_is_nothing_to_remove(place: Place) -> None:
    assert clean(place) == []
    assert not place.folder().exists()


class KilledError(BaseException):
    """The end of a process at any moment."""


class Life:
    """A seeded life of tables: runs publish, people roll back, time passes, and somebody cleans or is killed at it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = random.Random(seed)
        self.folder = folder
        self.place = Place(folder.as_uri(), (ROWS, METRICS))
        self.runs = [f"run {number}" for number in range(4)]
        self.place.publish("first", NINE, TEN)

    def live(self) -> None:
        actions: list[Callable[[], None]] = [self.publish, self.publish, self.stage, self.roll_back, self.pass_time]
        for _ in range(14):
            self.draw.choice([*actions, self.clean, self.clean_killed])()
        age(self.folder, days=8)
        self.clean()
        for name in self.place.names:
            assert files(self.place, name) == named(self.place, name), "nothing else is left"
        self.roll_everything_back()

    def starts(self) -> Sequence[str]:
        return self.draw.choice([(NINE,), (TEN,), (NINE, TEN)])

    def publish(self) -> None:
        self.place.publish(self.draw.choice(self.runs), *self.starts())

    def stage(self) -> None:
        self.place.publication(self.draw.choice(self.runs), self.draw.choice((NINE, TEN)))

    def roll_back(self) -> None:
        with suppress(PermanentError):  # nothing is published
            self.place.rollback(*self.starts())

    def pass_time(self) -> None:
        age(self.folder, days=self.draw.choice([1, 4, 8]))

    def clean(self) -> None:
        before = self.seen()
        clean(self.place)
        self.check(before)

    def clean_killed(self) -> None:
        before, left = self.seen(), self.draw.randrange(4)
        remove = FolderContainer.remove

        def remove_or_die(container: FolderContainer, blob: Blob) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return remove(container, blob)

        with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
            patch.setattr(FolderContainer, "remove", remove_or_die)
            clean(self.place)
        self.check(before)

    def seen(self) -> object:
        shown = {name: self.place.shown(name) for name in self.place.names}
        return shown, [self.place.entry(start) for start in (NINE, TEN)]

    def check(self, before: object) -> None:
        """Require that readers see what they saw, and that all files that a rollback may restore are there."""
        assert self.seen() == before
        for name in self.place.names:
            assert named(self.place, name) <= files(self.place, name)

    def roll_everything_back(self) -> None:
        for start in (NINE, TEN):
            while (current := self.place.entry(start).run) is not None:
                self.place.rollback(start, run=current)
                expected = self.place.entry(start).run
                assert set(self.place.held(start).values()) == {expected}


@given(seed=st.integers(0, 1 << 32))
@example(seed=1)
@slow(10)
def test_after_any_life_everything_that_worked_still_works(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("life")
    Life(seed, folder).live()
    shutil.rmtree(folder)


@pytest.mark.parametrize(("other", "run"), [("publish", "late"), ("rollback", "first")])
def test_a_publisher_or_a_rollback_may_do_anything_between_the_steps_of_a_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, run: str
) -> None:
    """All interleavings with a run that publishes files that were staged long ago, or with a rollback."""
    seed = Place((tmp_path / "seed").as_uri(), (ROWS,))
    seed.publish("first")
    seed.publish("second")
    seed.publication("late")
    seed.publication("never")
    age(tmp_path / "seed")
    schedule, remove = Schedule(), FolderContainer.remove
    scheduled = partial(ScheduledTables, schedule=schedule)
    place = Place((tmp_path / "place").as_uri(), (ROWS,), tables_type=scheduled)
    change = {"publish": lambda: place.publish("late"), "rollback": lambda: place.rollback()}[other]

    def remove_at_a_step(container: FolderContainer, blob: Blob) -> bool:
        step = Table(f"{container.url}/{blob.name}", place.schema)
        return schedule.commit(step, 0, {}, lambda: remove(container, blob))

    def one_by_one(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [call(item) for item in items]

    monkeypatch.setattr(FolderContainer, "remove", remove_at_a_step)
    monkeypatch.setattr(cleaning, "in_parallel", one_by_one)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def world() -> tuple[Actors, Callable[[], None]]:
        shutil.copytree(tmp_path / "seed", tmp_path / "place")
        return {"c": lambda: clean(place), "o": change}, lambda: shutil.rmtree(tmp_path / "place")

    for steps, outcomes in schedule.interleavings(world):
        assert isinstance(outcomes["c"], list), (steps, outcomes)
        assert isinstance(outcomes["o"], publish.Outcome), (steps, outcomes)
        assert set(place.held().values()) == {run}, steps
        assert named(place, ROWS, NINE) <= files(place), steps
        place.rollback(run=run)
    assert schedule.states > 10
