"""What a drawn picture shows, read from its SVG: its size, and where its texts stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from hypothesis import strategies as st

from recapture.pages.svg import Chart

_SVG = "{http://www.w3.org/2000/svg}"
_TRANSFORM = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_LETTER = 0.4
"""Width of a letter in units of the font size; a proportional font has few that are narrower."""
_ROUNDING = 1.0

Matrix = tuple[float, float, float, float, float, float]
"""a, b, c, d, e, f: a point (x, y) is drawn at (ax + cy + e, bx + dy + f)."""
_SAME: Matrix = (1, 0, 0, 1, 0, 0)


@dataclass(frozen=True)
class Text:
    """A text of a picture, and the ends of its base line."""

    content: str
    start: tuple[float, float]
    end: tuple[float, float]


@dataclass(frozen=True)
class Drawn:
    """A picture."""

    width: float
    height: float
    texts: tuple[Text, ...]

    @property
    def outside(self) -> list[Text]:
        """The texts that begin or end outside the picture."""
        return [text for text in self.texts if not (self._has(text.start) and self._has(text.end))]

    def _has(self, point: tuple[float, float]) -> bool:
        x, y = point
        return -_ROUNDING <= x <= self.width + _ROUNDING and -_ROUNDING <= y <= self.height + _ROUNDING


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=300)
"""Names of devices and partitions."""


def drawn(chart: Chart) -> Drawn:
    """Draw a chart, and require that it is a picture and not a tower, with all of its texts."""
    picture = read(chart.svg("a chart"))
    assert picture.height <= 2 * picture.width
    assert picture.outside == []
    return picture


def read(picture: str) -> Drawn:
    """Return what the SVG of a picture shows."""
    root = ElementTree.fromstring(picture)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    return Drawn(width, height, tuple(_texts(root, _SAME)))


def _texts(element: ElementTree.Element, outer: Matrix) -> Iterator[Text]:
    matrix = _times(outer, _matrix(element.attrib.get("transform", "")))
    if element.tag == f"{_SVG}text" and (content := "".join(element.itertext())):
        length = _LETTER * float(element.attrib["font-size"].removesuffix("px")) * len(content)
        before = {"end": length, "middle": length / 2}.get(element.attrib.get("text-anchor", "start"), 0)
        yield Text(content, _at(matrix, -before), _at(matrix, length - before))
    for child in element:
        yield from _texts(child, matrix)


def _at(matrix: Matrix, x: float) -> tuple[float, float]:
    a, b, _, _, e, f = matrix
    return a * x + e, b * x + f


def _matrix(transform: str) -> Matrix:
    from math import cos, radians, sin

    matrix = _SAME
    for name, arguments in _TRANSFORM.findall(transform):
        values = [float(value) for value in arguments.replace(",", " ").split()]
        if name == "translate":
            step: Matrix = (1, 0, 0, 1, values[0], values[1] if len(values) > 1 else 0)
        elif name == "scale":
            step = (values[0], 0, 0, values[-1], 0, 0)
        else:
            angle = radians(values[0])
            step = (cos(angle), sin(angle), -sin(angle), cos(angle), 0, 0)
        matrix = _times(matrix, step)
    return matrix


def _times(outer: Matrix, inner: Matrix) -> Matrix:
    a, b, c, d, e, f = outer
    a2, b2, c2, d2, e2, f2 = inner
    return a * a2 + c * b2, b * a2 + d * b2, a * c2 + c * d2, b * c2 + d * d2, a * e2 + c * f2 + e, b * e2 + d * f2 + f
