"""The oracle's windows and aggregates: rule by rule, on Microsoft's figures, and on output of the ASA runtime."""

import json
import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.ticks import from_datetime, from_seconds
from tests import oracle
from tests.oracle_windows import (
    Event,
    Hopping,
    Session,
    Sliding,
    Snapshot,
    Window,
    average,
    collect,
    collect_top,
    contents,
    count,
    count_distinct,
    deviation,
    ending_in,
    greatest,
    least,
    percentile_cont,
    percentile_disc,
    top_one,
    total,
    variance,
)
from tests.paths import VECTORS
from tests.time_model.streams import NOON, policies, streams


def vector(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((VECTORS / name).read_text())
    return content


def at(*times: int) -> list[Event]:
    return [Event(time, {"n": n}) for n, time in enumerate(times)]


def of(field: str, *values: Any) -> list[Event]:
    return [Event(n, {field: value, "n": n}) for n, value in enumerate(values)]


def times(events: list[Event], window: Window, **how: Any) -> dict[int, list[int]]:
    """Return the times in each window, by the window's end."""
    return {row.end: [event.time for event in row.members] for row in contents(events, window, **how)}


def test_hopping_windows_reproduce_the_output_of_the_asa_runtime() -> None:
    run = vector("golden_asa_taxi/run1.json")
    events = [Event(from_datetime(datetime.fromisoformat(time)), {"place": place}) for time, place in run["events"]]
    rows = contents(events, Hopping(from_seconds(60), from_seconds(5)), ("place",))
    expected = {(from_datetime(datetime.fromisoformat(end)), place): count for end, place, count in run["expected"]}
    assert {(row.end, *row.group): len(row.members) for row in rows} == expected


@pytest.mark.parametrize(("window", "hop"), [("tumbling", 100), ("hopping", 50)])
def test_tumbling_and_hopping_windows_reproduce_their_figures(window: str, hop: int) -> None:
    figure = vector("windows/tumbling_hopping_figures.json")
    events = [Event(int(event["t"] * 10), {"label": event["label"]}) for event in figure["input"]]
    rows = ending_in(contents(events, Hopping(100, hop)), 50, 300)
    expected = {10 * box["end"]: box["labels"] for box in figure[window]["expected"]}
    assert {row.end: collect(row.members, "label") for row in rows} == expected


@pytest.mark.parametrize(
    ("instants", "window", "counts"),
    [
        ((100, 117, 150, 150, 266), Sliding(100), {100: 1, 117: 2, 150: 4, 200: 3, 217: 2, 266: 1}),
        ((5, 5, 5, 5, 10, 10, 13, 20, 20), Snapshot(), {5: 4, 10: 2, 13: 1, 20: 2}),
    ],
)
def test_a_window_reproduces_its_figure(instants: tuple[int, ...], window: Window, counts: dict[int, int]) -> None:
    assert {end: len(inside) for end, inside in times(at(*instants), window).items()} == counts


RULES: dict[str, list[tuple[tuple[int, ...], Window, dict[int, list[int]]]]] = {
    "a sliding window reproduces the example that the documentation spells out": [
        ((34, 38, 42), Sliding(5), {34: [34], 38: [34, 38], 39: [38], 42: [38, 42], 43: [42]}),
    ],
    "a session window reproduces its figure": [
        (
            (13, 39, 127, 152, 195, 242, 265, 340),
            Session(50, 100),
            {89: [13, 39], 300: [127, 152, 195, 242, 265], 390: [340]},
        ),
    ],
    "the end of a window belongs to it and its start does not": [
        ((10, 11, 20), Hopping(10, 10), {10: [10], 20: [11, 20]}),
        ((10, 20), Sliding(10), {10: [10], 20: [20]}),
    ],
    "an offset moves the ends": [
        ((10, 14), Hopping(10, 10, offset=3), {13: [10], 23: [14]}),
        ((10, 14), Hopping(10, 10, offset=-1), {19: [10, 14]}),
        ((9, 10), Hopping(10, 10, offset=-1), {9: [9], 19: [10]}),
    ],
    "a hop longer than the window leaves events out": [((1, 8, 10, 11), Hopping(3, 10), {10: [8, 10]})],
    "an event that enters as another leaves changes a sliding window": [((10, 15), Sliding(5), {10: [10], 15: [15]})],
    "a gap as long as the timeout extends a session": [((1, 6, 12), Session(5, 100), {11: [1, 6], 17: [12]})],
    "a session is cut at the first multiple a maximum duration after its first event": [
        ((11, 15, 20, 25, 30, 31), Session(5, 10), {30: [11, 15, 20, 25, 30], 36: [31]}),
        ((10, 15, 20, 21), Session(5, 10), {20: [10, 15, 20], 26: [21]}),
    ],
}
"""Windows of events at some instants: the times in each window, by its end."""


@pytest.mark.parametrize("rule", RULES)
def test_a_window_holds_what_its_rule_says(rule: str) -> None:
    for instants, window, expected in RULES[rule]:
        assert times(at(*instants), window) == expected


def test_session_windows_reproduce_the_output_of_a_live_job() -> None:
    """Timeout 3 minutes, maximum duration 15 minutes; one device. The result has whole seconds."""
    run = vector("windows/session_real_output.json")
    minute = 60_000
    rows = contents(at(*run["event_times_ms"]), Session(3 * minute, 15 * minute))

    def milliseconds(clock: str) -> int:
        return round(datetime.fromisoformat(f"2018-04-12T{clock}+00:00").timestamp() * 1000)

    assert [(row.members[0].time, row.end) for row in rows] == [
        (milliseconds(session["first_event"]), milliseconds(session["window_end"])) for session in run["expected"]
    ]
    assert [row.end // 1000 - row.members[0].time // 1000 for row in rows] == [
        session["seconds"] for session in run["expected"]
    ]


def test_a_sliding_window_holds_its_own_group_alone() -> None:
    events = [Event(10, {"k": "a"}), Event(12, {"k": "b"})]
    rows = contents(events, Sliding(5), ("k",))
    assert [(row.end, row.group, len(row.members)) for row in rows] == [(10, ("a",), 1), (12, ("b",), 1)]


def test_each_partition_key_has_its_own_sessions_which_are_then_grouped() -> None:
    events = [Event(1, {"k": "a"}), Event(4, {"k": None}), Event(7, {"k": "a"})]
    rows = contents(events, Session(5, 100), ("k",))
    assert [(row.end, row.group, len(row.members)) for row in rows] == [(12, ("a",), 2), (12, (None,), 1)]
    rows = contents(events, Session(5, 100, over=("k",)), ("k",))
    assert [(row.end, row.group, len(row.members)) for row in rows] == [
        (6, ("a",), 1),
        (12, ("a",), 1),
        (9, (None,), 1),
    ]


@given(steps=st.lists(st.integers(0, 9), max_size=30), longest=st.integers(1, 12))
def test_each_event_is_in_one_session(steps: list[int], longest: int) -> None:
    events = at(*(sum(steps[:n]) for n in range(len(steps))))
    rows = contents(events, Session(min(5, longest), longest))
    assert [event for row in rows for event in row.members] == events
    assert len({row.end for row in rows}) == len(rows)


def test_only_the_ends_in_the_slice_are_rows() -> None:
    rows = contents(at(10, 20, 30), Hopping(10, 10))
    assert [row.end for row in ending_in(rows, 10, 20)] == [20]


def test_null_is_a_group_and_so_is_a_missing_field() -> None:
    rows = contents([Event(1, {"k": None}), Event(2, {}), Event(3, {"k": "a"})], Snapshot(), ("k",))
    assert [row.group for row in rows] == [(None,), (None,), ("a",)]


def test_aggregates_ignore_null() -> None:
    values = [None, 3, None, 1, 1]
    assert [count(values), count_distinct(values), total(values)] == [3, 2, 5]
    assert [least(values), greatest(values), average(values)] == [1, 3, 5 / 3]
    assert percentile_cont(values, "0.5") == 1.0
    assert percentile_disc(values, "1") == 3


def test_aggregates_of_nothing_but_null_are_null_except_the_counts() -> None:
    assert [count([None]), count_distinct([None])] == [0, 0]
    for aggregate in (total, average, least, greatest, deviation, variance):
        assert aggregate([None]) is None
    assert percentile_cont([None], "0.5") is None
    assert percentile_disc([None], "0.5") is None


def test_a_sum_of_bigints_is_a_bigint_and_with_a_float_it_is_a_float() -> None:
    assert str(total([1, 2])) == "3"
    assert str(total([1, 2.0])) == "3.0"


def test_the_variance_of_a_sample_needs_two_values_and_that_of_a_population_one() -> None:
    values = [2, 4, 4, 4, 5, 5, 7, 9]
    assert variance(values, population=True) == 4.0
    assert deviation(values, population=True) == 2.0
    assert variance(values) == 32 / 7
    assert deviation(values) == math.sqrt(32 / 7)
    assert [variance([3]), deviation([3])] == [None, None]
    assert [variance([3], population=True), deviation([3], population=True)] == [0.0, 0.0]


def test_percentiles_reproduce_the_example_of_the_documentation() -> None:
    availability = [0.98, 0.93, 0.78, 0.99, 0.89]
    assert percentile_cont(availability, "0.95") == pytest.approx(0.988)
    assert percentile_disc(availability, "0.95") == 0.99


def test_a_percentile_interpolates_or_is_the_first_value_whose_share_suffices() -> None:
    assert percentile_cont([10, 20, 40, 80], "0.5") == 30.0
    assert percentile_disc([10, 20, 40, 80], "0.5") == 20
    assert percentile_disc([10, 20, 40, 80], "0.5", descending=True) == 40
    assert percentile_cont([10, 20, 40, 80], "0.25", descending=True) == 50.0
    assert [percentile_disc([10, 20, 40, 80], portion) for portion in ("0", "0.25", "0.26", "1")] == [10, 10, 20, 80]


def test_the_top_follows_the_order_with_null_as_the_least_and_ties_in_arrival_order() -> None:
    members = of("x", 2, None, 5, 2)
    assert top_one(members, "n", ("x", "DESC")) == 2
    assert top_one(members, "n", ("x", "ASC")) == 1
    assert collect_top(members, 3, "n", ("x", "DESC")) == [
        {"rank": 1, "value": 2},
        {"rank": 2, "value": 0},
        {"rank": 3, "value": 3},
    ]
    assert [top["value"] for top in collect_top(members, 9, "x", ("x", "ASC"))] == [None, 2, 2, 5]


def test_a_second_field_orders_what_the_first_leaves_equal() -> None:
    members = [Event(1, {"a": 1, "b": 1}), Event(2, {"a": 1, "b": 2}), Event(3, {"a": 0, "b": 9})]
    assert [top["value"] for top in collect_top(members, 3, "b", ("a", "ASC"), ("b", "DESC"))] == [9, 2, 1]


def test_all_values_are_collected_by_time_including_null() -> None:
    assert collect([Event(2, {"x": 1}), Event(1, {"x": None}), Event(2, {"x": 3})], "x") == [None, 1, 3]


def test_the_windows_of_a_job_are_those_of_its_processed_events() -> None:
    sent = [oracle.Event("0", time, 0, time, payload={"k": None, "x": time}) for time in (1, 2, 3)]
    outcomes = [oracle.Outcome(event, "on_time", event.time) for event in sent[:2]]
    outcomes.append(oracle.Outcome(sent[2], "late_dropped"))
    (row,) = oracle.windows(outcomes, Hopping(10, 10), ("k",), 0, 10)
    assert (row.end, row.group, collect(row.members, "x")) == (10, (None,), [1, 2])


@given(drawn=st.data())
def test_every_event_is_counted_once_under_one_verdict(drawn: st.DataObject) -> None:
    """InputEvents is the sum of the verdicts (docs/time-model.md, section 5)."""
    policy = drawn.draw(policies())
    events = drawn.draw(streams(policy))
    last = max((event.arrival for event in events), default=NOON)
    metrics = oracle.slice_metrics(oracle.process(events, policy), NOON - 1, last)
    assert sum(row["InputEvents"] for row in metrics.values()) == len(events)
    for row in metrics.values():
        assert row["InputEvents"] == sum(row[verdict] for verdict in oracle.VERDICTS)
