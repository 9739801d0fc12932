"""The page of a trend, rendered from its document. Its pictures are columns that any width and any theme can show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recapture.pages.page import duration, number, render, share
from recapture.process.wording import counted
from recapture.tools.reports.trend import LEVELS

METRICS: Mapping[str, tuple[str, str, Callable[[Any], str]]] = {
    "events": ("events that arrived", "var(--on-time)", number),
    "late": ("late events, as a share", "var(--late)", lambda value: share(value, 1)),
    "lost": ("lost events, as a share", "var(--bad)", lambda value: share(value, 1)),
    "delay": ("longest watermark delay", "var(--disorder)", duration),
    "rows": ("rows", "var(--early)", number),
    "failed": ("expectations that failed or warned", "var(--warning)", number),
}
"""Title, colour and text of each value of a period or hour."""
WORDS = {"bad": "failed", "warning": "warned", "note": "noted", "good": "passed", "unjudged": "not judged"}
"""What a check did, by its level."""
GLOSSARY = (
    *("slice", "run", "audit", "suite", "late", "watermark", "duplicate", "quarantined", "blocked"),
    *("application time", "arrival time"),
)
"""Terms that the page explains."""


def trend_page(document: Mapping[str, Any], calendar: str | None = None) -> bytes:
    """Return the page of a trend as HTML in UTF-8. `calendar` is the address of the calendar, None for no link."""
    return render(
        "recapture.tools.reports",
        "trend.html",
        trend=document,
        calendar=calendar,
        metrics=METRICS,
        failed=[check for check in document["checks"] if check["last_failed"]],
        passed=[check for check in document["checks"] if not check["last_failed"]],
        counted=counted,
        words=WORDS,
        levels=LEVELS,
        sections=[
            ("periods", f"By {document['unit']}", _pictures(document["periods"], document["unit"])),
            ("hours", "By hour of the day", _pictures(document["hours"], "hour")),
        ],
        periods=[period["name"] for period in document["periods"]],
        glossary_terms=GLOSSARY,
    )


def _pictures(groups: Sequence[Mapping[str, Any]], unit: str) -> list[dict[str, Any]]:
    """Return the columns of each metric, for groups of slices such as days."""
    return [_picture(groups, unit, name) for name in METRICS]


def _picture(groups: Sequence[Mapping[str, Any]], unit: str, name: str) -> dict[str, Any]:
    title, color, text = METRICS[name]
    known = [(group["name"], group[name]) for group in groups if group[name] is not None]
    most = max((value for _, value in known), default=0)
    highest = next((place for place, value in known if value == most), None)
    said = f"{title} by {unit}: nothing is known"
    if highest is not None:
        said = f"{title} by {unit}, from {known[0][0]} to {known[-1][0]}: at most {text(most)}, {highest}"
    return {
        "title": title,
        "color": color,
        "label": said,
        "most": text(most) if highest is not None else None,
        "highest": highest,
        "columns": [
            {
                "height": None if group[name] is None else _height(group[name], most),
                "title": f"{group['name']}: {'nothing is known' if group[name] is None else text(group[name])}",
            }
            for group in groups
        ],
        "first": groups[0]["name"],
        "last": groups[-1]["name"],
    }


def _height(value: float, most: float) -> float:
    """Return the height of a column in percent: 0 for nothing, and at least 2 for anything else."""
    if value <= 0 or most <= 0:
        return 0
    return round(max(100 * value / most, 2), 1)
