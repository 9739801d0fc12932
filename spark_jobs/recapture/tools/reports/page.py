"""The page of a report, rendered from its document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recapture.pages.page import duration, number, render, share
from recapture.process.wording import counted
from recapture.quality.metric_titles import name_behind
from recapture.quality.metrics import UNUSABLE
from recapture.run.approval import APPROVED
from recapture.run.cost import sentence
from recapture.run.slice_state import State
from recapture.time_model.metrics import COUNTS, VERDICTS, total
from recapture.tools.reports import charts
from recapture.tools.reports.ledger import LOST, judged
from recapture.tools.reports.timing import label

if TYPE_CHECKING:
    from markupsafe import Markup

_TERMS = {
    "DuplicateEvents": "duplicate",
    **{name: name.rpartition("_")[0].replace("_", " ") for name in VERDICTS if name.endswith(("adjusted", "dropped"))},
    **dict.fromkeys(UNUSABLE, "quarantined"),
}
"""Term of the glossary for each part of the events, where there is one."""
_MOSTLY = 0.9
"""Share of events on time from which bars show only the others, which would be too small to see next to them."""
GLOSSARY = (
    *("application time", "arrival time", "System.Timestamp", "watermark", "late", "out of order", "early"),
    *("tolerance", "policy", "partition", "Capture", "blob", "slice", "run", "verdict (of an event)", "duplicate"),
    *("gap", "hole", "quarantined", "audit", "manifest", "stale", "outdated", "provisional", "approval"),
)
"""Terms that the page explains."""
_LEVELS = {"critical": ("FAILED", "bad"), "warning": ("WARNING", "warning"), "info": ("NOTE", "info")}
"""Mark and class of an expectation that failed, by its severity."""
_QUALITIES: dict[str, str] = {
    "passed": "good",
    **dict.fromkeys(("passed with warnings", APPROVED, State.OUTDATED, State.UNCHECKED), "warning"),
    "failed": "bad",
}
"""Class of the quality of a slice."""


def page(document: Mapping[str, Any]) -> bytes:
    """Return the page of a report as HTML in UTF-8."""
    ledger, totals = document["ledger"], document["ledger"]["totals"]
    names = [group["name"] for group in ledger["groups"]]
    groups = [{**group, "short": _short(group["name"], names)} for group in ledger["groups"]]
    return render(
        "recapture.tools.reports",
        "report.html",
        report=document,
        levels=_LEVELS,
        qualities=_QUALITIES,
        columns=_columns(document),
        judged=judged(totals),
        uncounted=any(totals[name] is None for name in COUNTS if name in totals),
        parts=_parts(totals),
        lost=total(totals[name] for name in LOST),
        mostly_on_time=bool(_shown_parts(totals)),
        partition_bars=_bars(ledger["partitions"], "name", "partition", totals),
        group_bars=_bars(groups, "short", ledger["unit"], totals),
        inputs=[_with_pictures(input_timing, len(document["timing"]) > 1) for input_timing in document["timing"]],
        passed_checks=_by_suite(document["failures"]["passed_checks"]),
        counted=counted,
        took=sentence(document["cost"]) if document["cost"] else None,
        glossary_terms=GLOSSARY,
    )


def _by_suite(checks: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[str, str], list[Mapping[str, Any]]]]:
    """Return the checks that passed by their suite and by what it judged."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for check in checks:
        groups.setdefault((check["suite"], check["judged"]), []).append(check)
    return list(groups.items())


def _columns(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the counts of the ledger that are not 0 everywhere, each with its label."""
    parts = {charts.DUPLICATES[0]: charts.DUPLICATES[1]} | {name: text for name, (text, _) in charts.VERDICTS.items()}
    totals = document["ledger"]["totals"]
    return [(name, text) for name, text in parts.items() if totals[name] != 0 or name == "on_time"]


def _bars(rows: Sequence[Mapping[str, Any]], name: str, unit: str, totals: Mapping[str, Any]) -> "Markup | None":
    """Return the bars of several rows of the ledger; None if there is one row, or nothing to show."""
    parts = _shown_parts(totals)
    if len(rows) < 2 or not totals["InputEvents"] or (parts and not any(totals[part] for part in parts)):
        return None
    which = "events that were not on time" if parts else "events"
    label = f"Bars of the {which} by verdict, one for each of {counted(len(rows), unit)}"
    return charts.bars(rows, name, parts).svg(label)


def _shown_parts(totals: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that bars show, if not all: those of events that were not on time, if there are few."""
    on_time, events = totals["on_time"], totals["InputEvents"]
    mostly = on_time is not None and events and on_time >= _MOSTLY * events
    return tuple(name for name in charts.PARTS if name != "on_time") if mostly else ()


def _parts(totals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what became of the events that arrived: the label, metric, count and colour of each part that is not 0."""
    return [
        {
            "label": text,
            "metric": name_behind(name, totals),
            "term": _TERMS.get(name),
            "count": totals[name],
            "color": color,
        }
        for name, (text, color) in charts.PARTS.items()
        if totals[name] != 0
    ]


def _short(name: str, names: Sequence[str]) -> str:
    """Return the name of a slice without its date, if all slices are of one day, and without seconds."""
    if "T" not in name:
        return name
    date, time = name.split("T")
    return time[:5] if len({other[:10] for other in names}) == 1 else f"{date[5:]} {time[:5]}"


def _with_pictures(input_timing: Mapping[str, Any], name_input: bool) -> dict[str, Any]:
    """Return the times of an input with its pictures and histograms drawn."""
    late, early = input_timing["late_seconds"], input_timing["early_seconds"]
    return {
        **input_timing,
        "title": f"Input {input_timing['alias']}" if name_input else None,
        "drawn": [_drawn(picture) for picture in input_timing["pictures"]],
        "lateness_bars": _histogram(
            input_timing["lateness"],
            *("arrival less application time", "Histogram of lateness", "var(--late)", late, early),
        ),
        "disorder_bars": _histogram(
            input_timing["disorder"],
            *("time behind the largest so far", "Histogram of disorder", "var(--disorder)"),
            input_timing["out_of_order_seconds"],
        ),
    }


def _drawn(picture: Mapping[str, Any]) -> dict[str, Any]:
    place = f"partition {picture['partition']}, slice {picture['slice_start']}"
    if picture["key"] is not None:
        place = f"{picture['key']} in {place}"
    counts = picture["counts"]
    verdicts = ", ".join(
        f"{number(counts[name])} {text}" for name, (text, _) in charts.VERDICTS.items() if counts[name]
    )
    return {
        "place": place[0].upper() + place[1:] if picture["key"] is None else place,
        "events": judged(counts),
        "duplicates": counts["DuplicateEvents"],
        "verdicts": verdicts,
        "picture": charts.watermark(picture).svg(
            f"Events of {place} by arrival and application time, with the watermark. In all: {verdicts}.",
        ),
        **{name: picture[name] for name in ("sampled", "outside", "key", "one_watermark")},
        "unseen": list(_unseen(picture)),
    }


def _unseen(picture: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences about the bounds that are beyond the axis of a watermark picture."""
    for name, side in (("late", "before"), ("early", "after")):
        bound = picture[f"{name}_bound"]
        if bound is not None and not charts.is_shown(picture, bound):
            yield f"The {name} bound is outside the picture, {duration(abs(bound) / 1000)} {side} the arrival."


def _histogram(
    bins: Sequence[Mapping[str, Any]],
    axis: str,
    title: str,
    color: str,
    tolerance: float | None,
    early: float | None = None,
) -> "Markup | None":
    """Return the bars of a histogram without the empty bins at its ends; bars beyond a tolerance have its colour."""
    filled = [index for index, bin_ in enumerate(bins) if bin_["events"]]
    if not filled:
        return None
    drawn = []
    for bin_ in bins[filled[0] : filled[-1] + 1]:
        beyond = tolerance is not None and bin_["above"] is not None and bin_["above"] >= tolerance
        ahead = early is not None and bin_["up_to"] is not None and bin_["up_to"] <= -early
        bar_color = color if beyond else "var(--early)" if ahead else "var(--on-time)"
        drawn.append({"label": label(bin_), "events": bin_["events"], "color": bar_color})
    total = sum(bin_["events"] for bin_ in bins)
    text = "; ".join(f"{bin_['label']}: {share(bin_['events'], total)}" for bin_ in drawn if bin_["events"])
    return charts.histogram(drawn, axis).svg(f"{title} of {counted(total, 'event')}. {text}.")
