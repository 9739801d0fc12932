"""The state of each slice of a pipeline."""

from dataclasses import dataclass

from recapture.run.slice_state import Standing, State
from recapture.table.publications import NOTHING_SHOWN, ShownEntry
from recapture.time_model import ticks
from recapture.tools.coverage.activity import Activity, DagRun, RunState, newest_runs

NO_ACTIVITY = Activity()
MOST_UNPUBLISHED = 20_000
"""Number of slices before now of which DAG runs and updates say something: two years of hours.

A run may name the year 206 by mistake. Older slices are shown if something was published or stopped for them.
"""
UNNAMED = ""
"""Stands for the `slice_start` of slices that the standing does not have: to format each would take half the time."""
CURABLE = (State.BLOCKED, State.FAILED, State.PROVISIONAL, State.STALE, State.OUTDATED, State.UNCHECKED, State.MISSING)
"""States that a run may end. While one is active, its state is shown instead."""


@dataclass(frozen=True)
class SliceState:
    """State of one slice, and what it holds."""

    start: int
    """Start of the slice, in ticks."""
    end: int
    state: State
    entry: ShownEntry
    """What the publications say of the slice."""
    blocked_run: str | None = None
    """Last run, if its audit stopped it and nothing was published or staged since; otherwise None."""
    dag_run: DagRun | None = None
    """Newest DAG run that covers the slice; None if there is none."""
    differing: tuple[str, ...] = ()
    """Parts of the definition that differ from the pipeline's present one, as in `run.outdated.PARTS`."""
    error: str | None = None
    """Error of the last run of an update, if nothing was published since."""
    staged_run: str | None = None
    """Run that was staged after the audit of another one had blocked the slice, and waits for a person."""

    @property
    def run(self) -> str | None:
        """Run that the slice holds; None if it holds none."""
        return self.entry.run


def slice_states(
    standing: Standing,
    last_end: int,
    length: int,
    incomplete_from: int | None,
    activity: Activity = NO_ACTIVITY,
    until: int | None = None,
) -> list[SliceState]:
    """Return the state of every slice from the first of which something is known to the last that has ended.

    Something is known of a slice that was ever published, blocked or failed, that an active or failed DAG run covers,
    or that updates keep. `last_end` is the end of the last slice that has ended, `length` that of a slice, and
    `incomplete_from` the start of the first slice that Capture may not have written; all in ticks. Updates keep slices
    `until` a time, None for all: of later slices, only those up to the last one of which something is known are there.
    """
    starts = shown_starts(standing, last_end, length, activity, until)
    if not starts:
        return []
    newest = newest_runs(activity.runs, starts.start, last_end, length)
    kept_since = _kept_since(standing, activity)
    names = {_instant(text): text for text in {*_starts(standing), *standing.staged, *standing.outdated}}
    states = []
    for start in starts:
        slice_start = names.get(start, UNNAMED)
        entry, dag_run = standing.entries.get(slice_start, NOTHING_SHOWN), newest.get(start)
        is_complete = incomplete_from is None or start < incomplete_from
        held = _held(standing.state(slice_start), entry, dag_run, is_complete)
        is_kept = kept_since is not None and start >= kept_since and (until is None or start < until)
        is_kept = is_kept and entry.taken_back is None
        state = _state(held, dag_run, is_kept, activity.is_paused)
        staged_run, differing = standing.staged.get(slice_start), standing.outdated.get(slice_start, ())
        blocked_run = None if staged_run else standing.blocked.get(slice_start)
        failure = standing.failures.get(slice_start)
        error = None if failure is None else failure.error
        states.append(
            SliceState(start, start + length, state, entry, blocked_run, dag_run, differing, error, staged_run)
        )
    return states


def shown_starts(
    standing: Standing, last_end: int, length: int, activity: Activity = NO_ACTIVITY, until: int | None = None
) -> range:
    """Return the starts of the slices that `slice_states` returns, in ticks."""
    first = _first(standing, activity, last_end - MOST_UNPUBLISHED * length)
    if first is None:
        return range(0)
    if until is not None:
        last_end = min(last_end, max(until, _last(standing, activity, length)))
    return range(first, last_end, length)


def _first(standing: Standing, activity: Activity, oldest: int) -> int | None:
    """Return the start of the first known slice, in ticks, or None; runs and updates count from `oldest` on."""
    known = [_instant(start) for start in _starts(standing)[:1]]
    known += [max(run.start, oldest) for run in activity.runs if run.state is not RunState.SUCCESS]
    known += [] if not activity.is_updated or activity.since is None else [max(activity.since, oldest)]
    return min(known, default=None)


def _last(standing: Standing, activity: Activity, length: int) -> int:
    """Return the end of the last slice for which a run was published, stopped or failed, in ticks; 0 if none was."""
    known = [_instant(start) + length for start in _starts(standing)[-1:]]
    known += [run.end for run in activity.runs if run.state is not RunState.SUCCESS]
    return max(known, default=0)


def _starts(standing: Standing) -> list[str]:
    return sorted((*standing.entries, *standing.blocked, *standing.failures))


def _kept_since(standing: Standing, activity: Activity) -> int | None:
    """Return the start of the first slice that updates keep, in ticks; None if they keep none yet."""
    if not activity.is_updated or activity.since is not None:
        return activity.since if activity.is_updated else None
    return min(map(_instant, standing.entries or standing.blocked), default=None)


def _instant(text: str) -> int:
    return ticks.from_datetime(ticks.parse_utc(text))


def _held(state: State | None, entry: ShownEntry, dag_run: DagRun | None, is_complete: bool) -> State:
    """Return the state that the last run left; `state` is that of what is published, None if nothing is."""
    if state in (State.BLOCKED, State.FAILED):
        return state
    if dag_run is not None and dag_run.state is RunState.FAILED:
        published = entry.published
        if published is None or _instant(published) < dag_run.began:
            return State.FAILED
    if state is not None:
        return state
    return State.MISSING if is_complete else State.INCOMPLETE


def _state(held: State, dag_run: DagRun | None, is_kept: bool, is_paused: bool) -> State:
    """Return what becomes of a slice that the last run left in the state `held`.

    `is_kept` says whether updates compute the slice if it is missing, and `is_paused` whether they are paused.
    """
    if dag_run is not None and dag_run.is_active:
        if dag_run.awaits_decision:
            return State.AWAITING
        if held in CURABLE:
            return State.RUNNING if dag_run.state is RunState.RUNNING else _turn(dag_run.is_paused)
    elif held is State.MISSING and is_kept:
        return _turn(is_paused)
    return held


def _turn(is_paused: bool) -> State:
    return State.PAUSED if is_paused else State.QUEUED
