"""The curves of an advice: which share of the events stays unchanged with neighbouring tolerances, a line for each key.

The axis has the share that changes, on a logarithmic scale from the bottom up, and names the rest: 90 %, 99 %, 99.9 %.
So lines that differ by a thousandth can be told apart next to those that differ by half.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recapture.pages.picture import shortened

_HEIGHT, _WIDTH = 230, 620
_TICK_HEIGHT = 16
"""Smallest distance of two ticks, so that their labels can be read."""
_MOST_BETWEEN = 8
"""Largest number of steps at equal distances on the axis."""
_COLOURS = ("--on-time", "--late", "--early", "--disorder", "--malformed")
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4])
_FLAT = 0.005
"""Length of the axis if no event changes with any tolerance."""


def curve(name: str, labels: Sequence[str], own: str, shares: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the curves as a Vega-Lite specification; there is at least one key.

    `name` is the tolerance that varies, `labels` are its distinct values as text, ascending, and `own` is that of the
    job. `shares` has for each key the share of unchanged events with each value, 0 to 1.
    """
    changed = [1 - share for key_shares in shares.values() for share in key_shares]
    margin = max(changed) / 20 or _FLAT
    lowest, highest = max(min(changed) - margin, 0), min(max(changed) + margin, 1)
    constant = min((value for value in changed if value > 0), default=highest)
    points = [
        {"tolerance": label, "changed": 1 - share, "key": number}
        for number, key_shares in enumerate(shares.values())
        for label, share in zip(labels, key_shares, strict=True)
    ]
    places = {"type": "point", "domain": list(labels)}
    x = {"field": "tolerance", "type": "ordinal", "title": name, "sort": list(labels), "scale": places}
    x["axis"] = {"labelAngle": -40}
    scale = {"type": "symlog", "constant": constant, "domain": [lowest, highest], "reverse": True, "nice": False}
    ticks = _ticks(lowest, highest, constant)
    texts = json.dumps([_percent(tick, ticks) for tick in ticks])
    axis = {"values": ticks, "labelExpr": f"{texts}[indexof({ticks}, datum.value)]", "titlePadding": 14}
    y = {"field": "changed", "type": "quantitative", "title": "unchanged", "scale": scale, "axis": axis}
    lines = {
        "data": {"values": points},
        "mark": {"type": "line", "point": {"size": 28}, "strokeWidth": 2, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "color": _by_key(shares, [f"var({colour})" for colour in _COLOURS]),
            "strokeDash": _by_key(shares, _DASHES),
        },
    }
    is_last = own == labels[-1]
    text = {"type": "text", "align": "right" if is_last else "left", "dx": -4 if is_last else 4, "y": _HEIGHT - 8}
    rule, label = (
        {"mark": {"type": "rule", "strokeDash": [3, 3]}},
        {"mark": text, "encoding": {"text": {"field": "label"}}},
    )
    job = {"data": {"values": [{"tolerance": own, "label": "job"}]}, "encoding": {"x": x}, "layer": [rule, label]}
    return {"width": _WIDTH, "height": _HEIGHT, "layer": [lines, job]}


def _by_key(keys: Iterable[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return an encoding that gives each key its own value."""
    names = [shortened(key) for key in keys]
    numbers = list(range(len(names)))
    legend = {"labelExpr": f"{json.dumps(names)}[datum.value]", "labelLimit": 0, "symbolType": "stroke"}
    scale = {"domain": numbers, "range": [values[number % len(values)] for number in numbers]}
    return {"field": "key", "type": "nominal", "title": "OVER", "scale": scale, "legend": legend}


def _ticks(lowest: float, highest: float, constant: float) -> list[float]:
    """Return round shares for the ticks of the axis."""
    decades = range(math.floor(math.log10(constant)), 1)
    steps = [factor * 10.0**exponent for factor in (1, 5, 2) for exponent in reversed(decades)]
    power = 10.0 ** math.floor(math.log10((highest - lowest) / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if (highest - lowest) / (factor * power) <= _MOST_BETWEEN)
    between = [number * step for number in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]
    length = _position(highest, constant) - _position(lowest, constant)
    ticks: list[float] = []
    for candidate in (0.0, *steps, *between):
        near = (abs(_position(candidate, constant) - _position(tick, constant)) for tick in ticks)
        if lowest <= candidate <= highest and all(_HEIGHT * gap / length >= _TICK_HEIGHT for gap in near):
            ticks.append(round(candidate, 12))
    return sorted(ticks)


def _position(changed: float, constant: float) -> float:
    """Return where a value is on a symlog scale."""
    return math.log1p(changed / constant)


def _percent(changed: float, ticks: Iterable[float]) -> str:
    """Return the share that is unchanged as text, with as many decimals as tell the ticks apart."""
    ticks = list(ticks)
    digits = next(
        digits for digits in range(12) if len({f"{100 * (1 - tick):.{digits}f}" for tick in ticks}) == len(ticks)
    )
    return f"{100 * (1 - changed):.{digits}f} %"
