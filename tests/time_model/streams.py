"""Hypothesis strategies for policies and streams of events, made to meet every limit exactly and by one tick."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND, from_seconds
from tests.oracle import Event, Policy

NOON = from_seconds(63_902_995_200)
"""An instant in 2026; which one does not matter."""

HOUR = from_seconds(3600)
DAY = 24 * HOUR


def seconds(*choices: int) -> SearchStrategy[int]:
    return st.sampled_from(choices).map(from_seconds)


def policies(
    late: SearchStrategy[int | None] | None = None, early: SearchStrategy[int | None] | None = None
) -> SearchStrategy[Policy]:
    """Draw any policies that a job can have, including the limits of the ranges."""
    if late is None:
        late = st.one_of(st.none(), seconds(0, 1, 5, 300, 1_814_399), st.integers(0, 900).map(from_seconds))
    if early is None:
        early = st.one_of(st.none(), seconds(300, 300, 0, 7))
    return st.builds(
        Policy,
        out_of_order=st.one_of(seconds(0, 0, 2, 599), st.integers(0, 599).map(from_seconds)),
        late=late,
        early=early,
        action=st.sampled_from(("Adjust", "Drop")),
    )


@dataclass(frozen=True)
class _Draft:
    partition: str
    gap: int
    kind: str
    amount: int
    nudge: int
    keys: tuple[str | None, str | None]
    malformed: bool


# Ties and bursts (a gap of nothing), an ordinary flow, and silences.
_GAPS = st.one_of(
    st.just(0),
    seconds(0, 1, 1, 60, 300, 900),
    st.integers(0, 30).map(from_seconds),
    st.sampled_from((1, HOUR, 10 * DAY)),
)
# Where the application time comes from: see `_time`.
_KINDS = st.sampled_from(
    12 * ("skewed",) + 6 * ("at watermark",) + 3 * ("at late", "at early", "same") + ("extreme", "missing")
)
_KEYS = st.tuples(st.sampled_from(("a", "b", "a", "c", "", "a", None)), st.sampled_from(("x", "x", "y", "", "x", None)))
_DRAFT = st.builds(
    _Draft,
    partition=st.sampled_from(("0", "1", "0", "7")),
    gap=_GAPS,
    kind=_KINDS,
    amount=st.one_of(st.integers(-10, 10), st.integers(-300, 60), st.integers(-1200, 700)),
    nudge=st.sampled_from((-1, 0, 0, 1)),
    keys=_KEYS,
    malformed=st.sampled_from((False,) * 20 + (True,)),
)
# By default, lists are short; most streams must be long enough for disorder.
_DRAFTS = st.one_of(*(st.lists(_DRAFT, min_size=size, max_size=40) for size in (0, 12, 24)))


@st.composite
def streams(draw: DrawFn, policy: Policy, over_columns: int | None = None) -> list[Event]:
    """Draw a stream over up to three partitions, in no particular order, with OVER of no, one or two columns.

    Sequence numbers follow arrival within a partition.
    """
    columns = draw(st.sampled_from((0, 0, 1, 1, 2))) if over_columns is None else over_columns
    arrival = NOON
    previous = largest = NOON
    events: list[Event] = []
    for sequence, draft in enumerate(draw(_DRAFTS)):
        arrival += draft.gap
        time = _time(draft, policy, arrival, previous, largest)
        if time is not None:
            previous = time
            if policy.early is None or time - arrival <= policy.early:
                largest = max(largest, time)
        over = draft.keys[:columns] if columns else None
        events.append(Event(draft.partition, arrival, sequence, time, over, draft.malformed, {"n": sequence}))
    return draw(st.permutations(events)) if events else events


def _time(draft: _Draft, policy: Policy, arrival: int, previous: int, largest: int) -> int | None:
    match draft.kind:
        case "skewed":
            return arrival + draft.amount * TICKS_PER_SECOND
        case "at watermark":
            return largest - policy.out_of_order + draft.nudge
        case "at late":
            return arrival - (policy.late or 0) + draft.nudge
        case "at early":
            return arrival + (policy.early or 0) + draft.nudge
        case "same":
            return previous
        case "extreme":
            return (0, 1, LARGEST)[draft.amount % 3]
        case _:
            return None
