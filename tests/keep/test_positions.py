"""Where the published slices end in a partition, by the sequence numbers that arrived in them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.keep.positions import Arrived, Position, positions
from recapture.ordering.arrived_numbers import NumberCollector
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import ArrivedNumbers
from recapture.time_model.slices import Slice
from tests.time_model.streams import HOUR, NOON

SECOND = ticks.TICKS_PER_SECOND
SLICES = [Slice(NOON + number * HOUR, NOON + (number + 1) * HOUR) for number in (-3, -2, -1)]


def arrived(*ranges: tuple[int, int, int]) -> dict[str, tuple[ArrivedNumbers, ...]]:
    """Return ranges of numbers of partition 0: first, last, and the enqueued time in seconds after noon."""
    times = [(first, last, NOON + time * SECOND, NOON + time * SECOND) for first, last, time in ranges]
    return {"0": (ArrivedNumbers(tuple(times)),) if times else ()}


def only(*slices: Arrived) -> Position:
    (position,) = positions(list(zip(SLICES, slices, strict=False)))
    return position


def test_the_position_is_the_highest_number_that_arrived() -> None:
    position = only(arrived((1, 10, -9000)), arrived((11, 20, -5000)), arrived())
    assert (position.sequence_number, position.slice, position.missing) == (20, SLICES[1], ())


def test_numbers_that_did_not_arrive_before_it_are_named() -> None:
    position = only(arrived((1, 10, -9000)), arrived((12, 20, -5000), (23, 30, -4000)))
    assert (position.sequence_number, position.missing) == (30, ((11, 11), (21, 22)))


def test_a_number_that_arrived_in_a_later_slice_is_not_missing() -> None:
    position = only(arrived((1, 10, -9000), (12, 20, -7210)), arrived((11, 11, -7190), (21, 22, -5000)))
    assert (position.sequence_number, position.missing) == (22, ())


def test_a_hub_that_was_recreated_has_only_its_own_numbers() -> None:
    position = only(arrived((900, 950, -9000), (960, 990, -8000)), arrived((0, 7, -5000)))
    assert (position.sequence_number, position.slice, position.missing) == (7, SLICES[1], ())


def test_a_partition_without_events_has_no_position() -> None:
    position = only(arrived(), arrived(), arrived())
    assert (position.sequence_number, position.slice, position.missing) == (None, None, ())


@st.composite
def partitions(draw: st.DrawFn) -> list[int]:
    """Draw the arrivals of the events of a partition, by their numbers: the hub's clock may go back by five minutes."""
    gaps = draw(st.lists(st.sampled_from((0, 1, 60, 600, 3000)), min_size=1, max_size=40))
    jitter = [draw(st.sampled_from((0, 0, 0, -1, 150, -150))) for _ in gaps]
    times = np.cumsum(gaps) - 3 * 3600 + 1
    return [NOON + (int(time) + shift) * SECOND for time, shift in zip(times, jitter, strict=True)]


@given(partitions())
def test_the_slices_and_a_consumer_after_the_position_see_every_event_once(arrivals: list[int]) -> None:
    """The consumer takes the events after the position, and those that are named as missing before it."""
    in_slices = []
    for slice_ in SLICES:
        own = [number for number, arrival in enumerate(arrivals) if slice_.start < arrival <= slice_.end]
        collector = NumberCollector()
        collector.add(None, np.array(own, np.int64), np.array([arrivals[number] for number in own], np.int64))
        in_slices.append((slice_, {"0": collector.values()}))
    counted = [number for number, arrival in enumerate(arrivals) if SLICES[0].start < arrival <= SLICES[-1].end]
    (position,) = positions(in_slices)
    last = -1 if position.sequence_number is None else position.sequence_number
    first_counted = min(counted, default=0)
    consumed = [
        number
        for number in range(len(arrivals))
        if number > last or any(first <= number <= until for first, until in position.missing)
    ]
    assert sorted(counted + consumed) == list(range(first_counted, len(arrivals)))
