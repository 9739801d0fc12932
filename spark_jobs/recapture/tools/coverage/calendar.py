"""The coverage calendar as a page: the months of a year, a month of slices, the chosen slices, and the requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from types import MappingProxyType
from typing import Any

from recapture.process.wording import counted
from recapture.quality.metric_titles import titled
from recapture.quality.metrics import value_text
from recapture.run.outdated import in_words
from recapture.run.slice_state import State
from recapture.time_model import ticks
from recapture.tools.coverage.cells import day_rows, month_rows, neighbours
from recapture.tools.coverage.chosen import MOST_APART, STOPPED, blocking_runs, counts_of, facts
from recapture.tools.coverage.framed import render_framed
from recapture.tools.coverage.marks import FIRST_STATES, KINDS, SIGNS, STEPS, URGENT_STATES, Access, Audits
from recapture.tools.coverage.ranges import Range, day_of, in_any_state, in_each_state, month_address, range_of
from recapture.tools.coverage.reading import Coverage
from recapture.tools.coverage.shown_requests import shown_requests
from recapture.tools.coverage.states import SliceState

GLOSSARY = (
    *("slice", "complete", "Capture", "run", "manifest", "blob", "stale", "outdated", "provisional", "update"),
    *("request", "audit", "suite", "blocked", "approval", "rollback", "late", "watermark", "quarantined"),
)
"""Terms that the page explains."""
MOST_LISTED = 8
"""Number of pipelines up to which a calendar leads to each of them, and not only to their list."""
FIRST_SLICES = 3
"""Number of slices that are listed for each of the states to look at first."""
EXPLAINED_RUNS = 10
"""Number of runs that block slices of the shown month of which the page says why, the newest ones."""


@dataclass(frozen=True)
class Summary:
    """A pipeline in the list of pipelines."""

    name: str
    states: Sequence[SliceState] = ()
    problem: str | None = None
    """Why its slices cannot be read; None if they can."""


@dataclass(frozen=True)
class Shown:
    """What a visitor has chosen to see of a calendar."""

    month: date
    """First day of the month."""
    chosen: Range | None = None
    """Slices whose facts and actions are shown."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Metrics of the chosen slice, if it is only one."""
    damage: str | None = None
    """Why there are no metrics, if a file is damaged."""


def audited_runs(states: Sequence[SliceState], month: date, chosen: Range | None) -> list[str]:
    """Return the runs whose audits the page explains: those that block the chosen slices, or slices of the month."""
    inside = [state for state in states if state.state in STOPPED and day_of(state.start).replace(day=1) == month]
    newest = dict.fromkeys(state.blocked_run for state in reversed(inside) if state.blocked_run)
    return list(dict.fromkeys([*blocking_runs(states, chosen), *list(newest)[:EXPLAINED_RUNS]]))


def calendar_page(
    pipeline: str,
    pipelines: Sequence[str],
    coverage: Coverage,
    shown: Shown,
    length: int,
    access: Access,
    audits: Audits = MappingProxyType({}),
) -> bytes:
    """Return the page.

    `length` is that of a slice, in ticks. `audits` has what failed in the audits of runs, by run: see `audited_runs`.
    """
    states, month, chosen = coverage.slices, shown.month, shown.chosen
    days = _by_day(states)
    years = sorted({day.year for day in days} | {month.year})
    requests, more_requests = shown_requests(coverage.requests, None, length)
    return render_framed(
        "calendar.html",
        "calendar.js",
        pipeline=pipeline,
        pipelines=pipelines,
        access=access,
        head=head(states),
        attention=in_any_state(in_each_state(states), URGENT_STATES),
        counts=linked_counts(states),
        first=_first(states),
        states=[*reversed(State)],
        signs=SIGNS,
        kinds=KINDS,
        steps=STEPS,
        year=month.year,
        years=[(year, month_address(date(year, _month_in(year, month, days), 1), chosen)) for year in years],
        months=month_rows(month.year, days, chosen) if len({day.replace(day=1) for day in days}) > 1 else [],
        month=f"{month:%B %Y}",
        month_value=f"{month:%Y-%m}",
        neighbours=neighbours(month, days, chosen),
        hours=[f"{hour:02}" for hour in range(0, 24, length // ticks.from_seconds(3600))],
        rows=day_rows(month, days, chosen, length, audits),
        chosen=chosen,
        facts=None if chosen is None else facts(pipeline, states, chosen, access, audits),
        metrics=[(title, name, value_text(name, value)) for title, name, value in titled(shown.metrics)],
        newest=next((range_of(state) for state in reversed(states) if state.run), None),
        requests=requests,
        more_requests=more_requests,
        changes=coverage.changes,
        problems=coverage.problems,
        damage=shown.damage,
        most_apart=MOST_APART,
        most_listed=MOST_LISTED,
        glossary_terms=GLOSSARY,
    )


def pipelines_page(pipelines: Sequence[Summary], errors: Sequence[str], root: str) -> bytes:
    """Return the list of pipelines. `errors` are those of pipeline files, and `root` is the path of the pages."""
    return render_framed(
        "pipelines.html",
        "pipelines.js",
        pipelines=[
            {
                "name": pipeline.name,
                "problem": pipeline.problem,
                "head": head(pipeline.states),
                "counts": linked_counts(pipeline.states),
                "newest": next((range_of(state) for state in reversed(pipeline.states) if state.run), None),
            }
            for pipeline in sorted(pipelines, key=_urgency)
        ],
        errors=errors,
        root=root,
        signs=SIGNS,
        kinds=KINDS,
    )


def message_page(title: str, text: str, kind: str, links: Sequence[tuple[str, str]]) -> bytes:
    """Return a page with a message. `links` are texts and addresses of where to go on."""
    return render_framed("message.html", title=title, text=text, kind=kind, links=links)


def head(states: Sequence[SliceState]) -> tuple[str, str]:
    """Return how many slices are published and how many need attention, in a sentence, and its class."""
    if not states:
        return "No run has begun yet. When one does, its slices appear here.", ""
    published = sum(state.run is not None for state in states)
    urgent = [state for state in states if state.state in URGENT_STATES]
    sentence = f"{published:,} of {counted(len(states), 'slice')} {'is' if published == 1 else 'are'} published"
    if not urgent:
        old = "; ".join(f"{count:,} {state}" for state, count in counts_of(states) if KINDS[state] == "stale")
        return f"{sentence}, and none needs attention{old and f'; {old}'}.", "warning" if old else "good"
    is_bad = any(KINDS[state.state] == "bad" for state in urgent)
    needs = "needs" if len(urgent) == 1 else "need"
    return f"{sentence}, and {len(urgent):,} {needs} attention.", "bad" if is_bad else "warning"


def linked_counts(states: Sequence[SliceState]) -> list[tuple[State, int, str]]:
    """Return the number of slices in each state that any is in, with the address that chooses them."""
    by_state = in_each_state(states)
    return [(state, count, by_state[state].href) for state, count in counts_of(states)]


def _urgency(pipeline: Summary) -> tuple[int, str]:
    """Return the place of a pipeline in the list: those that need attention come first."""
    level = "bad" if pipeline.problem else head(pipeline.states)[1]
    return ("bad", "warning", "good", "").index(level), pipeline.name


def _first(states: Sequence[SliceState]) -> list[dict[str, Any]]:
    """Return each of FIRST_STATES that slices are in, with links to the newest of them and the number of the others."""
    first, by_state = [], in_each_state(states)
    for attention in filter(by_state.__contains__, FIRST_STATES):
        slices = [state for state in reversed(states) if state.state is attention]
        shown = slices[:FIRST_SLICES]
        first.append(
            {
                "state": attention,
                "slices": [range_of(state) for state in shown],
                "more": len(slices) - len(shown),
                "every": by_state[attention].href,
                "differing": in_words(state.differing for state in slices if attention is State.OUTDATED),
            }
        )
    return first


def _by_day(states: Sequence[SliceState]) -> dict[date, list[SliceState]]:
    """Return the slices of each day."""
    days = (list(slices) for _, slices in groupby(states, key=lambda state: state.start // ticks.TICKS_PER_DAY))
    return {day_of(slices[0].start): slices for slices in days}


def _month_in(year: int, month: date, days: Iterable[date]) -> int:
    """Return the month of a year to which the list of years leads: the same one, or the nearest that has slices."""
    known = [day.month for day in days if day.year == year] or [month.month]
    return min(known, key=lambda other: abs(other - month.month))
