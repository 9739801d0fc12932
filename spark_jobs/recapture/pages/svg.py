"""Charts of a page as inline SVG: marks on a plot, and text around it.

Colours are the variables of the style sheet, such as `var(--ink)`, so one chart serves light, dark and print. Positions
and lengths are pixels; positions are relative to the upper left corner of the plot.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Literal

from recapture.pages.page import require_installed

if TYPE_CHECKING:
    from markupsafe import Markup

INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
LONGEST_NAME = 24
"""Largest number of characters of a name in a chart."""
Anchor = Literal["start", "middle", "end"]
"""The part of a text that is at its position."""
_FONT = "system-ui, sans-serif"
_PADDING = 5
_NARROW = frozenset("fijlrt .,:;'|!()[]-")
_MEDIUM = frozenset("abcdeghknopqsuvxyz0123456789_/")


@dataclass(frozen=True)
class Text:
    """A line of text."""

    content: str
    x: float
    """Position of its `anchor`."""
    y: float
    """Position of its base line."""
    anchor: Anchor = "start"
    size: float = 11
    color: str = MUTED
    angle: float = 0
    """Degrees by which the text is turned clockwise around its anchor."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom edge."""
        length = text_width(self.content, self.size)
        before = {"start": 0, "middle": length / 2, "end": length}[self.anchor]
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        corners = [(along, down) for along in (-before, length - before) for down in (-self.size, 0.3 * self.size)]
        xs = [self.x + cos * along - sin * down for along, down in corners]
        ys = [self.y + sin * along + cos * down for along, down in corners]
        return min(xs), min(ys), max(xs), max(ys)

    def __str__(self) -> str:
        return element(
            "text",
            escape(self.content),
            transform=translation(self.x, self.y) + (f"rotate({number(self.angle)})" if self.angle else ""),
            text_anchor=self.anchor,
            font_size=self.size,
            fill=self.color,
        )


Mark = str | Text
"""A text, or an SVG element."""


@dataclass(frozen=True)
class Chart:
    """A plot with a frame, the marks on it, and the text around it."""

    width: float
    height: float
    marks: Sequence[Mark]

    def svg(self, label: str) -> "Markup":
        """Return the chart for a template, so large that its plot and text are inside.

        `label` says in a sentence what the chart shows; a screen reader reads it instead.
        """
        require_installed()
        from markupsafe import Markup

        boxes = [mark.box for mark in self.marks if isinstance(mark, Text)]
        lefts, tops, rights, bottoms = zip((0, 0, self.width, self.height), *boxes, strict=True)
        left, top = (math.ceil(_PADDING - min(edges)) + 0.5 for edges in (lefts, tops))  # lines of 1 px are sharp
        width, height = math.ceil(left + max(rights) + _PADDING), math.ceil(top + max(bottoms) + _PADDING)
        frame = element("rect", width=self.width, height=self.height, fill="none", stroke=LINE)
        plot = element("g", frame + "".join(map(str, self.marks)), transform=translation(left, top))
        size = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
        xmlns = "http://www.w3.org/2000/svg"
        return Markup(element("svg", plot, role="img", aria_label=label, xmlns=xmlns, font_family=_FONT, **size))


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """Return an element. In the names of attributes, _ becomes -; `content` is not escaped."""
    written = "".join(
        f' {name.replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def clipped(content: str, width: float, height: float) -> str:
    """Return elements without what is outside a plot of this size. The id of the clip path is a digest of them."""
    identifier = f"clip-{sha256(content.encode()).hexdigest()[:12]}"
    clip = element("clipPath", element("rect", width=width, height=height), id=identifier)
    return clip + element("g", content, clip_path=f"url(#{identifier})")


def path(places: Iterable[tuple[float, float]]) -> str:
    """Return the `d` of a path through these places."""
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in places)


def translation(x: float, y: float) -> str:
    """Return the `transform` that moves an element to a place."""
    return f"translate({number(x)},{number(y)})"


def number(value: float) -> str:
    """Return a number with two decimals and six digits at most."""
    return f"{round(value, 2) + 0:g}"


def text_width(text: str, size: float) -> float:
    """Return an estimate of how wide a text is. It is generous, because every browser has other fonts."""
    return size * sum(0.4 if letter in _NARROW else 0.65 if letter in _MEDIUM else 1.0 for letter in text)


def shortened(name: str) -> str:
    """Return a name for an axis or a legend: at most its first characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
