"""The policies (docs/time-model.md, section 2): one sentence for each rule, and the fast path against the oracle."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.policies import Policies
from recapture.time_model.ticks import LARGEST, from_seconds
from tests.draws import examples
from tests.oracle import Event, Implementation, Policy, process, slice_metrics
from tests.time_model.fast_path import judge_in_chunks
from tests.time_model.streams import NOON, policies, streams

SECOND = from_seconds(1)


def policy(
    out_of_order: int = 0, late: int | None = 60, early: int | None = 300, action: Literal["Adjust", "Drop"] = "Adjust"
) -> Policy:
    """Return policies whose limits are given in seconds."""
    return Policy(
        from_seconds(out_of_order),
        None if late is None else from_seconds(late),
        None if early is None else from_seconds(early),
        action,
    )


def at(
    arrival: int,
    time: int | None,
    over: tuple[Any, ...] | None = None,
    partition: str = "0",
    sequence: int | None = None,
    malformed: bool = False,
) -> Event:
    """Return an event whose arrival and time are in ticks after noon. Its sequence number defaults to its arrival."""
    return Event(
        partition,
        NOON + arrival,
        arrival if sequence is None else sequence,
        None if time is None else NOON + time,
        over,
        malformed,
    )


def expect(implementation: Implementation, events: Sequence[Event], policy: Policy, *expected: Any) -> None:
    """Compare with pairs of verdict and System.Timestamp, the latter in ticks after noon."""
    judged = [(v, None if timestamp is None else timestamp - NOON) for v, timestamp in implementation(events, policy)]
    assert judged == list(expected)


def test_a_tie_with_the_early_window_is_on_time(implementation: Implementation) -> None:
    limit = 300 * SECOND
    expect(implementation, [at(0, limit)], policy(), ("on_time", limit))
    expect(implementation, [at(0, limit + 1)], policy(), ("early_dropped", None))


def test_a_tie_with_the_late_tolerance_is_on_time(implementation: Implementation) -> None:
    limit = 60 * SECOND
    expect(implementation, [at(limit, 0)], policy(), ("on_time", 0))
    expect(implementation, [at(limit, -1)], policy(), ("late_adjusted", 0))


def test_a_tie_with_the_watermark_is_on_time(implementation: Implementation) -> None:
    tolerance = policy(out_of_order=2)
    first, tie, below = at(0, 0), at(1, -2 * SECOND), at(2, -2 * SECOND - 1)
    expect(
        implementation,
        [first, tie, below],
        tolerance,
        ("on_time", 0),
        ("on_time", -2 * SECOND),
        ("out_of_order_adjusted", -2 * SECOND),
    )


def test_the_first_event_of_a_scope_is_never_out_of_order(implementation: Implementation) -> None:
    expect(implementation, [at(0, -(10**15))], policy(late=None), ("on_time", -(10**15)))


def test_an_early_event_does_not_move_the_watermark(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0), at(1, 10**12), at(2, 1)],
        policy(),
        ("on_time", 0),
        ("early_dropped", None),
        ("on_time", 1),
    )


def test_early_events_are_dropped_under_adjust_and_under_drop(implementation: Implementation) -> None:
    for action in ("Adjust", "Drop"):
        expect(implementation, [at(0, 10**12)], policy(action=action), ("early_dropped", None))


def test_an_early_event_that_is_adjusted_to_its_arrival_plus_the_window_moves_the_watermark() -> None:
    """Microsoft's newer pages say so; here it is a setting (docs/time-model.md, section 2.1)."""
    limit = 300 * SECOND
    events = [at(0, limit + 1), at(1, limit), at(2, limit - 1), at(3, limit + 3)]
    assert judge_in_chunks(events, policy(), adjust_early=True) == [
        ("early_adjusted", NOON + limit, False, False),
        ("on_time", NOON + limit, False, False),
        ("out_of_order_adjusted", NOON + limit, False, True),
        ("on_time", NOON + limit + 3, False, False),
    ]


@settings(max_examples=examples(60))
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_adjusting_early_events_is_moving_them_before_they_are_judged(data: st.DataObject, seed: int) -> None:
    """So everything that holds for the other stages holds for them, including the slice rule."""
    chosen = data.draw(policies(early=st.sampled_from((300, 0, 7)).map(from_seconds)))
    assert chosen.early is not None
    events = data.draw(streams(chosen))
    early = [event.time is not None and event.time > event.arrival + chosen.early for event in events]
    moved = [
        replace(event, time=event.arrival + chosen.early) if is_early else event
        for event, is_early in zip(events, early, strict=True)
    ]
    expected = [
        ("early_adjusted" if is_early and verdict == "on_time" else verdict, *rest)
        for is_early, (verdict, *rest) in zip(early, judge_in_chunks(moved, chosen, Random(seed)), strict=True)
    ]
    assert judge_in_chunks(events, chosen, Random(seed), adjust_early=True) == expected


def test_an_early_event_counts_as_early_whatever_happens_to_it() -> None:
    time, arrival = np.array([NOON + 301 * SECOND, NOON]), np.array([NOON, NOON])
    for adjust_early in (False, True):
        chosen = Policies(0, None, 300 * SECOND, adjust=True, adjust_early=adjust_early)
        judged = judge(chosen, LargestTimes(), time, np.array([True, True]), arrival, None)
        assert judged.early.tolist() == [True, False]
        assert judged.processed.tolist() == [adjust_early, True]


def test_without_the_early_window_an_early_event_pushes_the_watermark(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 10**12), at(1, 1)],
        policy(early=None),
        ("on_time", 10**12),
        ("out_of_order_adjusted", 10**12),
    )


def test_a_late_event_moves_to_its_arrival_less_the_tolerance(implementation: Implementation) -> None:
    expect(implementation, [at(100 * SECOND, 0)], policy(), ("late_adjusted", 40 * SECOND))


def test_a_late_tolerance_of_zero_moves_every_late_event_to_its_arrival(implementation: Implementation) -> None:
    expect(implementation, [at(1, 1), at(2, 1)], policy(late=0), ("on_time", 1), ("late_adjusted", 2))


def test_without_a_late_limit_nothing_is_late(implementation: Implementation) -> None:
    expect(implementation, [at(10**15, 0)], policy(late=None), ("on_time", 0))


def test_a_late_adjusted_time_moves_the_watermark() -> None:
    """Only the watermark shows it: later arrivals are at least as recent, once the late policy has moved them."""
    outcomes = process([at(0, -50 * SECOND), at(100 * SECOND, 0)], policy(out_of_order=3))
    assert [outcome.watermark_after for outcome in outcomes] == [NOON - 53 * SECOND, NOON + 37 * SECOND]


def test_an_out_of_order_event_moves_to_the_largest_time_less_the_tolerance(implementation: Implementation) -> None:
    """Not to its arrival less the tolerance."""
    expect(
        implementation,
        [at(0, 0), at(30 * SECOND, -10 * SECOND)],
        policy(out_of_order=3),
        ("on_time", 0),
        ("out_of_order_adjusted", -3 * SECOND),
    )


def test_an_out_of_order_event_does_not_move_the_watermark(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0), at(1, -10 * SECOND), at(2, -3 * SECOND)],
        policy(out_of_order=3),
        ("on_time", 0),
        ("out_of_order_adjusted", -3 * SECOND),
        ("on_time", -3 * SECOND),
    )


def test_an_event_that_is_late_and_then_out_of_order_has_the_last_verdict(implementation: Implementation) -> None:
    expect(implementation, [at(0, 0), at(1, -100 * SECOND)], policy(), ("on_time", 0), ("out_of_order_adjusted", 0))


def test_an_event_that_is_late_and_then_out_of_order_counts_in_both_metrics() -> None:
    events = [at(0, 0), at(1, -100 * SECOND)]
    metrics = slice_metrics(process(events, policy()), NOON - 1, NOON + 1)["0"]
    assert (metrics["LateInputEvents"], metrics["DroppedOrAdjustedEvents"]) == (1, 1)
    assert (metrics["late_adjusted"], metrics["out_of_order_adjusted"]) == (0, 1)
    assert judge_in_chunks(events, policy())[1] == ("out_of_order_adjusted", NOON, True, True)


def test_one_action_applies_to_late_and_to_out_of_order_events(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0), at(1, -1), at(2, -100 * SECOND)],
        policy(action="Drop"),
        ("on_time", 0),
        ("out_of_order_dropped", None),
        ("late_dropped", None),
    )


def test_a_late_event_that_is_dropped_does_not_move_the_watermark(implementation: Implementation) -> None:
    late = at(100 * SECOND, 0)
    on_its_way = at(100 * SECOND + 1, 41 * SECOND)
    expect(
        implementation,
        [at(0, -50 * SECOND), late, on_its_way],
        policy(action="Drop"),
        ("on_time", -50 * SECOND),
        ("late_dropped", None),
        ("on_time", 41 * SECOND),
    )


def test_a_missing_time_is_invalid_and_does_not_move_the_watermark(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0), at(1, None), at(2, 0)],
        policy(),
        ("on_time", 0),
        ("invalid_timestamp", None),
        ("on_time", 0),
    )


def test_a_body_that_cannot_be_decoded_is_malformed_whatever_else_it_is(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, None, malformed=True), at(1, 10**12, malformed=True), at(2, 0)],
        policy(),
        ("malformed", None),
        ("malformed", None),
        ("on_time", 0),
    )


@pytest.mark.parametrize("key", [(None,), (None, None), ("a", None), (None, "a")])
def test_a_null_in_the_over_key_is_an_invalid_timestamp(
    implementation: Implementation, key: tuple[str | None, ...]
) -> None:
    expect(
        implementation,
        [at(0, 0, key), at(1, -1, key)],
        policy(),
        ("invalid_timestamp", None),
        ("invalid_timestamp", None),
    )


def test_an_empty_over_key_is_a_key(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0, ("",)), at(1, -1, ("",)), at(2, -1, (" ",))],
        policy(),
        ("on_time", 0),
        ("out_of_order_adjusted", 0),
        ("on_time", -1),
    )


def test_over_judges_disorder_by_key_and_lateness_by_arrival(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0, ("fast",)), at(1, -30 * SECOND, ("slow",)), at(2, -61 * SECOND, ("slow",))],
        policy(),
        ("on_time", 0),
        ("on_time", -30 * SECOND),
        ("out_of_order_adjusted", -30 * SECOND),
    )


def test_over_two_columns_distinguishes_pairs_that_read_alike(implementation: Implementation) -> None:
    expect(
        implementation,
        [at(0, 0, ("ab", "c")), at(1, -1, ("a", "bc")), at(2, -1, ("ab", "c"))],
        policy(),
        ("on_time", 0),
        ("on_time", -1),
        ("out_of_order_adjusted", 0),
    )


@pytest.mark.parametrize("apart", [1, 10**6, LARGEST // 8], ids=["a tick", "a tenth of a second", "the calendar"])
def test_every_key_has_its_own_largest_time(apart: int) -> None:
    """However far apart the times are."""
    random = Random(apart)
    keys = [random.randrange(9) for _ in range(500)]
    times = [random.randrange(9) * apart for _ in keys]
    largest_times, policies = LargestTimes(), Policies(LARGEST, None, None, adjust=True)
    running: list[int] = []
    for chunk in slice(0, 200), slice(200, 500):
        time = np.array(times[chunk])
        judged = judge(policies, largest_times, time, np.full(len(time), True), time, pa.array(keys[chunk]))
        running += judged.largest_time.tolist()
    assert running == [
        max(time for time, key in zip(times[:n], keys[:n], strict=True) if key == keys[n - 1])
        for n in range(1, len(times) + 1)
    ]


def test_partitions_are_independent_of_each_other(implementation: Implementation) -> None:
    for over in (None, ("a",)):
        expect(
            implementation,
            [at(0, 0, over, "0"), at(1, -1, over, "1"), at(2, -1, over, "0")],
            policy(),
            ("on_time", 0),
            ("on_time", -1),
            ("out_of_order_adjusted", 0),
        )


def test_equal_arrivals_are_judged_by_sequence_number(implementation: Implementation) -> None:
    """LastModified has a resolution of one second."""
    expect(
        implementation,
        [at(0, 0, sequence=8), at(0, -1, sequence=7), at(0, -1, sequence=9)],
        policy(),
        ("on_time", 0),
        ("on_time", -1),
        ("out_of_order_adjusted", 0),
    )


def test_without_timestamp_by_the_arrival_is_the_time_and_no_policy_applies() -> None:
    events = [at(5, None), at(0, 10**12), at(9, -(10**12), (None,)), at(10, 0, malformed=True)]
    outcomes = process(events, policy(action="Drop"), timestamp_by=False)
    assert [(outcome.verdict, outcome.system_timestamp) for outcome in outcomes] == [
        ("on_time", NOON + 5),
        ("on_time", NOON),
        ("on_time", NOON + 9),
        ("malformed", None),
    ]


def test_times_at_both_ends_of_the_calendar_are_judged_without_overflow(implementation: Implementation) -> None:
    events = [
        Event("0", NOON, 1, LARGEST, ("a",)),
        Event("0", NOON, 2, 0, ("b",)),
        Event("0", NOON, 3, LARGEST - from_seconds(599), ("a",)),
        Event("0", NOON, 4, 0, ("a",)),
        Event("0", NOON, 5, 0, ("b",)),
    ]
    floor = LARGEST - from_seconds(599)
    assert implementation(events, policy(out_of_order=599, late=None, early=None)) == [
        ("on_time", LARGEST),
        ("on_time", 0),
        ("on_time", floor),
        ("out_of_order_adjusted", floor),
        ("on_time", 0),
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Event], Policy]:
    drawn = draw(policies())
    return draw(streams(drawn)), drawn


@given(case=cases(), random=st.randoms(use_true_random=False))
@example(case=([], policy()), random=Random(0))
def test_the_fast_path_agrees_with_the_oracle_however_the_stream_is_chopped(
    case: tuple[list[Event], Policy], random: Random
) -> None:
    events, drawn = case
    expected = [(o.verdict, o.system_timestamp, o.late, o.out_of_order) for o in process(events, drawn)]
    assert judge_in_chunks(events, drawn, random) == expected


@pytest.mark.parametrize("over_columns", [0, 1, 2])
@pytest.mark.parametrize("action", ["Adjust", "Drop"])
@pytest.mark.parametrize(("out_of_order", "late"), [(0, 0), (0, None), (599, 0), (599, None), (30, 120)])
def test_the_fast_path_agrees_with_the_oracle_on_long_streams(
    over_columns: int, action: Literal["Adjust", "Drop"], out_of_order: int, late: int | None
) -> None:
    """Long enough for chunks of hundreds of events and keys that come and go between them."""
    random = Random(f"{over_columns} {action} {out_of_order} {late}")
    arrival = 0
    events = []
    for sequence in range(3_000):
        arrival += random.choice((0, 0, 0, 1, 1, 1, 60))
        skew = random.choice((0, 0, -1, -5, -30, -121, -700, 29, 300, 301))
        keys = (random.choice("abcdefghij"), random.choice(("x", "y", None) if sequence % 50 == 0 else ("x", "y")))
        events.append(
            at(
                arrival * SECOND,
                None if random.random() < 0.01 else (arrival + skew) * SECOND,
                keys[:over_columns] if over_columns else None,
                random.choice("01"),
                sequence,
                random.random() < 0.01,
            )
        )
    drawn = policy(out_of_order, late, action=action)
    expected = [(o.verdict, o.system_timestamp, o.late, o.out_of_order) for o in process(events, drawn)]
    assert judge_in_chunks(events, drawn, random) == expected


@given(case=cases(), random=st.randoms(use_true_random=False))
def test_no_time_moves_beyond_what_its_arrival_allows(case: tuple[list[Event], Policy], random: Random) -> None:
    """The slice rule relies on these two bounds."""
    events, drawn = case
    for event, (_, time, _, _) in zip(events, judge_in_chunks(events, drawn, random), strict=True):
        if time is None:
            continue
        if drawn.late is not None:
            assert time >= event.arrival - drawn.late
        if drawn.early is not None:
            assert time <= event.arrival + drawn.early
