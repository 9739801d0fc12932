"""What is counted of a slice's arrivals is what a naive reader counts."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering.tallies import BEFORE_ALL, tally
from recapture.process.compilation import frozen
from recapture.time_model.policies import IS_PROCESSED, Judged
from recapture.time_model.verdicts import PROCESSED, Verdict

Event = tuple[Verdict, bool, bool, bool, int, int]
"""Verdict, whether it is early, late and out of order, arrival, and System.Timestamp."""
EVENTS = st.lists(
    st.tuples(st.sampled_from(Verdict), *[st.booleans()] * 3, *[st.integers(-4, 4)] * 2), min_size=1, max_size=30
)


@given(EVENTS)
def test_the_counts_and_extremes_are_those_of_a_naive_reader(events: list[Event]) -> None:
    verdict, early, late, out_of_order, arrival, time = (np.array(column) for column in zip(*events, strict=True))
    judged = Judged(verdict.astype(np.int8), time, early, late, out_of_order, time, time, time)
    verdicts = np.zeros(len(Verdict), np.int64)
    counts = tally(judged.at(slice(None)), frozen(arrival), IS_PROCESSED, verdicts)
    assert dict(enumerate(verdicts.tolist())) == dict.fromkeys(Verdict, 0) | Counter(event[0] for event in events)
    assert (counts.early, counts.late, counts.out_of_order) == tuple(
        sum(event[n] for event in events) for n in (1, 2, 3)
    )
    assert counts.newest_arrival == max(event[4] for event in events)
    processed = {number: event for number, event in enumerate(events) if event[0] in PROCESSED}
    assert counts.largest_time == max((event[5] for event in processed.values()), default=BEFORE_ALL)
    furthest = max((event[5] - event[4] for event in processed.values()), default=None)
    ahead = [number for number, event in processed.items() if event[5] - event[4] == furthest] or [-1]
    assert (counts.first_ahead, counts.last_ahead) == (ahead[0], ahead[-1])
