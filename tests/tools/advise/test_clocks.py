"""Clocks that are wrong are told from delays (`recapture.tools.advise.clocks`)."""

import numpy as np
import pyarrow as pa
import pytest

from recapture.time_model.ticks import from_seconds
from recapture.tools.advise.clocks import Clocks, WrongClock

NOON = from_seconds(63_000_000_000)


def judged(ahead: dict[str, list[float]], chunks: int = 1, max_delay: float = 0) -> tuple[int, list[WrongClock]]:
    """Return what is found for devices, given by how many seconds their times are ahead of the hub's."""
    devices = np.array([device for device, seconds in ahead.items() for _ in seconds])
    seconds = np.array([value for values in ahead.values() for value in values])
    hub = NOON + from_seconds(1) * np.arange(len(seconds))
    clocks = Clocks()
    for rows in np.array_split(np.random.default_rng(1).permutation(len(seconds)), chunks):
        time = hub[rows] + (seconds[rows] * from_seconds(1)).astype(np.int64)
        early = time - hub[rows] > from_seconds(300)
        clocks.add(pa.array(devices[rows].tolist(), pa.string()), time, hub[rows], early)
    return clocks.wrong(max_delay)


@pytest.mark.parametrize("error", [-86_400, -3600.5, -180, 11, 120, 240, 3600, 90_000])
def test_a_wrong_clock_is_found_with_its_error(error: float) -> None:
    delays = np.linspace(-1, 0, 40)
    count, wrong = judged({"right": delays.tolist(), "wrong": (delays + error).tolist()}, chunks=3)
    assert count == 2
    assert [(clock.device, clock.events) for clock in wrong] == [("wrong", 40)]
    assert wrong[0].dropped == (40 if error > 301 else 0)
    assert wrong[0].seconds == pytest.approx(error, abs=1)


@pytest.mark.parametrize(
    ("ahead", "count"),
    [
        ([-0.5] * 30 + [-1200.0 + n for n in range(200)], 1),
        (np.linspace(-300, 0, 100).tolist(), 1),
        ([-1.0] * 96 + [4000.0] * 4, 1),
        ([500.0] * 9, 0),
    ],
    ids=["an outage", "batches", "a few events ahead", "too few events to be judged"],
)
def test_delays_and_a_few_events_ahead_are_no_wrong_clock(ahead: list[float], count: int) -> None:
    assert judged({"a": ahead}) == (count, [])


def test_the_worst_clock_comes_first_and_chunks_make_no_difference() -> None:
    ahead = {name: [error - n % 3 / 10 for n in range(50)] for name, error in (("a", 20.0), ("b", -90.0), ("c", 70.0))}
    whole = judged(ahead)
    assert [clock.device for clock in whole[1]] == ["b", "c", "a"]
    assert judged(ahead, chunks=20) == whole


def test_what_the_hub_s_stand_in_may_be_late_is_not_the_clock_s_error() -> None:
    waits = np.linspace(-300, -80, 50).tolist()
    assert judged({"a": waits})[1] != []
    assert judged({"a": waits}, max_delay=300) == (1, [])
