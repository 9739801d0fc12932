"""Slices, and the arrivals that decide them (docs/time-model.md, section 3)."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.policies import Policies
from recapture.time_model.slices import DUPLICATE_HORIZON, Arrivals, Slice, arrivals_of, slices_between
from tests.time_model.fast_path import judge_in_chunks
from tests.time_model.streams import HOUR
from tests.time_model.test_slice_rule import Case, cases

MINUTE = HOUR // 60
TEN = 10 * HOUR


def policies(late: int | None = 10 * MINUTE, early: int | None = 5 * MINUTE) -> Policies:
    return Policies(out_of_order_tolerance=0, late_tolerance=late, early_window=early, adjust=True)


def test_the_slices_of_a_range_are_adjacent() -> None:
    assert list(slices_between(TEN, TEN + 3 * HOUR, HOUR)) == [
        Slice(TEN, TEN + HOUR),
        Slice(TEN + HOUR, TEN + 2 * HOUR),
        Slice(TEN + 2 * HOUR, TEN + 3 * HOUR),
    ]
    assert list(slices_between(TEN, TEN, HOUR)) == []


def test_the_arrivals_hold_both_of_their_bounds() -> None:
    arrivals = Arrivals(5, 7)
    assert [arrivals.contains(arrival) for arrival in (4, 5, 7, 8)] == [False, True, True, False]
    assert Arrivals(5, None).contains(1 << 62)


def test_the_arrivals_reach_from_early_window_and_late_tolerance_before_a_slice_to_late_tolerance_after_it() -> None:
    assert arrivals_of(Slice(TEN, TEN + HOUR), policies(), look_back=MINUTE) == Arrivals(
        TEN - 5 * MINUTE - 10 * MINUTE - DUPLICATE_HORIZON, TEN + HOUR + 10 * MINUTE
    )


def test_a_window_longer_than_the_late_tolerance_widens_the_slice() -> None:
    assert arrivals_of(Slice(TEN, TEN + HOUR), policies(), look_back=2 * HOUR) == Arrivals(
        TEN - 2 * HOUR - 5 * MINUTE - DUPLICATE_HORIZON, TEN + HOUR + 10 * MINUTE
    )


def test_without_a_late_limit_every_later_arrival_counts() -> None:
    arrivals = arrivals_of(Slice(TEN, TEN + HOUR), policies(late=None), look_back=MINUTE)
    assert arrivals == Arrivals(TEN - MINUTE - 5 * MINUTE - DUPLICATE_HORIZON, None, independent_of_start=False)


def test_without_timestamp_by_only_the_slice_itself_and_the_look_back_count() -> None:
    arrivals = arrivals_of(Slice(TEN, TEN + HOUR), None, look_back=MINUTE)
    assert arrivals.contains(TEN - MINUTE + 1)
    assert arrivals.contains(TEN + HOUR)
    assert not arrivals.contains(TEN + HOUR + 1)


def test_an_hour_is_read_before_what_is_judged_so_that_duplicates_are_recognised() -> None:
    arrivals = arrivals_of(Slice(TEN, TEN + HOUR), policies(), look_back=MINUTE)
    assert (arrivals.first_judged, DUPLICATE_HORIZON) == (TEN - 15 * MINUTE, HOUR)


def test_without_an_early_window_a_slice_is_read_as_with_asas_and_depends_on_where_reading_began() -> None:
    exact = arrivals_of(Slice(TEN, TEN + HOUR), policies(), look_back=MINUTE)
    assert exact.independent_of_start
    without = arrivals_of(Slice(TEN, TEN + HOUR), policies(early=None), look_back=MINUTE)
    assert without == replace(exact, independent_of_start=False)


def test_an_early_window_of_another_length_moves_the_start_of_reading() -> None:
    arrivals = arrivals_of(Slice(TEN, TEN + HOUR), policies(early=30 * MINUTE), look_back=2 * HOUR)
    assert arrivals == Arrivals(TEN - 2 * HOUR - 30 * MINUTE - DUPLICATE_HORIZON, TEN + HOUR + 10 * MINUTE)


@given(case=cases(), look_back=st.sampled_from((1, MINUTE, HOUR)), seed=st.integers(0, 9))
def test_what_is_read_for_a_slice_gives_it_the_times_and_verdicts_of_the_whole_stream(
    case: Case, look_back: int, seed: int
) -> None:
    policy = case.policy
    chosen = Policies(policy.out_of_order, policy.late, policy.early, policy.action == "Adjust")
    arrivals = arrivals_of(Slice(case.start, case.end), chosen, look_back)
    judged = replace(arrivals, first=arrivals.first_judged)
    read = [event for event in case.events if judged.contains(event.arrival)]
    alone = dict(zip((event.sequence for event in read), judge_in_chunks(read, policy, Random(seed)), strict=True))
    held = {n for n, (_, time, _, _) in alone.items() if time is not None and case.start < time <= case.end}
    everything = judge_in_chunks(case.events, policy, Random(seed))
    for event, (verdict, time, late, out_of_order) in zip(case.events, everything, strict=True):
        if time is not None and case.start - look_back < time <= case.end:
            assert alone[event.sequence][1] == time
            held.discard(event.sequence)
        if case.start < event.arrival <= case.end and policy.late is not None:
            assert alone[event.sequence] == (verdict, time, late, out_of_order)
    assert not held, "nothing else lies in the slice"
