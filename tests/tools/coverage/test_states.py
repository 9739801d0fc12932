"""The states of slices, from publications, blocked runs, changed blobs and the progress of Capture."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recapture.run.slice_state import Standing, State, blocked_slices
from recapture.run_files.changes import Changes
from recapture.run_files.marks import Mark, Unpublished
from recapture.run_files.work import Failure, Work
from recapture.table.publications import ShownEntry
from recapture.time_model import ticks
from recapture.tools.coverage.activity import Activity, DagRun, RunState
from recapture.tools.coverage.states import slice_states

HOUR = ticks.from_seconds(3600)
NINE, TEN, ELEVEN, TWELVE = (f"2024-03-01T{hour:02}:00:00Z" for hour in range(9, 13))
PUBLISHED = datetime(2024, 3, 1, 15, tzinfo=UTC)
SIX_PM = datetime(2024, 3, 1, 18, tzinfo=UTC)


def at(text: str) -> int:
    return ticks.from_datetime(ticks.parse_utc(text))


def entry(run: str | None = "first", quality: str | None = "passed", taken_back: str | None = None) -> ShownEntry:
    published = None if run is None else ticks.whole_seconds(PUBLISHED)
    return ShownEntry(run, quality, published, taken_back=taken_back)


def states(
    entries: dict[str, ShownEntry], *, end: str = TWELVE, incomplete_from: str | None = None, **kinds: Any
) -> list[str]:
    """Return the hour and the state of each slice."""
    changes = Changes(kinds.get("changed", {}))
    found = slice_states(
        Standing(entries, kinds.get("blocked", {}), changes, kinds.get("outdated", {}), kinds.get("work", Work())),
        at(end),
        HOUR,
        None if incomplete_from is None else at(incomplete_from),
        kinds.get("activity", Activity()),
        None if (until := kinds.get("until")) is None else at(until),
    )
    return [f"{ticks.to_text(state.start)[11:13]} {state.state}" for state in found]


def blocked(
    entries: dict[str, ShownEntry],
    *blocks: Mark,
    held: Mapping[str, str | None] | None = None,
    incomplete: tuple[str, ...] | None = None,
) -> dict[str, str]:
    unpublished = Unpublished("", {}, {}, held, incomplete)
    return blocked_slices(entries, blocks, HOUR, lambda run: unpublished)


def block(run: str, start: str, end: str, when: datetime = SIX_PM) -> Mark:
    return Mark(run, at(start), at(end), when)


def test_a_slice_that_an_update_failed_at_is_shown_although_nothing_was_ever_published() -> None:
    start = at(TEN)
    failure = Failure(start, start + HOUR, (start,), start, start, "a blob is damaged", {}, {}, {})
    assert states({}, work=Work(failures=(failure,))) == ["10 failed", "11 missing"]


def test_nothing_is_known_before_the_first_publication() -> None:
    assert states({}) == []


@pytest.mark.parametrize(
    ("quality", "state"),
    [
        ("passed", State.PUBLISHED),
        ("passed with warnings", State.WARNINGS),
        ("approved", State.APPROVED),
    ],
)
def test_a_published_slice_has_the_verdict_of_its_audit(quality: str, state: State) -> None:
    assert states({ELEVEN: entry(quality=quality)}) == [f"11 {state}"]


def test_a_slice_between_the_first_publication_and_now_is_missing_if_nothing_is_published() -> None:
    assert states({NINE: entry(), TEN: entry(None, None, "first")}) == ["09 published", "10 missing", "11 missing"]


def test_a_slice_is_not_missing_before_capture_is_complete() -> None:
    assert states({NINE: entry()}, incomplete_from=ELEVEN) == ["09 published", "10 missing", "11 capture incomplete"]


def test_a_slice_that_has_not_ended_has_no_state() -> None:
    assert states({NINE: entry(), ELEVEN: entry()}, end=TEN) == ["09 published"]


def test_after_the_end_of_the_archive_only_slices_up_to_the_last_known_one_have_a_state() -> None:
    assert states({NINE: entry()}, until=TEN) == ["09 published"]
    assert states({NINE: entry()}, until=ELEVEN, activity=active(since=NINE)) == ["09 published", "10 queued"]
    known = {NINE: entry(), ELEVEN: entry()}
    assert states(known, until=TEN, activity=active(since=NINE)) == ["09 published", "10 missing", "11 published"]


def test_a_slice_is_stale_as_long_as_it_holds_the_run_whose_blobs_changed() -> None:
    entries = {NINE: entry("first"), TEN: entry("second"), ELEVEN: entry(None, None)}
    changed = {NINE: "first", TEN: "first", ELEVEN: "first"}
    assert states(entries, changed=changed) == ["09 stale", "10 published", "11 missing"]


def test_a_blocked_slice_was_perhaps_never_published() -> None:
    assert states({TEN: entry()}, blocked={NINE: "second", TEN: "second"}, end=ELEVEN) == ["09 blocked", "10 blocked"]


def test_a_run_that_its_audit_stopped_blocks_all_its_slices_and_no_other() -> None:
    assert blocked({}, block("second", TEN, TWELVE)) == {TEN: "second", ELEVEN: "second"}


def test_a_later_publication_unblocks_a_slice_and_an_earlier_one_does_not() -> None:
    early = block("second", NINE, ELEVEN, datetime(2024, 3, 1, 14, tzinfo=UTC))
    late = block("third", NINE, TEN, SIX_PM)
    entries = {NINE: entry(), TEN: entry()}
    assert blocked(entries, early) == {}
    assert blocked(entries, early, late) == {NINE: "third"}


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_of_a_publication_and_a_stop_in_the_same_second_the_later_one_counts(seconds: int) -> None:
    stopped = block("second", NINE, TEN, PUBLISHED + timedelta(seconds=seconds))
    assert blocked({NINE: entry("first")}, stopped, held={NINE: "first"}) == {NINE: "second"}
    assert blocked({NINE: entry("third")}, stopped, held={NINE: "first"}) == {}
    assert blocked({NINE: entry("third")}, stopped, held={NINE: None}) == {}


def test_a_run_that_was_approved_or_rolled_back_does_not_block() -> None:
    entries = {NINE: entry("second", "approved"), TEN: entry(None, None, "second"), ELEVEN: entry()}
    assert blocked(entries, block("second", NINE, TWELVE)) == {ELEVEN: "second"}


def test_a_run_that_is_published_provisionally_blocks_once_its_audit_stopped_the_complete_slice() -> None:
    stopped, provisional = block("second", NINE, TEN), entry("second", "approved")._replace(provisional=1)
    assert blocked({NINE: provisional}, stopped, incomplete=()) == {NINE: "second"}
    assert blocked({NINE: provisional}, stopped, incomplete=(NINE,)) == {}
    assert blocked({NINE: provisional}, stopped, incomplete=None) == {}
    assert blocked({NINE: entry("second", "approved")}, stopped, incomplete=()) == {}


BEGAN = "2024-03-01T16:00:00Z"
"""Time at which the DAG runs begin: after the publications."""


def dag_run(state: RunState, start: str = TEN, end: str = ELEVEN, began: str = BEGAN, **more: Any) -> DagRun:
    return DagRun("telemetry", f"run {began}", state, at(start), at(end), at(began), **more)


def active(*runs: DagRun, since: str | None = NINE, **more: Any) -> Activity:
    return Activity(runs, since=None if since is None else at(since), **{"is_updated": True, **more})


def test_a_slice_is_running_or_queued_while_a_dag_run_of_it_is() -> None:
    runs = dag_run(RunState.RUNNING), dag_run(RunState.QUEUED, ELEVEN, TWELVE)
    activity = active(*runs, is_updated=False)
    assert states({NINE: entry()}, activity=activity) == ["09 published", "10 running", "11 queued"]


def test_running_slices_are_shown_before_anything_is_published() -> None:
    activity = active(dag_run(RunState.RUNNING), since=None)
    assert states({}, end=ELEVEN, activity=activity) == ["10 running"]


def test_a_slice_that_updates_keep_and_that_is_not_published_is_queued() -> None:
    assert states({}, activity=active(since=TEN)) == ["10 queued", "11 queued"]
    ended = active(dag_run(RunState.SUCCESS))
    assert states({NINE: entry()}, activity=ended) == ["09 published", "10 queued", "11 queued"]


def test_without_a_beginning_updates_keep_all_slices_from_the_first_published_one_on() -> None:
    assert states({NINE: entry(), ELEVEN: entry()}, activity=active(since=None))[1] == "10 queued"
    assert states({}, blocked={TEN: "second"}, activity=active(since=None)) == ["10 blocked", "11 queued"]
    assert states({}, activity=active(since=None)) == []


def test_a_slice_that_no_run_will_compute_is_missing() -> None:
    """It is before those that updates keep, a person rolled it back, or there are no updates."""
    assert states({NINE: entry()}, activity=active(since=ELEVEN)) == ["09 published", "10 missing", "11 queued"]
    rolled_back = {NINE: entry(), TEN: entry(None, None, "first")}
    assert states(rolled_back, end=ELEVEN, activity=active()) == ["09 published", "10 missing"]
    assert states({NINE: entry()}, end=ELEVEN, activity=active(is_updated=False)) == ["09 published", "10 missing"]


def test_while_a_dag_is_paused_no_slice_is_queued() -> None:
    activity = active(dag_run(RunState.QUEUED, is_paused=True))
    assert states({NINE: entry()}, activity=activity) == ["09 published", "10 paused", "11 queued"]
    activity = active(dag_run(RunState.QUEUED), is_paused=True)
    assert states({NINE: entry()}, activity=activity) == ["09 published", "10 queued", "11 paused"]
    running = active(dag_run(RunState.RUNNING, is_paused=True), since=None, is_paused=True)
    assert states({NINE: entry()}, end=ELEVEN, activity=running) == ["09 published", "10 running"]


def test_a_slice_that_capture_has_not_written_yet_is_not_queued() -> None:
    found = states({NINE: entry(), TEN: entry()}, incomplete_from=ELEVEN, activity=active())
    assert found == ["09 published", "10 published", "11 capture incomplete"]


def test_a_slice_has_failed_if_its_last_dag_run_did_and_nothing_was_published_since() -> None:
    failed = dag_run(RunState.FAILED, NINE, ELEVEN)
    assert states({}, end=ELEVEN, activity=active(failed)) == ["09 failed", "10 failed"]
    assert states({NINE: entry(), TEN: entry()}, end=ELEVEN, activity=active(failed)) == ["09 failed", "10 failed"]
    before = dag_run(RunState.FAILED, NINE, ELEVEN, "2024-03-01T14:00:00Z")
    assert states({NINE: entry(), TEN: entry()}, end=ELEVEN, activity=active(before)) == [
        "09 published",
        "10 published",
    ]
    repaired = active(failed, dag_run(RunState.SUCCESS, TEN, ELEVEN, "2024-03-01T17:00:00Z"))
    assert states({NINE: entry(), TEN: entry()}, end=ELEVEN, activity=repaired) == ["09 failed", "10 published"]


def test_a_blocked_slice_is_running_again_or_awaits_a_decision_or_stays_blocked() -> None:
    stopped = {TEN: "second"}
    for run, state in (
        (dag_run(RunState.FAILED), "blocked"),
        (dag_run(RunState.RUNNING), "running"),
        (dag_run(RunState.RUNNING, awaits_decision=True), "awaiting a decision"),
    ):
        assert states({TEN: entry()}, end=ELEVEN, blocked=stopped, activity=active(run, since=None)) == [f"10 {state}"]


def test_a_published_slice_keeps_its_state_while_it_is_computed_again() -> None:
    activity = active(dag_run(RunState.RUNNING))
    assert states({TEN: entry()}, end=ELEVEN, activity=activity)[-1] == "10 published"
    assert states({TEN: entry()}, end=ELEVEN, changed={TEN: "first"}, activity=activity)[-1] == "10 running"
