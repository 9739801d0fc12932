"""The curves of an advice as they are drawn: lines that differ are apart, and every text is inside the picture."""

import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.pages.page import duration
from recapture.tools.advise.curves import curve
from recapture.tools.advise.tolerances import LATE
from tests.draws import slow
from tests.pages.drawn import NAMES, Drawn, drawn

LABELS = [*map(duration, LATE), "no limit"]


def drawn_curve(shares: Mapping[str, Sequence[float]], labels: Sequence[str], own: str) -> Drawn:
    return drawn(curve("late tolerance", labels, own, shares))


@slow(60)
@given(st.data())
def test_curves_are_never_tall_and_have_all_their_texts(data: st.DataObject) -> None:
    labels = LABELS[: data.draw(st.integers(1, len(LABELS)))]
    events = data.draw(st.sampled_from([1, 10, 10**4, 10**9]))
    line = st.lists(st.integers(0, events).map(lambda kept: kept / events), min_size=len(labels), max_size=len(labels))
    names = NAMES.map(lambda name: name[:60])
    shares = data.draw(st.dictionaries(names, line, min_size=1, max_size=5))
    shown = drawn_curve(shares, labels, data.draw(st.sampled_from(labels)))
    assert sum("%" in text.content for text in shown.texts) >= 1


@pytest.mark.parametrize(
    ("shares", "ticks"),
    [
        ([0.9927, 0.9942], {"99.30 %", "99.40 %"}),
        ([0.0, 0.5, 0.99, 0.999, 1.0], {"0.0 %", "50.0 %", "90.0 %", "99.0 %", "99.9 %", "100.0 %"}),
        ([1.0, 1.0], {"99.5 %", "100.0 %"}),
    ],
)
def test_the_axis_has_the_shares_between_which_the_curves_run(shares: list[float], ticks: set[str]) -> None:
    labels = LABELS[: len(shares)]
    assert ticks <= {text.content for text in drawn_curve({"none": shares}, labels, labels[0]).texts}


def test_lines_that_differ_by_a_thousandth_are_apart_next_to_one_that_is_far_below() -> None:
    labels = LABELS[:3]
    picture = curve("late", labels, labels[0], {"none": [0.2] * 3, "a": [0.9927] * 3, "b": [0.9942] * 3}).svg("lines")
    heights = sorted(float(height) for height in re.findall(r'<path d="M[\d.]+,([\d.]+)L[^"]*" stroke="var', picture))
    assert len(heights) == 3
    assert heights[1] - heights[0] > 3
