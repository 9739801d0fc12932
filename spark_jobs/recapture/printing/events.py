"""What the commands print that look for events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console

from recapture.printing.consoles import shown
from recapture.process.wording import counted
from recapture.time_model import ticks

if TYPE_CHECKING:
    from recapture.tools.events.find import SearchResult

SHOWN_EVENTS = 100
"""Maximum number of events that are printed; a file has more."""


def print_found(out: Console, result: SearchResult, *, shows_events: bool) -> None:
    """Print events that were found, at most SHOWN_EVENTS, and how many there are."""
    from recapture.tools.events.event import json_types, lines
    from recapture.tools.events.index import read_lines

    events = result.events
    for line in lines(json_types(events.slice(0, SHOWN_EVENTS))) if shows_events else ():
        out.print(shown(line))
    if shows_events and len(events) > SHOWN_EVENTS:
        more = counted(len(events) - SHOWN_EVENTS, "more event")
        out.print(f"{more}: --out FILE.jsonl, .parquet or .avro writes all of them")
    verdicts = Counter(events["verdict"].to_pylist())
    counts = ", ".join(f"{verdict} {count:,}" for verdict, count in sorted(verdicts.items()))
    bounds = f"{ticks.to_text(result.range.start)} to {ticks.to_text(result.range.end)}"
    number = counted(len(events), "event") if len(events) else "no such event"
    out.print(f"{number} arrived from {bounds}" + (f": {counts}" if counts else ""))
    for line in read_lines(result.summary(with_events=False)["inputs"]):
        out.print(shown(line))


def print_explanation(out: Console, summary: Mapping[str, Any]) -> None:
    """Print what became of events, and the windows and rows that they are in."""
    from recapture.tools.events.event import lines, place
    from recapture.tools.events.index import read_lines

    if not summary["events"]:
        out.print("no such event arrived in this range")
    for event in summary["events"]:
        for line in lines([event]):
            out.print(shown(line))
        if "pushed_by" in event:
            watermark = f"the event with the largest time so far, {event['largest_time']}, pushed the watermark"
            out.print(shown(f"  {watermark}: {place(event['pushed_by'])}"))
        for output in event["outputs"]:
            if not output["windows"]:
                out.print(shown(f"  output {output['output']}: in no row: {output['why']}"))
            for window in output["windows"]:
                out.print(shown(f"  output {output['output']}: {_window(window)}: {_row(window)}"))
    for line in read_lines(summary["inputs"]):
        out.print(shown(line))


def print_lineage(out: Console, summary: Mapping[str, Any]) -> None:
    """Print a row, and the events and the reference data that made it."""
    from recapture.tools.events.event import lines, pushed_lines
    from recapture.tools.events.index import read_lines
    from recapture.tools.events.roles import COUNTED, HEADINGS, rest

    out.print(shown(f"{_place(summary)}: {_row(summary)}"))
    by_role = {role: [event for event in summary["events"] if event["role"] == role] for role in HEADINGS}
    for role, events in by_role.items():
        if events and HEADINGS[role]:
            out.print(f"{HEADINGS[role]}:")
        for event in events[:SHOWN_EVENTS]:
            for line in [*lines([event]), *pushed_lines(event)]:
                out.print(shown(line))
        count = summary["counts"].get(role, 0)
        if count > len(events[:SHOWN_EVENTS]):
            out.print(f"{counted(count - len(events[:SHOWN_EVENTS]), 'more event')}: {rest(count)}")
    for row in summary["references"]:
        times = "".join(f" {word} {row[name]}" for word, name in _IN_FORCE.items() if name in row)
        out.print(shown(f"reference data {row['reference']}: row {row['row']:,} of {row['blob']}, in force{times}"))
        out.print(shown(f"  {_named(row['columns'])}"))
    for absence in summary["absences"]:
        out.print(shown(absence["text"]))
    if summary["events"]:
        counts = summary["counts"]
        others = "".join(f", {text.format(counts[role])}" for role, text in COUNTED.items() if role in counts)
        out.print(f"made of {counted(counts.get('deciding', 0), 'event')}{others}")
    for line in read_lines(summary["inputs"]):
        out.print(shown(line))


_IN_FORCE = {"from": "valid_from", "until": "valid_until"}


def _place(summary: Mapping[str, Any]) -> str:
    """Return the window or the time of a row, and by which run it is published."""
    slice_, window = summary["slice"], summary["window"]
    if window is None:
        time = summary["system_timestamp"]
        what = f"slice {slice_['start']}" if time is None else f"row at {time}"
        return f"{what}, {_published_by(slice_)}"
    if "start" not in window:
        name = f" {window['id']}" if "id" in window else ""
        return f"window{name} that ends at {window['end']}, {_published_by(slice_)}"
    return _window(window | slice_ | {"start": window["start"]})


def _window(window: Mapping[str, Any]) -> str:
    if "end" not in window:
        return f"row of slice {window['slice_start']}, {_published_by(window)}"
    name = f" {window['id']}" if "id" in window else ""
    return f"window{name} ({window['start']}, {window['end']}], {_published_by(window)}"


def _published_by(published: Mapping[str, Any]) -> str:
    run = published["published_by"]
    if run is None:
        asked = published.get("run")
        return "not published" if asked is None else f"in run {asked}, which is not published for it"
    return f"published by run {run}"


def _row(window: Mapping[str, Any]) -> str:
    return f"no row: {window['why']}" if window["row"] is None else _named(window["row"])


def _named(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {'NULL' if value is None else value}" for name, value in columns.items())


def cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else shown(value)
