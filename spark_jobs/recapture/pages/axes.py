"""Scales, axes and legends of charts. Positions and lengths are pixels."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise

from recapture.pages.svg import INK, LINE, Anchor, Mark, Text, element, number, text_width, translation

_LINE_HEIGHT = 13
"""Smallest distance of labels that are above each other."""
_BETWEEN = 12
"""Smallest distance of labels that are next to each other."""
_TICK = 5
_TITLE_SIZE = 12
_SYMBOL = 14
"""Width of a symbol in a legend."""
_LEGEND_LINE = 18


@dataclass(frozen=True)
class Scale:
    """A mapping from values to positions."""

    first: float
    """Value at `start`."""
    last: float
    """Value at `end`."""
    start: float
    end: float
    transform: Callable[[float], float] = float
    """Function of a value, such as math.log. The position is linear in its result."""

    def __call__(self, value: float) -> float:
        first, last, place = map(self.transform, (self.first, self.last, value))
        return self.start + (self.end - self.start) * (place - first) / (last - first)


def symlog(constant: float = 1) -> Callable[[float], float]:
    """Return the transform of a scale that begins at 0: logarithmic, but linear far below `constant`."""
    return lambda value: math.log1p(value / constant)


def bottom_axis(
    ticks: Mapping[float, str], title: str, width: float, height: float, *, grid: bool = False, angle: float = 0
) -> Iterator[Mark]:
    """Yield the axis under a plot of this size; `ticks` has the label of each position.

    If labels would overlap, only every second or third tick and so on is shown.
    """
    if angle:
        space = _LINE_HEIGHT / abs(math.sin(math.radians(angle)))
    else:
        space = max((text_width(label, Text.size) for label in ticks.values()), default=0) + _BETWEEN
    shown = _apart(ticks, space)
    yield from _lines((f"M{round(x)},{number(height)}" for x in shown), f"v-{number(height)}" if grid else "", "v")
    anchor: Anchor = "end" if angle else "middle"
    right, down = (4, 15) if angle else (0, 18)
    labels = [Text(label, x + right, height + down, anchor, angle=angle) for x, label in shown.items()]
    yield from labels
    lowest = max((label.box[3] for label in labels), default=height)
    if title:
        yield Text(title, width / 2, lowest + 12, "middle", _TITLE_SIZE, INK)


def left_axis(
    ticks: Mapping[float, str], title: str, width: float, height: float, *, grid: bool = False
) -> Iterator[Mark]:
    """Yield the axis to the left of a plot of this size, as `bottom_axis` yields the one under it."""
    shown = _apart(ticks, _LINE_HEIGHT)
    yield from _lines((f"M0,{round(y)}" for y in shown), f"h{number(width)}" if grid else "", "h-")
    labels = [Text(label, -8, y + 4, "end") for y, label in shown.items()]
    yield from labels
    leftmost = min((label.box[0] for label in labels), default=0)
    if title:
        yield Text(title, leftmost - 10, height / 2, "middle", _TITLE_SIZE, INK, -90)


def legend(entries: Iterable[tuple[str, str]], width: float, title: str = "") -> Iterator[Mark]:
    """Yield a legend above a plot of this width, in as many lines as it needs.

    Each entry has the element of a symbol, which is 10 px wide around its origin, and a label.
    """
    start = text_width(title, _TITLE_SIZE) + _BETWEEN if title else 0
    x, line = start, 0
    places = []
    for symbol, label in entries:
        length = _SYMBOL + text_width(label, _TITLE_SIZE) + _BETWEEN
        if x > start and x + length > width:
            x, line = start, line + 1
        places.append((symbol, label, x, line))
        x += length
    top = -12 - _LEGEND_LINE * line
    if title:
        yield Text(title, 0, top, size=_TITLE_SIZE, color=INK)
    for symbol, label, x, line in places:
        y = top + _LEGEND_LINE * line
        yield element("g", symbol, transform=translation(x + 5, y - 4))
        yield Text(label, x + _SYMBOL, y, size=_TITLE_SIZE, color=INK)


def _apart(ticks: Mapping[float, str], space: float) -> dict[float, str]:
    """Return every n-th tick, with the smallest n that leaves this space between them."""
    for step in count(1):
        shown = list(ticks.items())[::step]
        if all(abs(other - place) >= space for (place, _), (other, _) in pairwise(shown)):
            break
    return dict(shown)


def _lines(starts: Iterable[str], grid: str, outwards: str) -> Iterator[Mark]:
    """Yield the lines of a grid, and the ticks outside the plot; they start at the same places."""
    starts = list(starts)
    if grid:
        yield element("path", d="".join(start + grid for start in starts), stroke=LINE, stroke_opacity=0.5)
    yield element("path", d="".join(f"{start}{outwards}{_TICK}" for start in starts), stroke=LINE)
