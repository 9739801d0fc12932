"""The colours of pages: texts have enough contrast, in light, in dark and on paper."""

import re
from importlib.resources import files

import pytest

CSS = files("recapture.pages").joinpath("style.css").read_text("utf-8")
TEXTS = ("ink", "muted", "accent", "good", "warning", "bad")
FEWEST = 4.5
"""Smallest contrast of text: level AA of the Web Content Accessibility Guidelines (WCAG) 2.2."""
FEWEST_OF_MARKS = 3.0
"""Smallest contrast of graphics, likewise."""
MARKS = ("on-time", "late", "late-dropped", "early", "early-dropped", "disorder", "disorder-dropped", "malformed")


def schemes() -> dict[str, dict[str, str]]:
    """Return the colours of each scheme by name; those of print come last."""
    blocks = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    ]
    return dict(zip(("light", "dark", "print"), blocks, strict=True))


def luminance(color: str) -> float:
    channels = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_strings_and_marks_have_enough_contrast(scheme: str) -> None:
    colors = schemes()[scheme]
    backgrounds = [name for name in colors if name == "paper" or name.endswith("panel")]
    for background in backgrounds:
        assert contrast(colors["ink"], colors[background]) > FEWEST
    low = [
        (name, background)
        for background in ("paper", "panel")
        for name in TEXTS
        if contrast(colors[name], colors[background]) < FEWEST
    ]
    low += [(name, "paper") for name in MARKS if contrast(colors[name], colors["paper"]) < FEWEST_OF_MARKS]
    assert low == []


def test_every_scheme_has_every_colour() -> None:
    light, dark, paper = schemes().values()
    assert light.keys() == dark.keys() == paper.keys()
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS))
    assert used <= light.keys()
