"""Scales, axes and legends: places of values, and labels that do not cover each other."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recapture.pages.axes import Scale, bottom_axis, left_axis, legend, symlog
from recapture.pages.svg import Chart, Text, element
from tests.pages.drawn import drawn

VALUES = st.floats(-1e12, 1e12)
SHARES = st.floats(0, 1)


@given(VALUES, VALUES, VALUES)
def test_a_scale_is_linear_from_its_start_to_its_end(first: float, last: float, value: float) -> None:
    assume(abs(last - first) > 1e-3)
    scale = Scale(first, last, 400, 0)
    assert scale(first) == 400
    assert scale(last) == pytest.approx(0, abs=1e-9)
    value = min(max(value, min(first, last)), max(first, last))
    assert scale(value) == pytest.approx(400 * (last - value) / (last - first), abs=1e-6)


@given(SHARES, SHARES, st.floats(1e-9, 1))
def test_a_logarithmic_scale_keeps_the_order_and_begins_at_zero(one: float, other: float, constant: float) -> None:
    scale = Scale(0, 1, 0, 230, symlog(constant))
    assert 0 <= scale(one) <= 230
    assert (scale(one) <= scale(other)) == (one <= other) or math.isclose(scale(one), scale(other))


def test_far_above_its_constant_a_logarithmic_scale_has_equal_distances_for_equal_ratios() -> None:
    scale = Scale(0, 10**9, 0, 100, symlog())
    steps = [scale(10 ** (power + 1)) - scale(10**power) for power in range(3, 8)]
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3)


def labels(chart: Chart) -> list[str]:
    return [text.content for text in drawn(chart).texts]


@given(st.integers(1, 500), st.integers(1, 12), st.sampled_from([0, -45, -60]))
def test_labels_under_a_plot_do_not_cover_each_other_and_begin_with_the_first(
    count: int, length: int, angle: int
) -> None:
    ticks = {880 * (index + 0.5) / count: f"{index:0{length}}" for index in range(count)}
    texts = [mark for mark in bottom_axis(ticks, "", 880, 400, angle=angle) if isinstance(mark, Text)]
    assert texts[0].content == "0" * length
    boxes = [text.box for text in texts]
    if angle:
        assert all(right[2] - left[2] >= 13 for left, right in pairwise(boxes))
    else:
        assert all(right[0] > left[2] for left, right in pairwise(boxes))


@given(st.integers(1, 500))
def test_labels_left_of_a_plot_do_not_cover_each_other_and_begin_with_the_lowest(count: int) -> None:
    ticks = {400 - 400 * index / count: str(index) for index in range(count)}
    texts = [mark for mark in left_axis(ticks, "", 880, 400) if isinstance(mark, Text)]
    assert texts[0].content == "0"
    assert all(below.y - above.y >= 13 for below, above in pairwise(texts))


def test_an_axis_shows_every_label_that_has_space_and_its_title_after_them() -> None:
    ticks = {100.0: "one", 300.0: "two", 500.0: "three"}
    for axis in (bottom_axis, left_axis):
        assert labels(Chart(600, 600, list(axis(ticks, "title", 600, 600)))) == ["one", "two", "three", "title"]


def test_the_title_of_an_axis_is_beyond_its_longest_label() -> None:
    *texts, title = (
        mark for mark in left_axis({0: "0", 100: "1,000,000"}, "events", 600, 200) if isinstance(mark, Text)
    )
    assert title.box[2] < min(text.box[0] for text in texts)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=24), max_size=12), st.sampled_from(["", "OVER"]))
def test_a_legend_has_all_its_entries_in_order_and_ends_above_the_plot(names: list[str], title: str) -> None:
    marks = list(legend([(element("circle", r=5), name) for name in names], 300, title))
    texts = [mark for mark in marks if isinstance(mark, Text)]
    assert [text.content for text in texts] == [*filter(None, [title]), *names]
    assert all(text.box[3] < 0 for text in texts)
    for before, after in pairwise(texts):
        assert after.y > before.y or after.box[0] > before.box[2]
