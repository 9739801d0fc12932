"""Charts of a report as Vega-Lite specifications, from the values of its document."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recapture.pages.page import duration
from recapture.pages.picture import shortened

Specification = dict[str, Any]

VERDICTS = {
    "on_time": ("on time", "var(--on-time)"),
    "late_adjusted": ("late (adjusted)", "var(--late)"),
    "late_dropped": ("late (dropped)", "var(--late-dropped)"),
    "out_of_order_adjusted": ("out of order (adjusted)", "var(--disorder)"),
    "out_of_order_dropped": ("out of order (dropped)", "var(--disorder-dropped)"),
    "early_adjusted": ("early (adjusted)", "var(--early)"),
    "early_dropped": ("early (dropped)", "var(--early-dropped)"),
    "invalid_timestamp": ("without a valid time", "var(--invalid)"),
    "malformed": ("malformed", "var(--malformed)"),
}
"""Labels and colours of the verdicts, in the order of a report."""
DUPLICATES = ("DuplicateEvents", "duplicates", "var(--duplicate)")
"""Metric, label and colour of the duplicates, which come first in a ledger."""
PARTS = {DUPLICATES[0]: DUPLICATES[1:], **VERDICTS}
"""Labels and colours of the counts that add up to the events that arrived."""
_CIRCLE, _CROSS = "circle", "M-1,-1L1,1M1,-1L-1,1"
_RUG = "M0,-1L0,1"
_WIDTH = 880
_HEIGHT = 400
_BIN_WIDTH = 26
_LEAST_WIDTH = 260
"""Width of a histogram of few bins: that of its texts."""
_LABEL_HEIGHT = 13
_PADDING = {"left": 5, "top": 5, "bottom": 5, "right": 25}
"""Space around a picture; at the right, a browser may have a wider font for the labels than this process."""
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_STEPS = (*(10, 20, 50, 100, 200, 500), *(1000 * seconds for seconds in _SECONDS))
"""Distances of the ticks on an axis of time, in milliseconds."""
_MOST_TICKS = 12
"""Largest number of steps on an axis of time."""


def shape(verdict: str) -> str:
    """Return the shape of an event in a picture: a cross if it was dropped, a line if it has no time, else a circle."""
    if verdict in ("malformed", "invalid_timestamp"):
        return _RUG
    return _CROSS if verdict.endswith("dropped") else _CIRCLE


def bars(rows: Iterable[Mapping[str, Any]], name: str, parts: Sequence[str] = ()) -> Specification:
    """Return stacked bars of a ledger, a bar for each row, under the row's `name`. The axis of names has no title.

    A bar has the row's duplicates and verdicts, or only these `parts`.
    """
    rows = list(rows)
    present = [part for part in parts or PARTS if any(row[part] for row in rows)]
    values = [
        {"row": number, "part": PARTS[part][0], "order": list(PARTS).index(part), "events": row[part]}
        for number, row in enumerate(rows)
        for part in present
        if row[part]
    ]
    many = len(rows) > 12
    labels = json.dumps([shortened(str(row[name])) for row in rows])
    axis = {"labelAngle": -60 if many else 0, "labelOverlap": True, "labelLimit": 0}
    names = {
        **{
            "field": "row",
            "type": "ordinal",
            "title": None,
            "sort": None,
            "scale": {"domain": list(range(len(rows)))},
        },
        "axis": axis | {"labelExpr": f"{labels}[datum.value]"},
    }
    most = max(sum(row[part] or 0 for part in present) for row in rows)
    events = {"field": "events", "type": "quantitative", "stack": "zero", "title": "events", "axis": _count_axis(most)}
    colors = {"domain": [PARTS[part][0] for part in present], "range": [PARTS[part][1] for part in present]}
    legend = {"orient": "top", "columns": 6, "symbolType": "square"}
    return {
        "data": {"values": values},
        "width": _WIDTH,
        "height": 180 if many else max(24 * len(rows), 30),
        "mark": {"type": "bar", "height": {"band": 0.8}} if not many else {"type": "bar", "width": {"band": 0.85}},
        "encoding": {
            "x": names if many else events,
            "y": events if many else names,
            "color": {"field": "part", "type": "nominal", "title": None, "scale": colors, "legend": legend},
            "order": {"field": "order", "type": "quantitative"},
        },
    }


def _count_axis(most: int) -> dict[str, Any]:
    """Return an axis of numbers of events from 0, with ticks at round integers."""
    power = 10 ** max(len(str(most)) - 2, 0)
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if most / (factor * power) <= _MOST_TICKS)
    return {"format": ",d", "values": list(range(0, most + 1, step))}


def histogram(bins: Sequence[Mapping[str, Any]], title: str) -> Specification:
    """Return the bars of a histogram; each bin has a `label`, a number of `events`, and a `color`."""
    labels = [bin_["label"] for bin_ in bins]
    position = {"field": "label", "type": "ordinal", "sort": None, "title": title, "scale": {"domain": labels}}
    height = {"field": "events", "type": "quantitative", "title": "events", "scale": {"type": "symlog"}}
    most = max(bin_["events"] for bin_ in bins)
    powers = [0, *(10**digits for digits in range(len(str(most))))]
    axis = {"values": powers, "labelExpr": "format(datum.value, '.3~s')"}
    color = {"field": "color", "type": "nominal", "scale": None}
    text = {"field": "events", "type": "quantitative", "format": ".3~s"}
    return {
        "data": {"values": list(bins)},
        "width": max(_BIN_WIDTH * len(bins), _LEAST_WIDTH),
        "height": 170,
        "encoding": {"x": position | {"axis": {"labelAngle": -45}}},
        "layer": [
            {
                "mark": {"type": "bar", "width": {"band": 0.9}},
                "encoding": {"y": height | {"axis": axis}, "color": color},
            },
            {
                "mark": {"type": "text", "dy": -6, "fontSize": 9},
                "encoding": {"y": height, "text": text},
                "transform": [{"filter": "datum.events > 0"}],
            },
        ],
    }


def watermark(picture: Mapping[str, Any]) -> Specification:
    """Return the watermark picture; `picture` is as `Picture.to_dict` returns it."""
    start, end, lowest, highest = (picture[name] for name in ("start", "end", "lowest", "highest"))
    points = [_drawn(point, lowest, highest) for point in picture["points"]]
    present = [verdict for verdict in VERDICTS if any(point["verdict"] == verdict for point in points)]
    labels = [VERDICTS[verdict][0] for verdict in present]
    legend = {"orient": "top", "title": None, "columns": 5}
    arrivals = {"type": "utc", "domain": [start, end], "nice": False}
    x = {"field": "x", "type": "temporal", "title": "arrival (UTC)", "scale": arrivals, "axis": _time_axis(start, end)}
    distances = {"domain": [lowest, highest], "nice": False, "zero": False}
    y = {
        "type": "quantitative",
        "title": "time minus arrival",
        "scale": distances,
        "axis": _duration_axis(lowest, highest),
    }
    colors = {"domain": labels, "range": [VERDICTS[verdict][1] for verdict in present]}
    color = {"field": "label", "type": "nominal", "scale": colors, "legend": legend}
    shapes = {"domain": labels, "range": [shape(verdict) for verdict in present]}
    moved = [point for point in points if point["to"] is not None]
    heads = [point | {"turn": 0 if point["to"] > point["y"] else 180} for point in moved]
    at_event, at_target = ({"x": x, "y": {"field": name, **y}, "color": color} for name in ("y", "to"))
    on_time = {"test": "datum.verdict === 'on_time'", "value": "var(--on-time)"}
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "padding": _PADDING,
        "layer": [
            *_lines(picture, x, y),
            {
                "data": {"values": moved},
                "mark": {"type": "rule", "strokeWidth": 1.2, "clip": True},
                "encoding": at_event | {"y2": {"field": "to"}},
            },
            {
                "data": {"values": heads},
                "mark": {"type": "point", "shape": "triangle", "filled": True, "size": 46, "opacity": 1, "clip": True},
                "encoding": at_target | {"angle": {"field": "turn", "type": "quantitative", "scale": None}},
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "size": 42, "strokeWidth": 1.7, "opacity": 0.95},
                "encoding": {
                    **at_event,
                    "shape": {"field": "label", "type": "nominal", "scale": shapes, "legend": legend},
                    "fill": {"condition": on_time, "value": "transparent"},
                },
            },
        ],
    }


def _drawn(point: Mapping[str, Any], lowest: float, highest: float) -> dict[str, Any]:
    """Return an event with its place in the picture: at an end of the axis if it has no time or is beyond the axis."""
    time, verdict, arrival = point["time"], point["verdict"], point["arrival"]
    y = lowest if time is None else min(max(time - arrival, lowest), highest)
    to = point["system_timestamp"] - arrival if verdict.endswith("adjusted") else None
    return {"x": point["x"], "y": y, "to": to, "verdict": verdict, "label": VERDICTS[verdict][0]}


def _lines(picture: Mapping[str, Any], x: Mapping[str, Any], y: Mapping[str, Any]) -> list[Specification]:
    """Return the arrival, the bounds and the watermark: those that are on the axis, with labels at the right edge."""
    marks: dict[str, tuple[float | None, dict[str, Any]]] = {
        "early bound": (picture["early_bound"], {"stroke": "var(--muted)", "strokeDash": [2, 3]}),
        "arrival": (0, {"stroke": "var(--line)"}),
        "late bound": (picture["late_bound"], {"stroke": "var(--muted)", "strokeDash": [6, 4]}),
    }
    lines: dict[str, tuple[list[dict[str, float]], dict[str, Any]]] = {
        name: ([{"x": picture[end], "y": level} for end in ("start", "end")], mark)
        for name, (level, mark) in marks.items()
        if level is not None and is_shown(picture, level)
    }
    known = [point for point in picture["points"] if point["watermark"] is not None]
    if picture["one_watermark"] and known:
        places = [{"x": point["x"], "y": point["watermark"] - point["arrival"]} for point in known]
        lines["watermark"] = places, {"stroke": "var(--ink)", "strokeWidth": 1.6}
    ends = {name: places[-1]["y"] for name, (places, _) in lines.items() if is_shown(picture, places[-1]["y"])}
    names = [{"name": name, "x": picture["end"], "y": level} for name, level in _apart(ends, picture).items()]
    encoding = {"x": dict(x), "y": {"field": "y", **y}}
    line = {"type": "line", "strokeWidth": 1.2, "clip": True}
    text = {"type": "text", "align": "left", "baseline": "middle", "dx": 5, "fontSize": _LABEL_HEIGHT - 2}
    named = encoding | {"text": {"field": "name", "type": "nominal"}}
    return [
        *({"data": {"values": places}, "mark": line | mark, "encoding": encoding} for places, mark in lines.values()),
        {"data": {"values": names}, "mark": text, "encoding": named},
    ]


def is_shown(picture: Mapping[str, Any], level: float) -> bool:
    """Return whether a time minus its arrival, in milliseconds, is on the axis of a watermark picture."""
    return bool(picture["lowest"] <= level <= picture["highest"])


def _apart(levels: Mapping[str, float], picture: Mapping[str, Any]) -> dict[str, float]:
    """Return where labels of these levels can be read: near their levels, and so far apart that none covers another."""
    height = (picture["highest"] - picture["lowest"]) * _LABEL_HEIGHT / _HEIGHT
    placed = dict(sorted(levels.items(), key=lambda item: item[1]))
    free = picture["lowest"]
    for name, level in placed.items():
        placed[name] = max(level, free)
        free = placed[name] + height
    free = picture["highest"]
    for name, level in reversed(placed.items()):
        placed[name] = min(level, free)
        free = placed[name] - height
    return placed


def _time_axis(start: float, end: float) -> dict[str, Any]:
    """Return an axis of instants, in milliseconds, with ticks at round times."""
    step = max(_step(end - start), 1000)
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < 86_400_000 else "%Y-%m-%d"
    return {"format": form, "values": _multiples(step, start, end)}


def _duration_axis(lowest: float, highest: float) -> dict[str, Any]:
    """Return an axis of durations, in milliseconds, with ticks at round durations."""
    values = _multiples(_step(highest - lowest), lowest, highest)
    labels = json.dumps({str(value): duration(value / 1000) for value in values})
    return {"values": values, "labelExpr": f"{labels}[datum.value]", "titlePadding": 14}


def _step(length: float) -> int:
    """Return the distance of the ticks on an axis of time; both are in milliseconds."""
    longest = _STEPS[-1]
    step = next((step for step in _STEPS if length / step <= _MOST_TICKS), None)
    return longest * math.ceil(length / (longest * _MOST_TICKS)) if step is None else step


def _multiples(step: int, start: float, end: float) -> list[int]:
    return list(range(math.ceil(start / step) * step, math.floor(end) + 1, step))
