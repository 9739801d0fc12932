"""The page of a row and the events that made it, rendered from its summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recapture.pages.page import render
from recapture.process.wording import counted
from recapture.tools.events.roles import HEADINGS, rest

MAX_EVENTS = 50
"""Largest number of events of a role that are shown; JSON has more of them."""
GLOSSARY = (
    *("application time", "arrival time", "System.Timestamp", "late", "out of order", "early", "watermark"),
    *("verdict (of an event)", "slice", "manifest", "partition", "sequence number"),
)
"""Terms that the page explains."""
MEANINGS = {
    "deciding": "Without one of them, the row would be another, unless another event has the same value.",
    "timing": "They are not in the row, but a bound of its window depends on them.",
    "considered": "The query read them for the row, but other events decide the values that the row shows.",
}
"""What the events of each role have to do with the row."""


@dataclass(frozen=True)
class Form:
    """A field to ask for a row."""

    pipeline: str
    outputs: Sequence[str]
    """Aliases of the outputs."""
    row: str = ""
    """What was asked."""
    output: str = ""
    calendar: str = ""
    """Address of the pipeline's calendar."""


def explain_page(summary: Mapping[str, Any] | None, *, form: Form | None = None, problem: str | None = None) -> bytes:
    """Return the page of a row as HTML in UTF-8: its lineage, in JSON types, or a problem instead, or neither."""
    events = [] if summary is None else summary["events"]
    counts = {} if summary is None else summary["counts"]
    by_role = {role: [event for event in events if event["role"] == role] for role in HEADINGS}
    return render(
        "recapture.tools.events",
        "explain.html",
        explained=summary,
        form=form,
        problem=problem,
        title=_title(summary, form),
        verdict=None if summary is None else _verdict(summary),
        roles={role: (events[:MAX_EVENTS], counts[role], MEANINGS[role]) for role, events in by_role.items() if events},
        partitions=len({(event["input"], event["partition"]) for event in events}),
        blobs=len({event["blob"] for event in events}),
        names_all=sum(counts.values()) == len(events),
        rest=rest,
        counted=counted,
        glossary_terms=GLOSSARY,
    )


def _title(summary: Mapping[str, Any] | None, form: Form | None) -> str:
    if summary is None:
        return "Which events made a row?" if form is None else f"{form.pipeline}: which events made a row?"
    window, time = summary["window"], summary["system_timestamp"] or summary["slice"]["start"]
    if window is None or "start" not in window:
        return f"{summary['output']}: row at {time}" if summary["row"] else f"{summary['output']}: no row"
    return f"{summary['output']}: row of {window['start']} to {window['end']}"


def _verdict(summary: Mapping[str, Any]) -> str:
    """Return in one sentence what made the row."""
    if summary["row"] is None:
        return f"There is no such row: {summary['why']}."
    slice_ = summary["slice"]
    state = "was"
    if slice_["published_by"] is None:
        state = "is not published; computed now, it would be" if slice_["run"] is None else "of the run was"
    made = counted(summary["counts"].get("deciding", 0), "event")
    references = summary["references"]
    with_ = f" and {counted(len(references), 'row')} of reference data" if references else ""
    return f"The row {state} made of {made}{with_}."
