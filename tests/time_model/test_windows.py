"""Which events a slice's windows hold (docs/time-model.md, section 4)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.windows import HoppingWindow, Reach, SessionWindow, SlidingWindow, SnapshotWindow, Window


def reached(window: HoppingWindow, time: int, start: int, end: int) -> bool:
    """Return whether the window's rule holds for any end in (start, end]: t <= E < t + size."""
    return any(
        time <= window_end < time + window.size and (window_end - window.offset) % window.hop == 0
        for window_end in range(start + 1, end + 1)
    )


def reaches(window: HoppingWindow, times: list[int], start: int, end: int) -> list[bool]:
    holds: list[bool] = Reach(window).holds(np.array(times, np.int64), start, end).tolist()
    return holds


@given(
    size=st.integers(1, 30),
    hop=st.integers(1, 30),
    offset=st.integers(-70, 70),
    start=st.integers(40, 80),
    length=st.integers(1, 40),
    times=st.lists(st.integers(0, 160), max_size=12),
)
def test_an_event_reaches_a_slice_if_a_window_that_ends_there_holds_it(
    size: int, hop: int, offset: int, start: int, length: int, times: list[int]
) -> None:
    window = HoppingWindow(size, hop, offset)
    end = start + length
    assert reaches(window, times, start, end) == [reached(window, time, start, end) for time in times]


def test_the_end_of_a_window_belongs_to_it_and_its_start_does_not() -> None:
    assert reaches(HoppingWindow(10, 10), [100, 101, 110, 111], 100, 110) == [False, True, True, False]


def test_an_event_may_lie_as_far_back_as_the_window_is_long() -> None:
    window = HoppingWindow(30, 10)
    assert window.look_back == 30
    assert reaches(window, [80, 81, 100], 100, 110) == [False, True, True]


def test_no_event_is_held_between_windows_whose_hop_is_longer_than_their_size() -> None:
    assert reaches(HoppingWindow(2, 10), [98, 99, 100, 101, 108, 109, 110], 90, 110) == [
        False, True, True, False, False, True, True,
    ]  # fmt: skip


def test_an_offset_moves_the_ends_whatever_its_sign() -> None:
    assert reaches(HoppingWindow(10, 10, 3), [103, 104, 113], 110, 113) == [False, True, True]
    assert reaches(HoppingWindow(10, 10, -7), [103, 104, 113], 110, 113) == [False, True, True]


@given(
    window=st.sampled_from([HoppingWindow(9, 4, 1), SlidingWindow(9), SessionWindow(3, 5), SnapshotWindow()]),
    extra_look_back=st.integers(0, 20),
    times=st.lists(st.integers(0, 160), max_size=12),
)
def test_rows_that_later_steps_look_back_at_are_held_as_if_the_slice_began_sooner(
    window: Window, extra_look_back: int, times: list[int]
) -> None:
    given_times = np.array(times, np.int64)
    held = Reach(window, extra_look_back).holds(given_times, 100, 110)
    assert held.tolist() == Reach(window).holds(given_times, 100 - extra_look_back, 110).tolist()
    assert Reach(window, extra_look_back).look_back == window.look_back + extra_look_back
    assert not held[(given_times > 110) | (given_times <= 100 - Reach(window, extra_look_back).look_back)].any()


def test_a_snapshot_needs_its_own_slice_and_a_sliding_window_also_its_size_before_it() -> None:
    times = np.array([90, 91, 100, 101, 110, 111], np.int64)
    assert Reach(SnapshotWindow()).holds(times, 100, 110).tolist() == [False, False, False, True, True, False]
    assert Reach(SlidingWindow(10)).holds(times, 100, 110).tolist() == [False, True, True, True, True, False]


def test_an_empty_stream_reaches_nothing() -> None:
    assert reaches(HoppingWindow(10, 10), [], 0, 100) == []
