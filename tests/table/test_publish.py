"""Publishing: the slices of a run in every table of a pipeline, or their rollback."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import InterruptedRunError, RunError, UnfinishedError
from recapture.table import delta as delta_table
from recapture.table import publish
from recapture.table.delta import OpenTable
from recapture.table.publications import Entry
from recapture.table.snapshot import File
from tests.table.publishing import (
    ELEVEN,
    METRICS,
    NINE,
    QUARANTINE,
    ROWS,
    TEN,
    Place,
    everywhere,
    metadata_of,
    remove,
    together,
)


def each_table(slices: list[str]) -> dict[str, list[str]]:
    return {name: slices for name in (ROWS, METRICS, QUARANTINE)}


def test_a_run_replaces_exactly_its_slices_in_every_table(place: Place) -> None:
    first = place.publish("first", NINE, TEN, ELEVEN)
    assert set(first.versions.values()) == {1}
    second = place.publish("second", NINE, TEN)
    assert second.changed == each_table([NINE, TEN])
    assert second.versions == {name: place.version(name) for name in (ROWS, METRICS, QUARANTINE)}
    assert set(second.versions.values()) == {2}
    for name in (ROWS, METRICS, QUARANTINE):
        assert place.shown(name) == {NINE: "second", TEN: "second", ELEVEN: "first"}


def test_publishing_what_is_held_already_changes_nothing(place: Place) -> None:
    place.publish("run", NINE, TEN)
    before = place.versions()
    again = place.publish("run", NINE, TEN)
    assert again.changed == each_table([])
    assert (again.repaired, again.superseded) == ([], {})
    assert place.versions() == before


def test_only_the_slices_that_changed_are_committed(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    unchanged, changed = folder.publication("first", NINE), folder.publication("second", TEN)
    outcome = publish.publish(folder.tables, {NINE: unchanged, TEN: changed})
    assert outcome.changed[ROWS] == [TEN]
    assert metadata_of(folder.table_url(ROWS), 1)[0]["slices"] == [TEN]
    assert folder.shown(ROWS) == {NINE: "first", TEN: "second"}


def test_a_slice_without_rows_replaces_the_rows_of_before(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    folder.publish("second", NINE, but=QUARANTINE)
    assert folder.shown(QUARANTINE) == {TEN: "first"}
    assert folder.shown(ROWS) == {NINE: "second", TEN: "first"}


def test_a_table_of_which_no_slice_has_rows_is_not_created(folder: Place) -> None:
    outcome = folder.publish("run", but=QUARANTINE)
    assert outcome.versions == {ROWS: 1, METRICS: 1, QUARANTINE: None}
    assert folder.version(QUARANTINE) is None


def test_a_staged_file_is_not_seen_before_the_commit(place: Place) -> None:
    place.publish("first")
    staged = place.publication("second", TEN)
    assert place.shown(ROWS) == {NINE: "first"}
    publish.publish(place.tables, {TEN: staged})
    assert place.shown(ROWS) == {NINE: "first", TEN: "second"}


def test_rollback_restores_the_run_before_in_every_table(place: Place) -> None:
    place.publish("first", NINE, TEN)
    place.publish("second", NINE, TEN)
    outcome = place.rollback(NINE)
    assert outcome.changed == each_table([NINE])
    assert place.held(NINE) == everywhere("first")
    assert place.held(TEN) == everywhere("second")
    assert place.entry(NINE).taken_back == "second"


def test_rollback_of_the_first_publication_leaves_nothing(place: Place) -> None:
    place.publish("first", NINE, TEN)
    place.rollback(NINE)
    assert place.held(NINE) == everywhere(None)
    assert place.held(TEN) == everywhere("first")


def test_a_rollback_that_is_repeated_goes_back_once(folder: Place) -> None:
    for run in ("first", "second", "third"):
        folder.publish(run)
    folder.rollback()
    versions = folder.versions()
    again = folder.rollback()
    assert again.changed == each_table([])
    assert folder.versions() == versions
    assert folder.rollback(run="third").changed[ROWS] == [], "nor does it when it names the run that it took back"
    assert folder.held() == everywhere("second")


def test_rollback_goes_further_back_when_it_names_the_run_that_is_held(folder: Place) -> None:
    for run in ("first", "second", "third"):
        folder.publish(run)
    for run, before in (("third", "second"), ("second", "first"), ("first", None)):
        folder.rollback(run=run)
        assert folder.held() == everywhere(before)


@pytest.mark.parametrize(
    ("start", "run", "reason"),
    [
        (NINE, "second", f"slice {NINE} holds run first, not second"),
        (ELEVEN, None, f"nothing is published for slice {ELEVEN}"),
    ],
)
def test_rollback_of_what_a_slice_does_not_hold_is_refused_and_changes_nothing(
    folder: Place, start: str, run: str | None, reason: str
) -> None:
    folder.publish("first", NINE, TEN)
    folder.publish("second", TEN)
    versions = folder.versions()
    with pytest.raises(RunError, match=reason):
        folder.rollback(TEN, start, run=run)
    assert folder.versions() == versions


def test_a_rollback_after_a_publication_takes_that_publication_back(folder: Place) -> None:
    folder.publish("first")
    folder.publish("second")
    folder.rollback()
    folder.publish("third")
    folder.rollback()
    assert folder.held() == everywhere("first")


def test_what_was_rolled_back_can_be_published_again(folder: Place) -> None:
    folder.publish("first")
    folder.publish("second")
    folder.rollback()
    assert folder.publish("first").changed[ROWS] == []
    assert folder.publish("second").changed[ROWS] == [NINE]
    folder.rollback()
    assert folder.held() == everywhere("first")


@pytest.mark.parametrize("name", [ROWS, QUARANTINE])
def test_rollback_to_a_file_that_was_removed_is_refused_and_changes_nothing(place: Place, name: str) -> None:
    first = place.publication("first")
    publish.publish(place.tables, {NINE: first})
    place.publish("second")
    versions = place.versions()
    file = first.files[name]
    assert file is not None
    remove(place.table_url(name), file.path)
    with pytest.raises(RunError, match=rf"slice {NINE} of .* has lost a file, .*: backfill the slice again"):
        place.rollback()
    assert place.versions() == versions


def test_a_slice_remembers_ten_earlier_publications(folder: Place) -> None:
    for number in range(13):
        folder.publish(f"run {number:02}")
    for number in range(12, 2, -1):
        folder.rollback(run=f"run {number:02}")
        assert folder.held() == everywhere(f"run {number - 1:02}")
    folder.rollback(run="run 02")
    assert folder.held() == everywhere(None), "what lies further back is not known any more"


def test_another_file_of_the_same_input_replaces_the_first(folder: Place) -> None:
    folder.publish("first")
    second = folder.publication("second")
    publish.publish(folder.tables, {NINE: second})
    republished = replace(second, files={**second.files, ROWS: folder.publication("other").files[ROWS]})
    assert publish.publish(folder.tables, {NINE: republished}).changed[ROWS] == [NINE]
    folder.rollback()
    assert folder.held() == everywhere("first")


def test_another_verdict_on_the_same_rows_is_noted_and_changes_no_row(folder: Place) -> None:
    folder.publish("run")
    outcome = folder.publish("run", quality="passed with warnings")
    assert outcome.changed == each_table([])
    slices = OpenTable(folder.tables.publications).slices()
    assert slices[NINE]["quality"] == "passed with warnings"


def test_the_snapshot_of_the_publications_shows_each_slice(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    for number in range(11):
        folder.publish(f"run {number}")
    folder.rollback(TEN)
    slices = OpenTable(folder.tables.publications).slices()
    shown = {"quality": "passed", "published": "2024-03-01T12:00:00Z", "input_events": 7, "late_events": 2}
    assert {name: value for name, value in slices[NINE].items() if name in ("run", "rows", "taken_back", *shown)} == {
        **shown,
        "run": "run 10",
        "rows": 1,
        "taken_back": None,
    }
    assert {slices[TEN][name] for name in ("run", *shown)} == {None}
    assert slices[TEN]["taken_back"] == "first"


def test_a_commit_records_its_slices_runs_and_digests(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    for url in (folder.table_url(ROWS), folder.tables.publications.url):
        assert metadata_of(url, 1) == [
            {
                "slices": [NINE, TEN],
                "runs": ["first"],
                "manifests": ["manifest digest"],
                "definitions": ["query digest"],
            }
        ]


def commits(monkeypatch: pytest.MonkeyPatch, at: int, then: Callable[[Callable[[], bool]], bool]) -> None:
    """Replace commit number `at`, counted from 0, by `then`, which gets the real commit."""
    count = iter(range(1000))
    commit = OpenTable.commit

    def counted(table: OpenTable, *arguments: Any) -> bool:
        real = partial(commit, table, *arguments)
        return then(real) if next(count) == at else real()

    monkeypatch.setattr(OpenTable, "commit", counted)


def refused(commit: Callable[[], bool]) -> bool:
    raise RunError("the storage refused")


def interrupted_before(commit: Callable[[], bool]) -> bool:
    raise KeyboardInterrupt


def interrupted_after(commit: Callable[[], bool]) -> bool:
    commit()
    raise KeyboardInterrupt


def unacknowledged(commit: Callable[[], bool]) -> bool:
    commit()
    raise RunError("the connection was reset")


def taken_for_lost(commit: Callable[[], bool]) -> bool:
    """Commit and say that it failed, as a repeated request does after its acknowledgement was lost."""
    commit()
    return False


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("fault", [refused, unacknowledged, taken_for_lost])
def test_one_fault_at_a_commit_is_survived(
    folder: Place, monkeypatch: pytest.MonkeyPatch, at: int, fault: Callable[[Callable[[], bool]], bool]
) -> None:
    folder.publish("first")
    commits(monkeypatch, at, fault)
    assert folder.publish("second").changed == each_table([NINE])
    assert folder.held() == everywhere("second")
    assert set(folder.versions().values()) == {2}, "and nothing was committed twice"


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("interruption", [interrupted_before, interrupted_after])
@pytest.mark.parametrize("what", ["publication", "rollback"])
def test_an_interruption_says_how_far_it_got_and_the_next_call_finishes_it_and_goes_no_further(
    folder: Place,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    interruption: Callable[[Callable[[], bool]], bool],
    what: str,
) -> None:
    def call() -> publish.Outcome:
        return folder.publish("third") if what == "publication" else folder.rollback()

    folder.publish("first")
    folder.publish("second")
    commits(monkeypatch, at, interruption)
    with pytest.raises((InterruptedRunError, KeyboardInterrupt)) as raised:
        call()
    monkeypatch.undo()
    committed = at + (interruption is interrupted_after)
    after = "third" if what == "publication" else "first"
    order = ("publications", ROWS, METRICS, QUARANTINE)
    held = folder.held()
    assert [held[name] for name in order] == [after] * committed + ["second"] * (4 - committed)
    if not committed:
        assert type(raised.value) is KeyboardInterrupt, "nothing has changed"
    elif committed < 4:
        lacking = ", ".join(folder.table_url(name) for name in order[committed:])
        assert f" is unfinished: {lacking} not updated yet; run the same command again" in str(raised.value)
    else:
        assert " is complete in every table" in str(raised.value)
    assert call().repaired == ([NINE] if 0 < committed < 4 else [])
    assert folder.held() == everywhere(after)


@pytest.mark.parametrize("at", range(4))
def test_a_storage_that_refuses_a_commit_for_good_is_one_line_that_says_what_is_published(
    folder: Place, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    folder.publish("first")
    table = [folder.tables.publications, *folder.tables.others.values()][at]
    commit = OpenTable.commit

    def refuse(opened: OpenTable, *arguments: Any) -> bool:
        if opened.table == table:
            raise RunError("the storage refused")
        return commit(opened, *arguments)

    monkeypatch.setattr(OpenTable, "commit", refuse)
    with pytest.raises(RunError) as raised:
        folder.publish("second")
    assert raised.value.exit_code == (1 if at == 0 else 3)
    assert isinstance(raised.value, UnfinishedError) == (at > 0)
    assert ("the publication of run second is unfinished" in str(raised.value)) == (at > 0)
    assert "\n" not in str(raised.value)
    assert folder.entry().run == ("first" if at == 0 else "second")
    monkeypatch.undo()
    folder.publish("second")
    assert folder.held() == everywhere("second")


def test_a_storage_that_stops_answering_is_not_reported_as_empty(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.publish("first")

    def unreachable(*arguments: Any) -> Any:
        raise RunError("cannot be reached")

    def reset(commit: Callable[[], bool]) -> bool:
        commit()
        monkeypatch.setattr(OpenTable, "refresh", unreachable)
        monkeypatch.setattr(OpenTable, "_open", unreachable)
        raise RunError("the connection was reset")

    commits(monkeypatch, 0, reset)
    with pytest.raises(UnfinishedError, match="cannot tell how far the publication of run second got"):
        folder.publish("second")


def test_publishers_of_different_slices_all_succeed(place: Place) -> None:
    hours = [f"2024-03-01T{hour:02}:00:00Z" for hour in range(3)]
    for run in ("first", "second"):
        outcomes = together(*(partial(place.publish, run, hour) for hour in hours))
        assert [outcome.changed[ROWS] for outcome in outcomes] == [[hour] for hour in hours]
        assert all(place.held(hour) == everywhere(run) for hour in hours)


def test_several_publishers_of_the_same_run_make_one_version(place: Place) -> None:
    outcomes = together(*[partial(place.publish, "run", NINE, TEN)] * 3)
    assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes), outcomes
    assert set(place.versions().values()) == {1}
    assert place.held(NINE) == place.held(TEN) == everywhere("run")


def test_one_of_several_publishers_holds_the_same_slices_in_every_table(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    for attempt in range(3):
        runs = [f"{name} {attempt}" for name in ("ours", "theirs")]
        outcomes = together(*(partial(folder.publish, run, NINE, TEN) for run in runs), folder.rollback)
        assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes), outcomes
        assert folder.held(NINE) == everywhere(folder.entry(NINE).run)
        assert folder.held(TEN) == everywhere(folder.entry(TEN).run)


def test_a_publisher_that_was_overtaken_names_the_run_that_the_slices_hold(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.publish("first")

    def overtaken(commit: Callable[[], bool]) -> bool:
        monkeypatch.undo()
        folder.publish("faster")
        return commit()

    commits(monkeypatch, 1, overtaken)
    assert folder.publish("slower").superseded == {NINE: "faster"}
    assert folder.held() == everywhere("faster")


def test_a_writer_that_never_stops_is_reported_in_one_line(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenTable, "commit", lambda *arguments: False)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(RunError, match=r"other writers kept committing to .*/publications: run the same command again"):
        folder.publish("run")


def test_a_place_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    place = Place((tmp_path / "file" / "tables").as_uri())
    file = File("slice_start=x/y.parquet", 1, 1)
    publication = replace(Place(tmp_path.as_uri()).publication("run"), files={ROWS: file})
    with pytest.raises(RunError) as raised:
        publish.publish(place.tables, {NINE: publication})
    assert "\n" not in str(raised.value)
    assert "file/tables" in str(raised.value)


def test_a_publication_whose_file_is_missing_is_named(folder: Place) -> None:
    folder.publish("run")
    (file,) = OpenTable(folder.tables.publications).held([NINE])[NINE]
    remove(folder.tables.publications.url, file.path)
    with pytest.raises(RunError, match=rf"/publications has lost the file .*, the entry of slice {NINE}: restore the"):
        folder.publish("other")


def test_a_table_keeps_a_checkpoint_every_five_commits(folder: Place, tmp_path: Path) -> None:
    for number in range(12):
        folder.publish(f"run {number}")
    log = tmp_path / "rows" / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] >= 9
    assert delta_table.PROPERTIES == {"delta.checkpointInterval": "5"}


def test_an_entry_forgets_only_the_oldest_publications(folder: Place) -> None:
    entry = Entry(None)
    for number in range(13):
        entry = entry.after_publishing(folder.publication(f"run {number:02}"))
    assert [publication.run for publication in entry.earlier] == [f"run {number:02}" for number in range(11, 1, -1)]
