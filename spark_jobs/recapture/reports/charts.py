"""Charts of a report as Vega-Lite specifications, from the values of its document."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
_PARTS = {DUPLICATES[0]: DUPLICATES[1:], **VERDICTS}
_CIRCLE, _CROSS = "circle", "M-1,-1L1,1M1,-1L-1,1"
_RUG = "M0,-1L0,1"
_WIDTH = 880
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Distances of the ticks on an axis of time, in seconds."""
_TIMES = {"type": "temporal", "scale": {"type": "utc"}}


def shape(verdict: str) -> str:
    """Return the shape of an event in a picture: a cross if it was dropped, a line if it has no time, else a circle."""
    if verdict in ("malformed", "invalid_timestamp"):
        return _RUG
    return _CROSS if verdict.endswith("dropped") else _CIRCLE


def bars(rows: Iterable[Mapping[str, Any]], name: str, title: str) -> Specification:
    """Return stacked bars of a ledger, a bar for each row: its duplicates and verdicts, under the row's `name`."""
    rows = list(rows)
    present = [part for part in _PARTS if any(row[part] for row in rows)]
    values = [
        {"name": str(row[name]), "part": _PARTS[part][0], "order": list(_PARTS).index(part), "events": row[part]}
        for row in rows
        for part in present
        if row[part]
    ]
    many = len(rows) > 12
    names = {
        "field": "name",
        "type": "ordinal",
        "title": title,
        "sort": None,
        "scale": {"domain": [str(row[name]) for row in rows]},
        "axis": {"labelAngle": -60 if many else 0, "labelOverlap": True, "labelLimit": 160},
    }
    events = {"field": "events", "type": "quantitative", "stack": "zero", "title": "events"}
    color = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [_PARTS[part][0] for part in present], "range": [_PARTS[part][1] for part in present]},
        "legend": {"orient": "top", "columns": 6, "symbolType": "square"},
    }
    return {
        "data": {"values": values},
        "width": _WIDTH,
        "height": 180 if many else max(24 * len(rows), 30),
        "mark": {"type": "bar", "height": {"band": 0.8}} if not many else {"type": "bar", "width": {"band": 0.85}},
        "encoding": {
            "x": names if many else events,
            "y": events if many else names,
            "color": color,
            "order": {"field": "order", "type": "quantitative"},
        },
    }


def histogram(bins: Sequence[Mapping[str, Any]], title: str) -> Specification:
    """Return the bars of a histogram; each bin has a `label`, a number of `events`, and a `color`."""
    labels = [bin_["label"] for bin_ in bins]
    position = {"field": "label", "type": "ordinal", "sort": None, "title": title, "scale": {"domain": labels}}
    height = {"field": "events", "type": "quantitative", "title": "events", "scale": {"type": "symlog"}}
    return {
        "data": {"values": list(bins)},
        "width": {"step": 26},
        "height": 170,
        "encoding": {"x": position | {"axis": {"labelAngle": -45}}},
        "layer": [
            {
                "mark": {"type": "bar", "width": {"band": 0.9}},
                "encoding": {
                    "y": height | {"axis": {"tickCount": 4, "format": "~s"}},
                    "color": {"field": "color", "type": "nominal", "scale": None},
                },
            },
            {
                "mark": {"type": "text", "dy": -6, "fontSize": 9},
                "encoding": {"y": height, "text": {"field": "events", "type": "quantitative", "format": ".3~s"}},
                "transform": [{"filter": "datum.events > 0"}],
            },
        ],
    }


def watermark(picture: Mapping[str, Any]) -> Specification:
    """Return the watermark picture; `picture` is as `Picture.to_dict` returns it."""
    lowest, highest = picture["lowest"], picture["highest"]
    points = [_drawn(point, lowest, highest) for point in picture["points"]]
    present = [verdict for verdict in VERDICTS if any(point["verdict"] == verdict for point in points)]
    labels = [VERDICTS[verdict][0] for verdict in present]
    colors = {"domain": labels, "range": [VERDICTS[verdict][1] for verdict in present]}
    legend = {"orient": "top", "title": None, "columns": 5}
    x = {"field": "x", "title": "arrival (UTC)", **_TIMES}
    x["scale"] = {"type": "utc", "domain": [picture["start"], picture["end"]], "nice": False}
    x["axis"] = _time_axis(picture["start"], picture["end"], 13)
    y = {"title": "application time (UTC)", **_TIMES}
    y["scale"] = {"type": "utc", "domain": [lowest, highest], "nice": False}
    y["axis"] = _time_axis(lowest, highest, 9)
    color = {"field": "label", "type": "nominal", "scale": colors, "legend": legend}
    shapes = {"domain": labels, "range": [shape(verdict) for verdict in present]}
    lines = [
        _line(picture["early_bound"], "early bound", x, y, {"strokeDash": [2, 3]}, highest),
        _line(picture["late_bound"], "late bound", x, y, {"strokeDash": [6, 4]}, highest),
    ]
    if picture["watermark"]:
        step = {"interpolate": "step-after", "stroke": "var(--ink)", "strokeWidth": 1.6}
        lines.append(_line(picture["watermark"], "watermark", x, y, step, highest))
    moved = [point for point in points if point["to"] is not None]
    heads = [point | {"turn": 0 if point["to"] > point["y"] else 180} for point in moved]
    at_event, at_target = {"field": "y", **y}, {"field": "to", **y}
    return {
        "width": _WIDTH,
        "height": 400,
        "layer": [
            *(line for layers in lines for line in layers),
            {
                "data": {"values": moved},
                "mark": {"type": "rule", "strokeWidth": 1.2, "clip": True},
                "encoding": {"x": x, "y": at_event, "y2": {"field": "to"}, "color": color},
            },
            {
                "data": {"values": heads},
                "mark": {"type": "point", "shape": "triangle", "filled": True, "size": 46, "opacity": 1, "clip": True},
                "encoding": {
                    "x": x,
                    "y": at_target,
                    "color": color,
                    "angle": {"field": "turn", "type": "quantitative", "scale": None},
                },
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "size": 42, "strokeWidth": 1.7, "opacity": 0.95},
                "encoding": {
                    "x": x,
                    "y": at_event,
                    "color": color,
                    "shape": {"field": "label", "type": "nominal", "scale": shapes, "legend": legend},
                    "fill": {
                        "condition": {"test": "datum.verdict === 'on_time'", "value": "var(--on-time)"},
                        "value": "transparent",
                    },
                },
            },
        ],
    }


def _drawn(point: Mapping[str, Any], lowest: float, highest: float) -> dict[str, Any]:
    """Return an event with its place in the picture: at an end of the axis if it has no time or is beyond the axis."""
    time, verdict = point["time"], point["verdict"]
    y = lowest if time is None else min(max(time, lowest), highest)
    to = point["system_timestamp"] if verdict.endswith("adjusted") else None
    return {"x": point["x"], "y": y, "to": to, "verdict": verdict, "label": VERDICTS[verdict][0]}


def _line(
    places: Sequence[Sequence[float]],
    label: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    mark: Mapping[str, Any],
    highest: float,
) -> list[Specification]:
    """Return a line with its label where it ends or leaves the picture; nothing without places."""
    if not places:
        return []
    values = [{"x": place[0], "y": place[1]} for place in places]
    encoding = {"x": dict(x), "y": {"field": "y", **y}}
    text = {"type": "text", "align": "right", "dx": -6, "dy": -7, "fontSize": 11}
    return [
        {
            "data": {"values": values},
            "mark": {"type": "line", "stroke": "var(--muted)", "strokeWidth": 1.2, "clip": True, **mark},
            "encoding": encoding,
        },
        {
            "data": {"values": [_end(places, highest)]},
            "mark": {**text, "color": mark.get("stroke", "var(--muted)")},
            "encoding": encoding | {"text": {"value": label}},
        },
    ]


def _end(places: Sequence[Sequence[float]], highest: float) -> dict[str, float]:
    """Return the last place of a rising line that is not above `highest`."""
    last = max((number for number, place in enumerate(places) if place[1] <= highest), default=0)
    x, y = places[last]
    if last + 1 < len(places) and y <= highest:
        next_x, next_y = places[last + 1]
        x, y = x + (next_x - x) * (highest - y) / (next_y - y), highest
    return {"x": x, "y": min(y, highest)}


def _time_axis(start: float, end: float, most: int) -> dict[str, Any]:
    """Return an axis of time, in milliseconds, with at most this many ticks at round times."""
    step = next((step for step in _STEPS if (end - start) / (1000 * step) <= most), None)
    step = _STEPS[-1] * math.ceil((end - start) / (1000 * _STEPS[-1] * most)) if step is None else step
    first = math.ceil(start / 1000 / step) * step
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%Y-%m-%d"
    return {"format": form, "values": [1000 * second for second in range(first, math.floor(end / 1000) + 1, step)]}
