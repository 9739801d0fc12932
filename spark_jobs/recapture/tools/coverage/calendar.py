"""The coverage calendar as a page: a year of days, a month of slices, and what the chosen slices hold."""

import base64
import hashlib
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import groupby
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from recapture.errors import DefinitionError
from recapture.pages.page import render
from recapture.quality.metrics import value_text
from recapture.run.outdated import in_words
from recapture.run.slice_state import State
from recapture.time_model import ticks
from recapture.tools.coverage.activity import DagRun, RunState
from recapture.tools.coverage.reading import Coverage
from recapture.tools.coverage.states import SliceState

_MARKS = {
    State.AWAITING: ("?", "bad"),
    State.BLOCKED: ("✕", "bad"),
    State.FAILED: ("⚠", "bad"),
    State.PROVISIONAL: ("◌", "stale"),
    State.STALE: ("↻", "stale"),
    State.OUTDATED: ("≠", "stale"),
    State.UNCHECKED: ("~", "stale"),
    State.MISSING: ("\N{EN DASH}", "missing"),
    State.PAUSED: ("‖", "missing"),
    State.WARNINGS: ("!", "warning"),
    State.RUNNING: ("▸", "waiting"),
    State.QUEUED: ("·", "waiting"),
    State.INCOMPLETE: ("…", "waiting"),
    State.APPROVED: ("✎", "approved"),
    State.PUBLISHED: ("✓", "good"),
}
"""Sign and class of each state, in the order in which a reader looks at them."""
SIGNS = {state: sign for state, (sign, _) in _MARKS.items()}
"""Sign of each state, so that colour is never the only one."""
KINDS = {state: kind for state, (_, kind) in _MARKS.items()}
"""Name of each state in the style sheet."""
SHOWN_RUNS = 20
"""Number of runs of the chosen slices that are listed."""
SHOWN_AUDITS = 3
"""Number of blocking or failed runs of the chosen slices of which the page says what failed."""
FIRST_STATES = tuple(state for state in _MARKS if state not in (State.APPROVED, State.PUBLISHED))
"""States that a reader looks at first, in this order."""
FIRST_SLICES = 3
"""Number of slices that are listed for each of these states."""
_YEARS = range(1970, 2970)
_SHOWN_CHARACTERS = 40
"""Number of characters of a wrong parameter that a message shows."""
_URGENCY = {state: number for number, state in enumerate(State)}


@dataclass(frozen=True)
class Range:
    """Range (start, end] of chosen slices, in ticks."""

    start: int
    end: int

    @property
    def from_(self) -> str:
        """Start in ISO 8601."""
        return ticks.to_text(self.start)

    @property
    def to(self) -> str:
        """End in ISO 8601."""
        return ticks.to_text(self.end)

    def contains(self, state: SliceState) -> bool:
        return self.start <= state.start and state.end <= self.end


@dataclass(frozen=True)
class Access:
    """What the user may start, and where Airflow is."""

    airflow: str
    """Path under which Airflow is served; empty for the root."""
    root: str
    """Path under which the pages are served."""
    why_disabled: Mapping[str, str | None]
    """Why the user cannot start backfill, rollback and check; None for one that the user can start."""
    asks_for_approval: bool = False
    """Whether the pipeline asks a person about runs that their audits stopped."""


@dataclass(frozen=True)
class Summary:
    """A pipeline in the list of pipelines."""

    name: str
    counts: Sequence[tuple[State, int]]
    """Number of slices in each state, the most urgent first."""
    problem: str | None = None
    """Why its slices cannot be read; None if they can."""


def chosen_range(from_: str | None, to: str | None, length: int) -> Range | None:
    """Return the range that the address of the page names; None if it names none.

    Raise DefinitionError if it is not a range of whole slices; `length` is that of a slice, in ticks.
    """
    if not from_ and not to:
        return None
    bounds = []
    for name, text in (("From", from_), ("To", to)):
        try:
            bound = ticks.from_datetime(ticks.parse_utc(text or ""))
        except ValueError:
            raise DefinitionError(
                f"{name} is {shown_parameter(text)}: write a time such as 2026-03-01T06:00:00Z"
            ) from None
        _require_year(name, text or "", ticks.to_datetime(bound).year)
        if bound % length:
            hours = length // ticks.from_seconds(3600)
            raise DefinitionError(f"{name} {text} is not on a slice border: slices last {hours} h, from midnight UTC")
        bounds.append(bound)
    if bounds[0] >= bounds[1]:
        raise DefinitionError(f"the range is empty: From {from_} is not before To {to}")
    return Range(*bounds)


def shown_month(month: str | None, chosen: Range | None, coverage: Coverage) -> date:
    """Return the first day of the month to show: the named one, that of the chosen slices, or the newest one."""
    if month:
        try:
            named = datetime.strptime(month, "%Y-%m").date()
        except ValueError:
            raise DefinitionError(f"the month is {shown_parameter(month)}: write one such as 2026-03") from None
        _require_year("the month", month, named.year)
        return named
    if chosen is not None:
        return _day(chosen.start).replace(day=1)
    held = [state for state in coverage.slices if state.run or state.blocked_run]
    return _day(held[-1].start if held else ticks.from_datetime(datetime.now(UTC))).replace(day=1)


def _require_year(name: str, text: str, year: int) -> None:
    """Raise DefinitionError if the calendar does not show the year."""
    if year not in _YEARS:
        raise DefinitionError(
            f"{name} is {shown_parameter(text)}: the calendar shows the years {_YEARS[0]} to {_YEARS[-1]}"
        )


def shown_parameter(text: str | None) -> str:
    """Return a wrong part of a page's address as a message shows it."""
    text = text or ""
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}…"


def calendar_page(
    pipeline: str,
    pipelines: Sequence[str],
    coverage: Coverage,
    month: date,
    chosen: Range | None,
    metrics: Mapping[str, float | None],
    length: int,
    access: Access,
    audits: Mapping[str, str] = MappingProxyType({}),
    damage: str | None = None,
) -> bytes:
    """Return the page.

    `metrics` are those of the chosen slice, if it is one. `length` is that of a slice, in ticks. `audits` has what the
    audits of runs said, by run: see `blocking_runs`. `damage` says why there are no metrics, if a file is damaged.
    """
    days = {day: list(slices) for day, slices in groupby(coverage.slices, key=lambda state: _day(state.start))}
    counts = Counter(state.state for state in coverage.slices)
    years = sorted({day.year for day in days} | {month.year})
    script = files("recapture.tools.coverage").joinpath("calendar.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "recapture.tools.coverage",
        "calendar.html",
        pipeline=pipeline,
        pipelines=pipelines,
        access=access,
        counts=[(state, counts[state]) for state in reversed(State)],
        first=_first(coverage.slices),
        signs=SIGNS,
        kinds=KINDS,
        year=month.year,
        years=[(year, _query(month=f"{year}-{month:%m}")) for year in years],
        months=[_month_row(month.year, number, days) for number in range(1, 13)],
        days_of_month=range(1, 32),
        month=f"{month:%B %Y}",
        month_value=f"{month:%Y-%m}",
        previous=_query(month=f"{month - timedelta(days=1):%Y-%m}"),
        following=_query(month=f"{month + timedelta(days=31):%Y-%m}"),
        hours=[f"{hour:02}" for hour in range(0, 24, length // ticks.from_seconds(3600))],
        rows=_day_rows(month, days, chosen, length),
        chosen=chosen,
        facts=None if chosen is None else _facts(pipeline, coverage.slices, chosen, metrics, access, audits),
        newest=next((_link(state) for state in reversed(coverage.slices) if state.run), None),
        changes=coverage.changes,
        problem=coverage.problem,
        damage=damage,
        script=script,
        script_hash=f"'sha256-{digest}'",
    )


def blocking_runs(states: Iterable[SliceState], chosen: Range | None) -> list[str]:
    """Return the runs that block the chosen slices, of which the page says what failed; the newest slices' first."""
    inside = [] if chosen is None else [state for state in states if chosen.contains(state)]
    shown = [state.blocked_run for state in reversed(inside) if state.state in (State.AWAITING, State.BLOCKED)]
    return list(dict.fromkeys(filter(None, shown)))[:SHOWN_AUDITS]


def summary(pipeline: str, states: Iterable[SliceState]) -> Summary:
    """Return the pipeline with the number of its slices in each state."""
    return Summary(pipeline, _counts(states))


def pipelines_page(pipelines: Sequence[Summary], errors: Sequence[str], root: str) -> bytes:
    """Return the list of pipelines. `errors` are those of pipeline files, and `root` is the path of the pages."""
    return render(
        "recapture.tools.coverage",
        "pipelines.html",
        pipelines=pipelines,
        errors=errors,
        root=root,
        signs=SIGNS,
        kinds=KINDS,
    )


def _first(states: Sequence[SliceState]) -> list[dict[str, Any]]:
    """Return each of FIRST_STATES that slices are in, with links to the newest of them and the number of the others."""
    first = []
    for attention in FIRST_STATES:
        slices = [state for state in reversed(states) if state.state is attention]
        if slices:
            links = [_link(state) for state in slices[:FIRST_SLICES]]
            differing = in_words(state.differing for state in slices) if attention is State.OUTDATED else ""
            more = len(slices) - len(links)
            first.append({"state": attention, "slices": links, "more": more, "differing": differing})
    return first


def _link(state: SliceState) -> tuple[str, str]:
    """Return the text and the address of a slice."""
    return _text(state), _choice(_day(state.start), Range(state.start, state.end))


def _text(state: SliceState) -> str:
    """Return the day and the hours of a slice."""
    start, end = ticks.to_datetime(state.start), ticks.to_datetime(state.end)
    return f"{start.day} {start:%B}, {start:%H:%M} to {end:%H:%M}"


def _day(instant: int) -> date:
    return ticks.to_datetime(instant).date()


def _month_row(year: int, number: int, days: Mapping[date, Sequence[SliceState]]) -> dict[str, Any]:
    first = date(year, number, 1)
    query = _query(month=f"{first:%Y-%m}")
    every = (date(year, number, day) for day in range(1, monthrange(year, number)[1] + 1))
    return {"name": f"{first:%b}", "href": query, "cells": [_day_cell(day, days.get(day, ()), query) for day in every]}


def _day_cell(day: date, states: Sequence[SliceState], query: str) -> dict[str, Any] | None:
    """Return the day with its most urgent state; None if nothing is known of it."""
    if not states:
        return None
    counts = Counter(state.state for state in states)
    urgent = sorted(counts, key=_URGENCY.__getitem__)
    listed = ", ".join(f"{counts[state]} {state}" for state in urgent)
    return _cell(urgent[0], f"{day.day} {day:%B}: {listed}", f"{query}#d{day}")


def _cell(state: State, label: str, href: str) -> dict[str, Any]:
    """Return a day or a slice in a table. `label` is what a screen reader says."""
    return {"label": label, "href": href, "kind": KINDS[state], "text": SIGNS[state]}


def _day_rows(
    month: date, days: Mapping[date, Sequence[SliceState]], chosen: Range | None, length: int
) -> list[dict[str, Any]]:
    rows = []
    last = max(days, default=month)
    for number in range(1, monthrange(month.year, month.month)[1] + 1):
        day = month.replace(day=number)
        if day > last:
            break
        midnight = ticks.from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))
        by_start = {state.start: state for state in days.get(day, ())}
        bounds = Range(midnight, midnight + ticks.from_seconds(86_400))
        starts = range(bounds.start, bounds.end, length)
        cells = [_slice_cell(by_start[start], month, chosen) if start in by_start else None for start in starts]
        rows.append({"name": f"{day:%a %d}", "href": _choice(month, bounds), "cells": cells})
    return rows


def _slice_cell(state: SliceState, month: date, chosen: Range | None) -> dict[str, Any]:
    bounds = Range(state.start, state.end)
    return {
        **_cell(state.state, f"{_text(state)}: {state.state}", _choice(month, bounds)),
        "chosen": chosen is not None and chosen.contains(state),
        "start": bounds.from_,
        "end": bounds.to,
    }


def _choice(month: date, bounds: Range) -> str:
    return f"{_query(month=f'{month:%Y-%m}', **{'from': bounds.from_, 'to': bounds.to})}#chosen"


def _query(**parameters: str) -> str:
    return f"?{urlencode(parameters)}"


def _facts(
    pipeline: str,
    states: Iterable[SliceState],
    chosen: Range,
    metrics: Mapping[str, float | None],
    access: Access,
    audits: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the chosen slices hold."""
    inside = [state for state in states if chosen.contains(state)]
    dag_runs = {state.dag_run.id: state.dag_run for state in inside if state.dag_run}
    unfinished = [run for run in dag_runs.values() if run.state is not RunState.SUCCESS]
    runs: dict[str, str] = {}
    for state in inside:
        if state.blocked_run:
            runs.setdefault(state.blocked_run, "stopped by its audit")
        if state.run:
            runs.setdefault(state.run, f"published, {state.entry.quality}")
    return {
        "counts": _counts(inside),
        "runs": list(runs.items())[:SHOWN_RUNS],
        "more_runs": max(len(runs) - SHOWN_RUNS, 0),
        "only": inside[0] if len(inside) == 1 else None,
        "differing": in_words(state.differing for state in inside if len(inside) == 1 or state.state is State.OUTDATED),
        "metrics": {name: value_text(name, value) for name, value in metrics.items() if value},
        "blocks": [_block(run, inside, access, audits) for run in blocking_runs(inside, chosen)],
        "errors": _errors(inside),
        "work": [_work(run, access) for run in unfinished[-SHOWN_RUNS:]],
        "unpublished": sum(state.run is None for state in inside),
    }


def _counts(states: Iterable[SliceState]) -> list[tuple[State, int]]:
    """Return the number of slices in each state that any is in, the most urgent first."""
    counts = Counter(state.state for state in states)
    return [(state, counts[state]) for state in State if counts[state]]


def _block(run: str, inside: Sequence[SliceState], access: Access, audits: Mapping[str, str]) -> dict[str, Any]:
    """Return why a run was stopped by its audit, and who decides about it."""
    dag_runs = [state.dag_run for state in inside if state.blocked_run == run]
    asking = next((dag_run for dag_run in dag_runs if dag_run and dag_run.awaits_decision), None)
    if asking is not None:
        decision = "A person is asked whether to publish the run."
    elif access.asks_for_approval:
        decision = "Nobody approved the run. Backfill its slices to be asked again."
    else:
        decision = (
            "The pipeline asks nobody whether to publish such a run. To let a person decide, add `approval: {}` to the "
            "pipeline file and backfill the slices."
        )
    failures = [" ".join(line.split()) for line in audits.get(run, "").splitlines() if line.startswith("FAILED")]
    actions = None if asking is None else f"{_address(asking, access)}/tasks/approval/required_actions"
    return {"run": run, "failures": failures, "decision": decision, "required_actions": actions}


def _errors(inside: Sequence[SliceState]) -> list[str]:
    """Return the errors of the updates that failed at the chosen slices, those of the newest slices first."""
    errors = [state.error for state in reversed(inside) if state.state is State.FAILED and state.error]
    return list(dict.fromkeys(errors))[:SHOWN_AUDITS]


def _work(run: DagRun, access: Access) -> dict[str, Any]:
    """Return a DAG run that has not succeeded, with links to its question and to the logs of its failed tasks."""
    address = _address(run, access)
    tasks = [(task, f"{address}/tasks/{quote(task)}") for task in run.failed_tasks]
    question = f"{address}/tasks/approval/required_actions" if run.awaits_decision else None
    return {"id": run.id, "state": run.state, "href": address, "failed_tasks": tasks, "question": question}


def _address(run: DagRun, access: Access) -> str:
    """Return the address of a DAG run in Airflow."""
    return f"{access.airflow}/dags/{quote(run.dag_id, safe='')}/runs/{quote(run.id, safe='')}"
