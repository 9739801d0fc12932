"""The charts of a report as they are drawn: none is tall and blank, and all texts and most events are inside."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from recapture.ordering.profile import DISORDER_BOUNDS, LATENESS_BOUNDS
from recapture.pages.svg import Chart
from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.policies import BEFORE_EVERYTHING, Policies
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, from_datetime, from_seconds
from recapture.tools.reports import charts
from recapture.tools.reports.timing import bins, label
from recapture.tools.reports.watermark import Picture, picture
from tests.draws import slow
from tests.pages.drawn import NAMES, drawn
from tests.tools.reports.samples import sampled
from tests.worlds import TEN

START = from_datetime(TEN)
DURATIONS = st.one_of(st.integers(-2_000, 5_000), st.integers(-600_000, 3_600_000), st.integers(-(10**10), 10**11))
"""How late an event is, in milliseconds: a little, by minutes, or by months."""


def sample(policies: Policies, events: Sequence[tuple[int, int | None]], devices: int) -> list[dict[str, Any]]:
    """Return events as the policies judge them: each with its arrival after ten and its lateness, in milliseconds."""
    ordered = sorted(events, key=lambda event: event[0])
    arrival = START + TICKS_PER_MILLISECOND * np.array([after for after, _ in ordered], np.int64)
    lateness = np.array([late or 0 for _, late in ordered], np.int64)
    time = arrival - TICKS_PER_MILLISECOND * lateness
    valid = np.array([late is not None for _, late in ordered], bool)
    judged = judge(policies, LargestTimes(), time, valid, arrival, None)
    return [
        sampled(
            int(arrival[index]),
            int(time[index]) if valid[index] else None,
            VERDICTS[judged.verdict[index]],
            index,
            system_timestamp=int(judged.system_timestamp[index]) if judged.processed[index] else None,
            largest_time=None if largest == BEFORE_EVERYTHING else int(largest),
            key=f"device-{index % devices}",
        )
        for index, largest in enumerate(judged.largest_time)
    ]


POLICIES = st.builds(
    Policies,
    st.sampled_from([0, 10, 599]).map(from_seconds),
    st.none() | st.sampled_from([0, 5, 300, 1_814_399]).map(from_seconds),
    st.none() | st.just(from_seconds(300)),
    st.booleans(),
    st.booleans(),
)
EVENTS = st.lists(st.tuples(st.integers(1, 3_600_000), st.none() | DURATIONS), min_size=1, max_size=60)


@slow(100)
@given(POLICIES, EVENTS, st.sampled_from([1, 3]), st.booleans())
def test_the_watermark_picture_is_never_tall_and_has_all_its_texts(
    policies: Policies, events: list[tuple[int, int | None]], devices: int, by_blob: bool
) -> None:
    shown = picture(sample(policies, events, devices), policies, by_blob=by_blob)
    if shown is not None:
        drawn(charts.watermark(shown.to_dict()))


def steady(policies: Policies, lateness: Sequence[int]) -> Picture:
    """Return the picture of an hour of events with this lateness in milliseconds, which repeats; one every 15 s."""
    events = [(15_000 * number + 1, lateness[number % len(lateness)]) for number in range(240)]
    shown = picture(sample(policies, events, 1), policies, by_blob=False)
    assert shown is not None
    return shown


@given(POLICIES, st.lists(DURATIONS, min_size=1, max_size=40))
def test_nine_of_ten_events_are_inside_a_picture_and_fill_a_ninth_of_it(
    policies: Policies, lateness: list[int]
) -> None:
    shown = steady(policies, lateness)
    inside = [point.time - point.arrival for point in shown.points if point.time is not None]
    inside = [offset for offset in inside if shown.lowest <= offset <= shown.highest]
    assert len(inside) >= 0.9 * len(shown.points)
    spread = max(max(inside) - min(inside), from_seconds(1))
    assert spread >= (shown.highest - shown.lowest) / 10


def test_a_bound_far_from_the_events_is_not_drawn_and_one_that_is_near_is() -> None:
    policies = Policies(0, from_seconds(300), from_seconds(300), adjust=True)
    texts = [text.content for text in drawn(charts.watermark(steady(policies, [500, 900]).to_dict())).texts]
    assert "late bound" not in texts
    assert {"arrival", "watermark"} <= set(texts)
    texts = [text.content for text in drawn(charts.watermark(steady(policies, [500, 280_000]).to_dict())).texts]
    assert {"late bound", "arrival", "watermark"} <= set(texts)


def test_labels_of_lines_do_not_cover_each_other() -> None:
    policies = Policies(0, from_seconds(1), from_seconds(1), adjust=True)
    lines = ("late bound", "arrival", "watermark", "early bound")
    shown = charts.watermark(steady(policies, [0, 60_000]).to_dict())
    heights = sorted(text.start[1] for text in drawn(shown).texts if text.content in lines)
    assert len(heights) == len(lines)
    assert all(below - above >= 11 for above, below in pairwise(heights))


COUNTS = st.integers(0, 20) | st.integers(0, 10**10)


@slow(60)
@given(st.sampled_from([LATENESS_BOUNDS, DISORDER_BOUNDS]), st.data())
def test_a_histogram_is_never_tall_and_has_all_its_texts(bounds: tuple[int, ...], data: st.DataObject) -> None:
    counts = data.draw(st.lists(COUNTS, min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    first = data.draw(st.integers(0, len(bounds)))
    last = data.draw(st.integers(first, len(bounds)))
    filled = [
        {"label": label(bin_), "events": bin_["events"], "color": "var(--late)"} for bin_ in bins(bounds, counts)
    ][first : last + 1]
    drawn(charts.histogram(filled, "time behind the largest so far"))


def test_the_axis_of_a_histogram_has_whole_numbers_of_events() -> None:
    few = [{"label": "to 1 s", "events": 3, "color": "red"}, {"label": "to 5 s", "events": 1, "color": "red"}]
    many = [few[0] | {"events": 1_250_000}, few[1]]
    assert axis(charts.histogram(few, "lateness")) == ["0", "1"]
    assert axis(charts.histogram(many, "lateness")) == ["0", "10", "1k", "100k"]


def axis(chart: Chart) -> list[str]:
    """Return the labels of the left axis, from the bottom up."""
    texts = drawn(chart).texts
    left = min(text.end[0] for text in texts if text.content == "0")
    labels = [text for text in texts if abs(text.end[0] - left) < 0.01]
    return [text.content for text in sorted(labels, key=lambda text: -text.end[1])]


@slow(60)
@given(st.lists(NAMES, min_size=2, max_size=80, unique=True), st.data())
def test_the_bars_of_a_ledger_are_never_tall_and_have_all_their_texts(names: list[str], data: st.DataObject) -> None:
    parts = (charts.DUPLICATES[0], *VERDICTS)
    rows = [{"name": name, **{part: data.draw(COUNTS) for part in parts}} for name in names[:12]]
    rows += [rows[0] | {"name": name} for name in names[12:]]
    assume(any(row[part] for row in rows for part in parts))
    drawn(charts.bars(rows, "name"))


def test_a_long_name_is_cut_between_characters_and_names_that_begin_alike_have_bars_of_their_own() -> None:
    counts = {**dict.fromkeys((charts.DUPLICATES[0], *VERDICTS), 0), "on_time": 1}
    rows = [{"name": "\N{DELIVERY TRUCK}" * 300 + number, **counts} for number in "12"]
    contents = [text.content for text in drawn(charts.bars(rows, "name")).texts]
    assert contents.count("\N{DELIVERY TRUCK}" * 23 + "…") == 2


def test_the_bars_of_few_events_have_whole_numbers_on_their_axis() -> None:
    rows = [{"name": name, **dict.fromkeys((charts.DUPLICATES[0], *VERDICTS), 0), "on_time": 1} for name in "ab"]
    contents = [text.content for text in drawn(charts.bars(rows, "name")).texts]
    assert [content for content in contents if content.replace(".", "").isdigit()] == ["0", "1"]


def test_the_axis_of_bars_has_numbers_that_people_write() -> None:
    rows = [{"name": name, **dict.fromkeys((charts.DUPLICATES[0], *VERDICTS), 0), "on_time": 5000} for name in "ab"]
    contents = [text.content for text in drawn(charts.bars(rows, "name")).texts]
    assert [content for content in contents if content[0].isdigit()][-1] == "5,000"
    assert not [content for content in contents if "e+" in content]


def test_bars_of_some_parts_have_no_other_part() -> None:
    row = {**dict.fromkeys((charts.DUPLICATES[0], *VERDICTS), 0), "on_time": 5000, "malformed": 3}
    rows = [{"name": name, **row} for name in "ab"]
    contents = [text.content for text in drawn(charts.bars(rows, "name", ("malformed",))).texts]
    assert "malformed" in contents
    assert "on time" not in contents
    assert [content for content in contents if content.isdigit()] == ["0", "1", "2", "3"]
