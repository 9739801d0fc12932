"""Pictures of a page: Vega-Lite specifications as inline SVG.

Colours are the variables of the style sheet, such as `var(--ink)`, so one picture serves light, dark and print.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from recapture.errors import RunError
from recapture.pages.page import require_installed

if TYPE_CHECKING:
    from markupsafe import Markup

_INK, _MUTED, _LINE = "var(--ink)", "var(--muted)", "var(--line)"
_FONT = "system-ui, sans-serif"
CONFIG: Mapping[str, Any] = {
    "aria": False,
    "background": None,
    "font": _FONT,
    "view": {"stroke": _LINE},
    "axis": {
        "labelColor": _MUTED,
        "titleColor": _INK,
        "titleFontWeight": "normal",
        "domainColor": _LINE,
        "tickColor": _LINE,
        "gridColor": _LINE,
        "gridOpacity": 0.5,
        "labelFontSize": 11,
        "titleFontSize": 12,
    },
    "legend": {
        "labelColor": _INK,
        "titleColor": _INK,
        "titleFontWeight": "normal",
        "labelLimit": 400,
        "labelFontSize": 12,
        "columnPadding": 20,
    },
    "header": {"labelColor": _INK, "titleColor": _INK},
    "title": {"color": _INK, "subtitleColor": _MUTED, "fontSize": 13, "anchor": "start"},
    "text": {"color": _INK},
    "rule": {"color": _MUTED},
    "mark": {"color": "var(--accent)"},
}
LONGEST_NAME = 24
"""Largest number of characters of a name in a picture."""


class Picture(Protocol):
    """A picture for a template, such as Markup. It may still be drawn."""

    def __html__(self) -> str:
        """Return the picture. Raise RunError if it cannot be drawn."""


Draw = Callable[[Mapping[str, Any], str], Picture]
"""Draws a picture, as `svg` does."""
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'\sid="([^"]+)"')
_REFERENCE = re.compile(r'(\sid="|url\(#|href="#)([^")]+)')
_DIGITS = re.compile(r"\d+\.\d{3,}")
_UNNEEDED = re.compile(r' (?:class|role|aria-\w+|pointer-events|opacity)="(?:[^"0][^"]*)?"(?=[\s/>])')
"""Attributes that change nothing: the picture has one label, and only an opacity of 0 or less than 1 starts with 0."""
_UNSEEN = re.compile(r'<text [^>]*\bopacity="0"[^>]*>[^<]*</text>|<path [^>]*\bdisplay="none"[^>]*/>')


def load() -> None:
    """Load what draws pictures. That takes half a second, during which no other thread of Python runs."""
    svg({"data": {"values": []}, "mark": "bar"}, "nothing")


def svg(specification: Mapping[str, Any], label: str) -> "Markup":
    """Return the picture of a Vega-Lite specification, with its data inside, for a template.

    `label` says in a sentence what the picture shows; a screen reader reads it instead. Texts are escaped. Data from
    elsewhere is not loaded. Axes of time need `"scale": {"type": "utc"}`. Raise RunError if it cannot be drawn.
    """
    require_installed()
    import vl_convert
    from markupsafe import Markup

    complete = {**specification, "config": {**CONFIG, **specification.get("config", {})}}
    try:
        drawn = vl_convert.vegalite_to_svg(complete, allowed_base_urls=[])
    except ValueError as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"a picture of the page cannot be drawn ({reason}): {label}") from error
    digest = hashlib.sha256(json.dumps(complete, sort_keys=True).encode()).hexdigest()
    return Markup(_for_page(drawn, label, f"p{digest[:8]}-"))


def shortened(name: str) -> str:
    """Return a name for an axis or a legend: at most its first characters. Vega may cut a character in two."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _for_page(drawn: str, label: str, prefix: str) -> str:
    """Return a picture with its label, rounded and without what is unseen. Its ids begin with `prefix`.

    vl_convert numbers the ids of all pictures of the process. Only tags are changed: in texts, < and > are escaped.
    """
    drawn = _UNSEEN.sub("", drawn)
    ids = dict.fromkeys(identifier for tag in _TAG.findall(drawn) for identifier in _ID.findall(tag))
    own = {identifier: f"{prefix}{number}" for number, identifier in enumerate(ids)}

    def for_page(tag: re.Match[str]) -> str:
        short = _DIGITS.sub(lambda digits: f"{float(digits[0]):.2f}", _UNNEEDED.sub("", tag[0]))
        return _REFERENCE.sub(lambda match: match[1] + own.get(match[2], match[2]), short)

    return _TAG.sub(for_page, drawn).replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
