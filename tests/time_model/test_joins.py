"""How far apart the rows of a JOIN can be, compared with every arrangement of a few ticks."""

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.joins import Distances, TimeBound, TimeRange


def added(*joins: tuple[Sequence[TimeBound], bool]) -> tuple[Distances, TimeRange | None]:
    distances, range_ = Distances(), None
    for bounds, outer in joins:
        range_ = distances.add(bounds, outer)
    return distances, range_


@pytest.mark.parametrize(
    ("low", "high", "outer", "look_backs"),
    [
        (0, 5, False, [5, 0]),
        (-2, 5, False, [5, 2]),
        (1, 5, False, [5, 0]),
        (-5, -2, False, [0, 5]),
        (0, 5, True, [5, 5]),
        (-2, 5, True, [5, 7]),
        (1, 5, True, [5, 4]),
        (-5, -2, True, [0, 5]),
        (0, 0, True, [0, 0]),
    ],
)
def test_a_left_join_looks_back_further_on_its_right_side(
    low: int, high: int, outer: bool, look_backs: list[int]
) -> None:
    distances, range_ = added(([TimeBound(0, low, high)], outer))
    assert distances.look_backs == look_backs
    assert range_ == TimeRange(0, low, high)


@pytest.mark.parametrize(
    "bounds",
    [[], [TimeBound(0, 0, None)], [TimeBound(0, None, 5)], [TimeBound(0, 0, None), TimeBound(0, 3, None)]],
)
def test_a_side_without_limits_in_both_directions_has_no_range(bounds: list[TimeBound]) -> None:
    assert added((bounds, False))[1] is None


def test_bounds_of_several_sides_limit_a_side_together() -> None:
    """a JOIN b, 0 <= b - a <= 5; JOIN c, a <= c < b"""
    distances, range_ = added(([TimeBound(0, 0, 5)], False), ([TimeBound(0, 0, None), TimeBound(1, None, -1)], False))
    assert range_ == TimeRange(0, 0, 4)
    assert distances.look_backs == [5, 0, 5]


def test_a_range_counts_from_a_side_that_always_has_a_row() -> None:
    """a JOIN b within 100; LEFT JOIN c near both; JOIN d after a and before b"""
    near = [TimeBound(0, 0, 1), TimeBound(1, 0, 1)]
    between = [TimeBound(0, 0, None), TimeBound(1, None, 5)]
    _, range_ = added(([TimeBound(0, -100, 100)], False), (near, True), (between, False))
    assert range_ == TimeRange(0, 0, 105)


LIMITS = st.integers(-2, 2)


@st.composite
def joins(draw: st.DrawFn) -> list[tuple[list[TimeBound], bool]]:
    """Draw two JOINs, each with time bounds in both directions."""
    result = []
    for side in (1, 2):
        low, high = sorted((draw(LIMITS), draw(LIMITS)))
        sides = st.integers(0, side - 1)
        bounds = [TimeBound(draw(sides), low, None), TimeBound(draw(sides), None, high)]
        result.append((bounds, draw(st.booleans())))
    if result[0][1]:
        result[1] = ([TimeBound(0, bound.low, bound.high) for bound in result[1][0]], result[1][1])
    return result


def holds(bounds: Sequence[TimeBound], times: Sequence[int | None], time: int) -> bool:
    for bound in bounds:
        other = times[bound.side]
        if other is None or not (bound.low is None or time - other >= bound.low):
            return False
        if not (bound.high is None or time - other <= bound.high):
            return False
    return True


def rows(joined: Sequence[tuple[Sequence[TimeBound], bool]]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield the time of every row that the JOINs can give, with the sides and times that decide it."""
    start: list[tuple[int, list[int | None], list[tuple[int, int]]]] = [(0, [0], [(0, 0)])]
    for side, (bounds, outer) in enumerate(joined, 1):
        following = []
        for time, times, deciding in start:
            matches = [match for match in range(-9, 10) if holds(bounds, times, match)]
            following += [(max(time, match), [*times, match], [*deciding, (side, match)]) for match in matches]
            ends = [
                other + bound.high
                for bound in bounds
                if bound.high is not None and (other := times[bound.side]) is not None
            ]
            if outer and ends:
                possible = [(side, match) for match in matches]
                following.append((max(time, min(ends)), [*times, None], [*deciding, *possible]))
        start = following
    for time, _, deciding in start:
        yield time, deciding


@given(joins())
def test_no_row_that_decides_a_joined_row_lies_further_back_than_the_look_back(
    joined: list[tuple[list[TimeBound], bool]],
) -> None:
    distances, _ = added(*joined)
    for time, deciding in rows(joined):
        for side, at in deciding:
            assert at <= time
            assert time - at <= distances.look_backs[side]


@given(joins())
def test_all_matches_of_a_side_lie_in_its_range(joined: list[tuple[list[TimeBound], bool]]) -> None:
    _, range_ = added(*joined)
    assert range_ is not None
    for times in itertools.product(range(-4, 5), repeat=2):
        sides = (0, *times)
        if holds(joined[0][0], sides[:1], sides[1]) and holds(joined[1][0], sides[:2], sides[2]):
            assert range_.low <= sides[2] - sides[range_.side] <= range_.high
