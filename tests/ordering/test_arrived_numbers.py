"""The numbers that arrived are the ranges that a naive reader would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.events import UNKNOWN
from recapture.ordering.arrived_numbers import in_ranges
from recapture.process.compilation import frozen

EVENTS = st.lists(st.tuples(st.integers(1, 6), st.sampled_from([UNKNOWN, 7, 8, 9, 9])), max_size=30)


@given(EVENTS)
def test_numbers_that_follow_each_other_are_one_range_with_its_times(events: list[tuple[int, int]]) -> None:
    ranges: list[list[tuple[int, int]]] = []
    for number, enqueued in events:
        if ranges and ranges[-1][-1][0] == number - 1:
            ranges[-1].append((number, enqueued))
        else:
            ranges.append([(number, enqueued)])
    expected = []
    for run in ranges:
        enqueued_times = [enqueued for _, enqueued in run]
        latest = UNKNOWN if UNKNOWN in enqueued_times else max(enqueued_times)
        expected.append([run[0][0], run[-1][0], min(enqueued_times), latest])
    numbers, times = np.array(events, np.int64).reshape(-1, 2).T.copy()
    assert in_ranges(frozen(numbers), frozen(times), UNKNOWN).tolist() == expected
