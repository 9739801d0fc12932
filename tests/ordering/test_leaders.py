"""The rules of a sample choose the events that a naive reader would choose, whatever the chunks are."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering.leaders import NO_EVENTS, Leaders, RankedEvents, Rules, offer_all
from recapture.time_model.policies import IS_PROCESSED
from recapture.time_model.verdicts import PROCESSED, Verdict

PARTS, PART = 3, 10
RULES = Rules(0, PART)
LIMITS = [2, 2, 2, 2, 3, *[1] * (len(Verdict) - 1), *[1] * PARTS]


@dataclass(frozen=True)
class Event:
    rank: int
    verdict: Verdict
    time: int
    has_time: bool
    arrival: int
    system_timestamp: int
    behind: int


EVENTS = st.lists(
    st.builds(
        Event,
        rank=st.integers(0, 20),
        verdict=st.sampled_from(Verdict),
        time=st.integers(-5, 35),
        has_time=st.booleans(),
        arrival=st.integers(1, PARTS * PART),
        system_timestamp=st.integers(-5, 35),
        behind=st.sampled_from([0, 0, 1, 2, 9]),
    ),
    max_size=40,
)


def ranked(events: list[Event]) -> RankedEvents:
    columns = {name: [getattr(event, name) for event in events] for name in RankedEvents._fields}
    arrays = {name: np.array(columns[name], column.dtype) for name, column in NO_EVENTS._asdict().items()}
    return NO_EVENTS.followed_by(RankedEvents(**arrays))


def values(event: Event) -> dict[int, int]:
    """Return the value of an event by the rules that apply to it."""
    by_rule = {RULES.first_verdict + event.verdict: event.rank}
    if event.has_time:
        by_rule |= {RULES.late: event.arrival - event.time, RULES.early: event.time - event.arrival}
    if event.verdict in PROCESSED:
        by_rule[RULES.lead] = event.system_timestamp - event.arrival
        by_rule[RULES.first_part + (event.arrival - 1) // PART] = event.system_timestamp
    if event.behind:
        by_rule[RULES.behind] = event.behind
    return by_rule


@given(EVENTS, st.integers(0, 40))
def test_each_rule_chooses_the_largest_values_then_ranks_then_the_first_events(events: list[Event], cut: int) -> None:
    leaders = Leaders.none(LIMITS, len(events))
    offer_all(leaders, ranked(events[:cut]), 0, IS_PROCESSED, RULES)
    offer_all(leaders, ranked(events[cut:]), len(events[:cut]), IS_PROCESSED, RULES)
    everything = set()
    for rule, limit in enumerate(LIMITS):
        applies = [number for number, event in enumerate(events) if rule in values(event)]
        applies.sort(key=lambda number: (-values(events[number])[rule], -events[number].rank, number))
        assert leaders.numbers(rule).tolist() == sorted(applies[:limit])
        everything |= {*applies[:limit]}
    assert leaders.numbers().tolist() == sorted(everything)
