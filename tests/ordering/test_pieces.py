"""Events are cut into pieces with ascending numbers as a naive reader would cut them."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering.pieces import NumberedEvents, cut
from recapture.process.compilation import frozen

Event = tuple[int, int, int, int]
"""Number, arrival of the blob, arrival and enqueued time."""
LARGEST = (1 << 63) - 1
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([-LARGEST - 1, 1, 1, 2, 2, 3, 4, 5, 9, LARGEST]),
        st.integers(0, 1),
        st.integers(0, 3),
        st.sampled_from([-1, 7, 7, 8]),
    ),
    max_size=30,
)


def numbered(events: list[Event]) -> NumberedEvents:
    return NumberedEvents(*(frozen(column) for column in np.array(events, np.int64).reshape(-1, 4).T.copy()))


def naive_pieces(events: list[Event]) -> tuple[list[list[Event]], list[bool]]:
    """Return the pieces without repeated events, and which events are repeated."""
    pieces: list[list[Event]] = []
    repeats = []
    for place, event in enumerate(events):
        before = events[place - 1] if place else None
        repeats.append(before is not None and (before[0], before[1], before[3]) == (event[0], event[1], event[3]))
        if repeats[-1]:
            continue
        if before is not None and before[1] == event[1] and before[0] < event[0]:
            pieces[-1].append(event)
        else:
            pieces.append([event])
    return pieces, repeats


def naive_ranges(piece: list[Event]) -> list[tuple[int, int, int]]:
    ranges: list[tuple[int, int, int]] = []
    for number, _, _, enqueued in piece:
        if ranges and ranges[-1][1:] == (number - 1, enqueued):
            ranges[-1] = (ranges[-1][0], number, enqueued)
        else:
            ranges.append((number, number, enqueued))
    return ranges


@given(EVENTS)
def test_pieces_and_their_ranges_are_those_of_a_naive_reader(events: list[Event]) -> None:
    expected, repeats = naive_pieces(events)
    pieces = cut(numbered(events))
    assert pieces.repeats.tolist() == repeats
    rows = [row for row, repeat in enumerate(repeats) if not repeat]
    sizes = np.cumsum([0, *map(len, expected)])[:-1].tolist()
    assert pieces.bounds.tolist() == [*(rows[size] for size in sizes), len(events)]
    ranges = list(zip(pieces.first.tolist(), pieces.last.tolist(), pieces.enqueued.tolist(), strict=True))
    bounds = pieces.range_bounds.tolist()
    actual = [ranges[begin:end] for begin, end in itertools.pairwise(bounds)]
    assert actual == [naive_ranges(piece) for piece in expected]
    assert pieces.earliest_enqueued.tolist() == [min(event[3] for event in piece) for piece in expected]
    assert pieces.last_arrival.tolist() == [max(event[2] for event in piece) for piece in expected]
    assert pieces.has_skips.tolist() == [piece[-1][0] - piece[0][0] >= len(piece) for piece in expected]
