"""Charts of a report, from the values of its document."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recapture.pages.axes import Scale, bottom_axis, left_axis, legend, symlog
from recapture.pages.page import duration
from recapture.pages.svg import INK, LINE, MUTED, Chart, Mark, Text, clipped, element, number, path, shortened
from recapture.quality.metrics import UNUSABLE

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
_CIRCLE = "m-3.7,0a3.7,3.7 0 1,0 7.4,0a3.7,3.7 0 1,0 -7.4,0"
_CROSS = "m-3.2,-3.2l6.4,6.4m0,-6.4l-6.4,6.4"
_RUG = "m0,-3.2v6.4"
_SQUARE = "M-5,-5h10v10h-10z"
_STROKES = {
    "early bound": {"stroke": MUTED, "stroke_width": "1.2", "stroke_dasharray": "2,3"},
    "arrival": {"stroke": LINE, "stroke_width": "1.2"},
    "late bound": {"stroke": MUTED, "stroke_width": "1.2", "stroke_dasharray": "6,4"},
    "watermark": {"stroke": INK, "stroke_width": "1.6"},
}
_WIDTH = 880
_HEIGHT = 400
_BIN_WIDTH = 26
_LEAST_WIDTH = 260
"""Width of a histogram of few bins: that of its texts."""
_LABEL_HEIGHT = 13
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_STEPS = (*(10, 20, 50, 100, 200, 500), *(1000 * seconds for seconds in _SECONDS))
"""Distances of the ticks on an axis of time, in milliseconds."""
_MOST_TICKS = 12
"""Largest number of steps on an axis of time."""


def bars(rows: Sequence[Mapping[str, Any]], name: str, parts: Sequence[str] = ()) -> Chart:
    """Return a ledger as stacked bars, one for each row, labelled with its `name`. The axis of names has no title.

    A bar has the row's duplicates and verdicts, or only these `parts`.
    """
    present = [part for part in parts or PARTS if any(row[part] for row in rows)]
    most = max(sum(row[part] or 0 for part in present) for row in rows)
    upright = len(rows) > 12
    width, height = _WIDTH, 180 if upright else max(24 * len(rows), 30)
    bands = Scale(0, len(rows), 0, width if upright else height)
    events = Scale(0, 1.02 * most, *((height, 0) if upright else (0, width)))
    names = {bands(index + 0.5): shortened(str(row[name])) for index, row in enumerate(rows)}
    counts = {events(value): f"{value:,}" for value in _count_ticks(most)}
    if upright:
        axes = [
            *bottom_axis(names, "", width, height, angle=-60),
            *left_axis(counts, "events", width, height, grid=True),
        ]
    else:
        axes = [*left_axis(names, "", width, height), *bottom_axis(counts, "events", width, height, grid=True)]
    symbols = [(element("path", d=_SQUARE, fill=PARTS[part][1]), PARTS[part][0]) for part in present]
    return Chart(width, height, [*axes, *_stacks(rows, present, bands, events, upright), *legend(symbols, width)])


def _stacks(
    rows: Sequence[Mapping[str, Any]], parts: Sequence[str], bands: Scale, events: Scale, upright: bool
) -> Iterator[Mark]:
    """Yield the rectangles of each part, in the bars of all rows."""
    ends = [0] * len(rows)
    for part in parts:
        rectangles = []
        for index, row in enumerate(rows):
            start, ends[index] = ends[index], ends[index] + (row[part] or 0)
            along, across = (events(start), events(ends[index])), (bands(index + 0.1), bands(index + 0.9))
            (left, right), (top, bottom) = (across, along) if upright else (along, across)
            if row[part]:
                rectangles.append(f"M{number(left)},{number(top)}H{number(right)}V{number(bottom)}H{number(left)}z")
        yield element("path", d="".join(rectangles), fill=PARTS[part][1])


def _count_ticks(most: int) -> range:
    """Return the ticks of an axis of numbers of events from 0: round integers."""
    power = 10 ** max(len(str(most)) - 2, 0)
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if most / (factor * power) <= _MOST_TICKS)
    return range(0, most + 1, step)


def histogram(bins: Sequence[Mapping[str, Any]], title: str) -> Chart:
    """Return the bars of a histogram; each bin has a `label`, a number of `events`, and a `color`."""
    width, height = max(_BIN_WIDTH * len(bins), _LEAST_WIDTH), 170
    most = max(bin_["events"] for bin_ in bins) or 1
    bands, events = Scale(0, len(bins), 0, width), Scale(0, most, height, 0, symlog())
    labels = {bands(index + 0.5): bin_["label"] for index, bin_ in enumerate(bins)}
    counts = {events(value): _short(value) for value in (0, *(10**digits for digits in range(len(str(most)))))}
    marks = [
        *bottom_axis(labels, title, width, height, angle=-45),
        *left_axis(counts, "events", width, height, grid=True),
    ]
    for index, bin_ in enumerate(bins):
        if bin_["events"]:
            left, top = bands(index + 0.05), events(bin_["events"])
            bar = {"x": left, "y": top, "width": bands(0.9), "height": height - top}
            marks.append(element("rect", fill=bin_["color"], **bar))
            marks.append(Text(_short(bin_["events"]), bands(index + 0.5), top - 4, "middle", 9, INK))
    return Chart(width, height, marks)


def _short(events: int) -> str:
    """Return a number with three digits and an SI prefix, such as 13.7k."""
    rounded = float(f"{events:.3g}")
    thousands = (len(f"{rounded:.0f}") - 1) // 3
    return f"{rounded / 1000**thousands:g}{('', 'k', 'M', 'G', 'T', 'P', 'E')[thousands]}"


def watermark(picture: Mapping[str, Any]) -> Chart:
    """Return the watermark picture; `picture` is as `Picture.to_dict` returns it."""
    start, end, lowest, highest = (picture[name] for name in ("start", "end", "lowest", "highest"))
    x, y = Scale(start, end, 0, _WIDTH), Scale(lowest, highest, _HEIGHT, 0)
    symbols, arrows, events = [], [], []
    for verdict, (label, color) in VERDICTS.items():
        points = [point for point in picture["points"] if point["verdict"] == verdict]
        if not points:
            continue
        shape = _CROSS if verdict.endswith("dropped") else _RUG if verdict in UNUSABLE else _CIRCLE
        paint = {"stroke": color, "stroke_width": "1.7", "fill": color if verdict == "on_time" else "none"}
        symbols.append((element("path", d=f"M0,0{shape}", **paint), label))
        places = [(x(point["x"]), y(_drawn_offset(point, lowest, highest))) for point in points]
        events.append(element("path", d="".join(path([place]) + shape for place in places), **paint))
        if verdict.endswith("adjusted"):
            targets = [y(point["system_timestamp"] - point["arrival"]) for point in points]
            d = "".join(_arrow(*place, target) for place, target in zip(places, targets, strict=True))
            arrows.append(element("path", d=d, stroke=color, stroke_width=1.2, fill=color))
    lines = _lines(picture, x, y)
    strokes = [element("path", d=path(places), fill="none", **_STROKES[name]) for name, places in lines.items()]
    ends = {name: places[-1][1] for name, places in lines.items() if 0 <= places[-1][1] <= _HEIGHT}
    marks = [
        *bottom_axis(_time_ticks(x), "arrival (UTC)", _WIDTH, _HEIGHT, grid=True),
        *left_axis(_duration_ticks(y), "time minus arrival", _WIDTH, _HEIGHT, grid=True),
        clipped("".join([*strokes, *arrows]), _WIDTH, _HEIGHT),
        *events,
        *(Text(name, _WIDTH + 5, height + 4, color=INK) for name, height in _apart(ends).items()),
        *legend(symbols, _WIDTH),
    ]
    return Chart(_WIDTH, _HEIGHT, marks)


def _drawn_offset(point: Mapping[str, Any], lowest: float, highest: float) -> float:
    """Return the time of an event minus its arrival, or the end of the axis that it is beyond."""
    return lowest if point["time"] is None else min(max(point["time"] - point["arrival"], lowest), highest)


def _arrow(x: float, y: float, target: float) -> str:
    """Return a vertical arrow as a part of a path."""
    return f"M{number(x)},{number(y)}V{number(target)}l-3.5,{6 if target < y else -6}h7l-3.5,{-6 if target < y else 6}"


def _lines(picture: Mapping[str, Any], x: Scale, y: Scale) -> dict[str, list[tuple[float, float]]]:
    """Return the places of the arrival, the bounds and the watermark; levels beyond the axis are left out."""
    levels = {"early bound": picture["early_bound"], "arrival": 0, "late bound": picture["late_bound"]}
    lines = {
        name: [(0.0, y(level)), (_WIDTH, y(level))]
        for name, level in levels.items()
        if level is not None and is_shown(picture, level)
    }
    known = [point for point in picture["points"] if point["watermark"] is not None]
    if picture["one_watermark"] and known:
        lines["watermark"] = [(x(point["x"]), y(point["watermark"] - point["arrival"])) for point in known]
    return lines


def is_shown(picture: Mapping[str, Any], level: float) -> bool:
    """Return whether a time minus its arrival, in milliseconds, is on the axis of a watermark picture."""
    return bool(picture["lowest"] <= level <= picture["highest"])


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """Return where labels at these heights can be read: near them, and so far apart that none covers another."""
    placed = dict(sorted(heights.items(), key=lambda item: item[1]))
    free = 0.0
    for name, height in placed.items():
        placed[name] = max(height, free)
        free = placed[name] + _LABEL_HEIGHT
    free = _HEIGHT
    for name, height in reversed(placed.items()):
        placed[name] = min(height, free)
        free = placed[name] - _LABEL_HEIGHT
    return placed


def _time_ticks(x: Scale) -> dict[float, str]:
    """Return ticks at round instants; the scale is of milliseconds since 1970, UTC."""
    step = max(_step(x.last - x.first), 1000)
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < 86_400_000 else "%Y-%m-%d"
    times = _multiples(step, x.first, x.last)
    return {x(time): datetime.fromtimestamp(time / 1000, UTC).strftime(form) for time in times}


def _duration_ticks(y: Scale) -> dict[float, str]:
    """Return ticks at round durations; the scale is of milliseconds."""
    values = _multiples(_step(y.last - y.first), y.first, y.last)
    return {y(value): duration(value / 1000) for value in values}


def _step(length: float) -> int:
    """Return the distance of the ticks on an axis of time; both are in milliseconds."""
    longest = _STEPS[-1]
    step = next((step for step in _STEPS if length / step <= _MOST_TICKS), None)
    return longest * math.ceil(length / (longest * _MOST_TICKS)) if step is None else step


def _multiples(step: int, start: float, end: float) -> list[int]:
    return list(range(math.ceil(start / step) * step, math.floor(end) + 1, step))
