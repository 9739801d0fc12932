"""What the chosen slices hold, and what can be done about them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from recapture.quality.audit import Audit
from recapture.run.outdated import in_words
from recapture.run.slice_state import State
from recapture.run_files.files import range_of_run
from recapture.time_model import ticks
from recapture.tools.coverage.activity import DagRun, RunState
from recapture.tools.coverage.marks import STEPS, URGENT_STATES, Access, Audits, links, step, why
from recapture.tools.coverage.ranges import Range, in_any_state, in_each_state, range_of
from recapture.tools.coverage.states import SliceState

SHOWN_RUNS = 20
"""Number of runs of the chosen slices that are listed."""
SHOWN_RANGES = 20
"""Number of ranges of chosen slices that are listed, if only slices in some states are chosen."""
MOST_APART = 400
"""Number of slices that a request may have if they are not next to each other."""
SHOWN_AUDITS = 3
"""Number of blocking or failed runs of the chosen slices of which the page says what failed."""
STOPPED = (State.AWAITING, State.BLOCKED)
"""States of slices whose last run was stopped by its audit."""


@dataclass(frozen=True)
class ChosenState:
    """A state in which chosen slices are."""

    state: State
    count: int
    why: str
    """Why they are in this state."""
    step: str
    """What to do next."""
    links: Sequence[tuple[str, str, bool]]
    """Where the next step leads, for a single slice: texts, addresses, and whether the address is one of Airflow."""
    href: str | None = None
    """Address that chooses only these of the chosen slices; None if all are in this state."""


def facts(pipeline: str, states: Iterable[SliceState], chosen: Range, access: Access, audits: Audits) -> dict[str, Any]:
    """Return what the chosen slices hold."""
    inside = [state for state in states if chosen.contains(state)]
    only = inside[0] if len(inside) == 1 else None
    dag_runs = {state.dag_run.id: state.dag_run for state in inside if state.dag_run}
    unfinished = [run for run in dag_runs.values() if run.state is not RunState.SUCCESS]
    by_state, parts = in_each_state(inside), _contiguous(inside)
    runs: dict[str, str] = {}
    for state in inside:
        if state.blocked_run:
            runs.setdefault(state.blocked_run, "stopped by its audit")
        if state.staged_run:
            runs.setdefault(state.staged_run, "staged, waits for a person")
        if state.run:
            runs.setdefault(state.run, f"published, {state.entry.quality}")
    return {
        "states": [
            _chosen_state(state, count, only, inside, by_state[state], pipeline, access)
            for state, count in counts_of(inside)
        ],
        "attention": _attention(inside, by_state),
        "ranges": parts[:SHOWN_RANGES] if chosen.only else [],
        "more_ranges": max(len(parts) - SHOWN_RANGES, 0),
        "apart": [ticks.to_text(state.start) for state in inside] if len(parts) > 1 else [],
        "runs": list(runs.items())[:SHOWN_RUNS],
        "more_runs": max(len(runs) - SHOWN_RUNS, 0),
        "only": only,
        "differing": in_words([] if only is None or only.state is State.OUTDATED else [only.differing]),
        "blocks": [_block(run, inside, access, audits) for run in blocking_runs(inside, chosen)],
        "errors": _errors(inside),
        "work": [_work(run, access) for run in unfinished[-SHOWN_RUNS:]],
        "unpublished": sum(state.run is None for state in inside),
    }


def counts_of(states: Iterable[SliceState]) -> list[tuple[State, int]]:
    """Return the number of slices in each state that any is in, the most urgent first."""
    counts = Counter(state.state for state in states)
    return [(state, counts[state]) for state in State if counts[state]]


def blocking_runs(states: Iterable[SliceState], chosen: Range | None) -> list[str]:
    """Return the runs that block the chosen slices, of which the page says what failed; the newest slices' first."""
    inside = [] if chosen is None else [state for state in states if chosen.contains(state)]
    shown = [state.blocked_run for state in reversed(inside) if state.state in STOPPED]
    return list(dict.fromkeys(filter(None, shown)))[:SHOWN_AUDITS]


def failures(audit: Audit) -> list[str]:
    """Return the sentences of the expectations that stopped a run."""
    return [result.sentence for result in audit.results if not result.success and result.severity == "critical"]


def _chosen_state(
    state: State,
    count: int,
    only: SliceState | None,
    inside: Sequence[SliceState],
    range_: Range,
    pipeline: str,
    access: Access,
) -> ChosenState:
    if only is not None:
        return ChosenState(state, 1, why(only, {}), step(only), links(only, pipeline, access))
    differing = in_words(slice_.differing for slice_ in inside if slice_.state is State.OUTDATED)
    because = f"{state.meaning} What differs: {differing}." if state is State.OUTDATED else state.meaning
    href = None if count == len(inside) else range_.href
    return ChosenState(state, count, because, STEPS[state], [], href)


def _attention(inside: Sequence[SliceState], by_state: Mapping[State, Range]) -> tuple[int, str] | None:
    """Return the number of chosen slices that need attention, and the address that chooses only these.

    Return None if none or all of them do, or if these are in one state. `by_state` has the chosen slices in each state.
    """
    number = sum(state.state in URGENT_STATES for state in inside)
    urgent = in_any_state(by_state, URGENT_STATES)
    return (number, urgent.href) if urgent and len(urgent.only) > 1 and number < len(inside) else None


def _contiguous(inside: Sequence[SliceState]) -> list[Range]:
    """Return the ranges of chosen slices that are next to each other."""
    ranges: list[Range] = []
    for state in inside:
        if ranges and ranges[-1].end == state.start:
            ranges[-1] = Range(ranges[-1].start, state.end)
        else:
            ranges.append(range_of(state))
    return ranges


def _block(run: str, inside: Sequence[SliceState], access: Access, audits: Audits) -> dict[str, Any]:
    """Return why a run was stopped by its audit, and who decides about it."""
    dag_runs = [state.dag_run for state in inside if state.blocked_run == run]
    asking = next((dag_run for dag_run in dag_runs if dag_run and dag_run.awaits_decision), None)
    if asking is not None:
        decision = "A person is asked whether to publish the run."
    elif _is_divided(run, inside):
        decision = "The next updates compute its slices in shorter runs, to find those at fault."
    elif access.asks_for_approval:
        decision = "Nobody approved the run. Backfill its slices to be asked again."
    else:
        decision = (
            "The pipeline asks nobody whether to publish such a run. To let a person decide, add `approval: {}` to the "
            "pipeline file and backfill the slices."
        )
    return {"run": run, "failures": audits.get(run, ()), "decision": decision}


def _is_divided(run: str, inside: Sequence[SliceState]) -> bool:
    """Return whether a run was that of an update, and has several slices."""
    range_ = range_of_run(run)
    return range_ is not None and any(
        state.blocked_run == run
        and state.dag_run is not None
        and state.dag_run.dag_id.endswith(".update")
        and range_[1] - range_[0] > state.end - state.start
        for state in inside
    )


def _errors(inside: Sequence[SliceState]) -> list[str]:
    """Return the errors of the updates that failed at the chosen slices, those of the newest slices first."""
    errors = [state.error for state in reversed(inside) if state.state is State.FAILED and state.error]
    return list(dict.fromkeys(errors))[:SHOWN_AUDITS]


def _work(run: DagRun, access: Access) -> dict[str, Any]:
    """Return a DAG run that has not succeeded, with links to its question and to the logs of its failed tasks."""
    address = access.dag_run(run)
    tasks = [(task, f"{address}/tasks/{quote(task)}") for task in run.failed_tasks]
    question = access.question(run) if run.awaits_decision else None
    return {"id": run.id, "state": run.state, "href": address, "failed_tasks": tasks, "question": question}
