"""The curves of an advice: which share of the events stays unchanged with neighbouring tolerances, a line for each key.

The axis has the share that changes, on a logarithmic scale from the bottom up, and names the rest: 90 %, 99 %, 99.9 %.
So lines that differ by a thousandth can be told apart next to those that differ by half.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from recapture.pages.axes import Scale, bottom_axis, left_axis, legend, symlog
from recapture.pages.svg import INK, MUTED, Chart, Text, element, path, shortened

_HEIGHT, _WIDTH = 230, 620
_TICK_HEIGHT = 16
"""Smallest distance of two ticks, so that their labels can be read."""
_MOST_BETWEEN = 8
"""Largest number of steps at equal distances on the axis."""
_COLOURS = ("--on-time", "--late", "--early", "--disorder", "--malformed")
_DASHES = ("none", "6,3", "2,2", "8,2,2,2", "4,4")
_POINT = "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0"
_FLAT = 0.005
"""Length of the axis if no event changes with any tolerance."""


def curve(name: str, labels: Sequence[str], own: str, shares: Mapping[str, Sequence[float]]) -> Chart:
    """Return the curves; there is at least one key.

    `name` is the tolerance that varies, `labels` are its distinct values as text, ascending, and `own` is that of the
    job. `shares` has for each key the share of unchanged events with each value, 0 to 1.
    """
    changed = [1 - share for key_shares in shares.values() for share in key_shares]
    margin = max(changed) / 20 or _FLAT
    lowest, highest = max(min(changed) - margin, 0), min(max(changed) + margin, 1)
    constant = min((value for value in changed if value > 0), default=highest)
    bands, y = Scale(0, len(labels), 0, _WIDTH), Scale(lowest, highest, 0, _HEIGHT, symlog(constant))
    tolerances = {bands(index + 0.5): label for index, label in enumerate(labels)}
    ticks = _ticks(y, constant)
    marks = [
        *bottom_axis(tolerances, name, _WIDTH, _HEIGHT, angle=-40),
        *left_axis({y(tick): _percent(tick, ticks) for tick in ticks}, "unchanged", _WIDTH, _HEIGHT, grid=True),
    ]
    symbols = []
    for number, (key, key_shares) in enumerate(shares.items()):
        color, dashes = f"var({_COLOURS[number % len(_COLOURS)]})", _DASHES[number % len(_DASHES)]
        stroke = {"stroke": color, "stroke_width": "2", "stroke_dasharray": dashes, "fill": "none"}
        places = list(zip(tolerances, (y(1 - share) for share in key_shares), strict=True))
        marks.append(element("path", d=path(places), **stroke))
        marks.append(element("path", d="".join(path([place]) + _POINT for place in places), fill=color))
        symbols.append((element("path", d="M-6,0h11", **stroke), shortened(key)))
    place, is_last = bands(labels.index(own) + 0.5), own == labels[-1]
    marks.append(element("line", x1=place, x2=place, y1=0, y2=_HEIGHT, stroke=MUTED, stroke_dasharray="3,3"))
    marks.append(Text("job", place + (-4 if is_last else 4), _HEIGHT - 6, "end" if is_last else "start", color=INK))
    return Chart(_WIDTH, _HEIGHT, [*marks, *legend(symbols, _WIDTH, "OVER")])


def _ticks(y: Scale, constant: float) -> list[float]:
    """Return round shares for the ticks of the axis."""
    lowest, highest = y.first, y.last
    decades = range(math.floor(math.log10(constant)), 1)
    steps = [factor * 10.0**exponent for factor in (1, 5, 2) for exponent in reversed(decades)]
    power = 10.0 ** math.floor(math.log10((highest - lowest) / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if (highest - lowest) / (factor * power) <= _MOST_BETWEEN)
    between = [number * step for number in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]
    ticks: list[float] = []
    for candidate in (0.0, *steps, *between):
        is_apart = all(abs(y(candidate) - y(tick)) >= _TICK_HEIGHT for tick in ticks)
        if lowest <= candidate <= highest and is_apart:
            ticks.append(round(candidate, 12))
    return sorted(ticks)


def _percent(changed: float, ticks: Iterable[float]) -> str:
    """Return the share that is unchanged as text, with as many decimals as tell the ticks apart."""
    ticks = list(ticks)
    digits = next(
        digits for digits in range(12) if len({f"{100 * (1 - tick):.{digits}f}" for tick in ticks}) == len(ticks)
    )
    return f"{100 * (1 - changed):.{digits}f} %"
