"""A slice whose rows are unchanged keeps its file: readers see no new version, and only its publication is new."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.table import publish
from recapture.table.delta import OpenTable
from recapture.table.faults import faults_of, lagging_slices
from recapture.table.publications import shown_entries
from recapture.table.publish import Outcome
from recapture.table.unchanged import is_equal
from tests.draws import examples
from tests.table.interleavings import Actors, Memory, PlaceInMemory
from tests.table.publishing import METRICS, NINE, QUARANTINE, ROWS, TEN, Place, remove

AS_FIRST = {name: "first" for name in (ROWS, METRICS, QUARANTINE)}


def test_a_slice_with_the_same_rows_keeps_its_file_and_its_version(place: Place) -> None:
    place.publish("first")
    before, held = place.versions(), OpenTable(place.tables.others[ROWS]).held()
    outcome = place.publish("second", rows=AS_FIRST)
    assert outcome.changed == {ROWS: [], METRICS: [], QUARANTINE: []}
    assert (outcome.recorded, outcome.repaired, outcome.superseded) == ([NINE], [], {})
    assert place.versions() == {**before, "publications": 2}
    assert OpenTable(place.tables.others[ROWS]).held() == held
    entry = place.entry()
    assert (entry.run, [publication.run for publication in entry.earlier]) == ("second", ["first"])


def test_only_the_tables_and_slices_whose_rows_differ_are_committed_to(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    publications = {
        NINE: folder.publication("second", NINE, rows=AS_FIRST),
        TEN: folder.publication("second", TEN, rows={ROWS: "first", QUARANTINE: "first"}),
    }
    outcome = publish.publish(folder.tables, publications)
    assert outcome.changed == {ROWS: [], METRICS: [TEN], QUARANTINE: []}
    assert folder.shown(METRICS) == {NINE: "first", TEN: "second"}
    assert folder.shown(ROWS) == folder.shown(QUARANTINE) == {NINE: "first", TEN: "first"}


def test_rollback_of_a_publication_that_changed_no_rows_takes_back_the_record_and_keeps_the_files(
    folder: Place,
) -> None:
    for run, rows in (("first", {}), ("second", {}), ("third", dict.fromkeys(AS_FIRST, "second"))):
        folder.publish(run, rows=rows)
    versions = folder.versions()
    outcome = folder.rollback()
    assert outcome.changed == {ROWS: [], METRICS: [], QUARANTINE: []}
    assert (folder.entry().run, folder.entry().taken_back) == ("second", "third")
    assert folder.versions() == {**versions, "publications": 4}
    folder.rollback(run="second")
    assert folder.shown(ROWS) == {NINE: "first"}


def test_rollback_of_new_rows_after_unchanged_ones_restores_the_file_that_was_kept(folder: Place) -> None:
    folder.publish("first")
    folder.publish("second", rows=AS_FIRST)
    folder.publish("third")
    folder.rollback()
    assert (folder.entry().run, folder.shown(ROWS)) == ("second", {NINE: "first"})
    folder.rollback(run="second")
    assert (folder.entry().run, folder.shown(ROWS)) == ("first", {NINE: "first"})


def test_publishing_a_kept_slice_again_changes_nothing(folder: Place) -> None:
    folder.publish("first")
    folder.publish("second", rows=AS_FIRST)
    versions = folder.versions()
    folder.publish("second", rows=AS_FIRST)
    assert folder.versions() == versions


@pytest.mark.parametrize("damage", ["lost", "truncated", "other bytes"])
def test_a_file_that_is_lost_or_damaged_is_not_kept(folder: Place, damage: str) -> None:
    folder.publish("first")
    (held,) = OpenTable(folder.tables.others[ROWS]).held()[NINE]
    if damage == "lost":
        remove(folder.table_url(ROWS), held.path)
    else:
        folder.container(ROWS).write(held.path, bytes(held.size - (damage == "truncated")))
    outcome = folder.publish("second", rows=AS_FIRST)
    assert outcome.changed == {ROWS: [NINE], METRICS: [], QUARANTINE: []}
    assert folder.shown(ROWS) == {NINE: "first"}


def test_a_kept_slice_is_as_it_was_published(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    folder.publish("second", NINE, rows={ROWS: "first"})
    entries = shown_entries(OpenTable(folder.tables.publications))
    for name, table in folder.tables.others.items():
        opened = OpenTable(table)
        assert faults_of(opened, {start: entry.input_of(name) for start, entry in entries.items()}) == {}
        assert list(lagging_slices(opened, name, entries)) == []
    folder.publish("third", NINE)
    for name, table in folder.tables.others.items():
        assert list(lagging_slices(OpenTable(table), name, entries)) == [NINE], "another file is noticed"


@pytest.mark.parametrize("names", ["ab", "abr"])
def test_publishers_with_equal_rows_and_a_rollback_leave_what_is_published(
    monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    memory = Memory()
    place = PlaceInMemory.of(memory)
    place.publish("first")
    place.publish("second")
    before = {url: list(log) for url, log in memory.logs.items()}

    def world() -> tuple[Actors, Callable[[], None]]:
        memory.logs.clear()
        memory.logs.update({url: list(log) for url, log in before.items()})
        actors: dict[str, Callable[[], Outcome]] = {
            "a": lambda: place.publish("run a", rows={ROWS: "second"}),
            "b": lambda: place.publish("run b", rows={ROWS: "second", METRICS: "second"}),
            "r": lambda: place.rollback(),
        }
        return {name: actors[name] for name in names}, lambda: None

    ends = set()
    for steps, outcomes in memory.schedule.interleavings(world):
        assert all(isinstance(outcome, Outcome) for outcome in outcomes.values()), (steps, outcomes)
        require_published_files(place, steps)
        ends.add(place.entry().run)
    assert ends == {"run a", "run b"}


def require_published_files(place: Place, steps: object) -> None:
    """Raise AssertionError unless each table holds the files of the entry of nine o'clock."""
    entry = place.entry()
    files = {name: entry.file(name) for name in place.names}
    assert place.paths() == {name: None if file is None else file.path for name, file in files.items()}, steps


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")) | st.none(), max_size=8)
"""Publications, each with what the slice's row in each of two tables says, and rollbacks."""


@given(STEPS)
@settings(max_examples=examples(60))
def test_a_table_has_a_new_version_exactly_if_its_rows_change(steps: list[tuple[str, str] | None]) -> None:
    publications: list[tuple[str, str]] = []
    place = PlaceInMemory.of(Memory())
    place.publish("run 0")
    publications.append(("run 0", "run 0"))
    for number, step in enumerate(steps, 1):
        versions, before = place.versions(), publications[-1]
        if step is not None:
            place.publish(f"run {number}", rows=dict(zip((ROWS, METRICS), step, strict=True)))
            publications.append(step)
        elif len(publications) > 1:
            place.rollback(run=place.entry().run)
            publications.pop()
        after = place.versions()
        for name, row_before, row in zip((ROWS, METRICS), before, publications[-1], strict=True):
            assert (after[name] != versions[name]) == (row != row_before)
            file = place.entry().file(name)
            assert file is not None
            assert is_equal(file, place._stage(name, "", NINE, row))
        require_published_files(place, steps)
