"""The sequence numbers of a partition are ranges in order, with jumps between them."""

import pytest

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.archive.number_chain import Chain, Numbers, SliceNumbers
from recapture.time_model.slices import Slice

HOUR = 3600 * 10_000_000
MODULUS = 2**48


def chain(*slices: list[Numbers], modulus: int | None = None) -> Chain:
    """Return the chain of these slices, one for each hour from hour 0 on."""
    return Chain.of(
        (SliceNumbers(Slice(hour * HOUR, hour * HOUR + HOUR), tuple(ranges)) for hour, ranges in enumerate(slices)),
        modulus,
    )


def ranges(chain: Chain) -> list[tuple[int, int]]:
    return [(placed.numbers.first, placed.numbers.last) for placed in chain.placed]


def jumps(chain: Chain) -> list[tuple[int, int, bool]]:
    """Return the last number before each jump, the first one after it, and whether the numbers start again."""
    return [(jump.before.numbers.last, jump.after.numbers.first, jump.recreated) for jump in chain.jumps]


@pytest.mark.parametrize(
    ("second", "joined"),
    [
        (Numbers(10, 19, 60, 69), [(0, 19)]),  # they touch
        (Numbers(5, 19, 60, 69), [(0, 19)]),  # they overlap
        (Numbers(3, 7, 20, 30), [(0, 9)]),  # copies
        (Numbers(11, 19, 60, 69), [(0, 9), (11, 19)]),  # one number is missing
    ],
)
def test_numbers_that_touch_or_overlap_are_one_range(second: Numbers, joined: list[tuple[int, int]]) -> None:
    assert ranges(chain([Numbers(0, 9, 0, 50)], [second])) == joined


def test_a_range_has_the_earliest_and_the_latest_time_and_the_slices_of_its_ends() -> None:
    (placed,) = chain([Numbers(0, 9, 5, 50)], [Numbers(10, 19, 60, 69)]).placed
    assert placed.numbers == Numbers(0, 19, 5, 69)
    assert (placed.slice.start, placed.last_slice.start) == (0, HOUR)


@pytest.mark.parametrize(("late", "recreated"), [(0, False), (1, True)])
def test_lower_numbers_that_come_later_than_the_clock_skew_are_of_a_new_hub(late: int, recreated: bool) -> None:
    """One hub enqueues lower numbers before number 100, give or take the difference of two clocks."""
    higher, lower = Numbers(100, 199, 1000, 2000), Numbers(0, 90, 1000 + MAX_CLOCK_SKEW + late, 2 * MAX_CLOCK_SKEW)
    numbers = chain([higher, lower])
    assert jumps(numbers) == ([(199, 0, True)] if recreated else [(90, 100, False)])


@pytest.mark.parametrize(("late", "recreated"), [(0, False), (1, True)])
def test_overlapping_numbers_that_come_later_than_the_clock_skew_are_of_a_new_hub(late: int, recreated: bool) -> None:
    first, second = Numbers(0, 99, 0, 2000), Numbers(50, 120, 2000 + MAX_CLOCK_SKEW + late, 3 * MAX_CLOCK_SKEW)
    assert jumps(chain([first, second])) == ([(99, 50, True)] if recreated else [])


def test_a_repeated_number_that_comes_later_than_the_clock_skew_is_of_a_new_hub() -> None:
    first, second = Numbers(0, 7, 0, 10), Numbers(7, 7, 11 + MAX_CLOCK_SKEW, 11 + MAX_CLOCK_SKEW)
    assert jumps(chain([first, second])) == [(7, 7, True)]


def test_numbers_that_start_again_at_the_modulus_continue_the_range() -> None:
    end = [Numbers(MODULUS - 200, MODULUS - 101, 0, 1), Numbers(MODULUS - 100, MODULUS - 1, 2, 3)]
    assert ranges(chain(end, [Numbers(0, 99, HOUR, HOUR + 1)], modulus=MODULUS)) == [(MODULUS - 200, MODULUS + 99)]


def test_a_time_lies_between_the_ranges_before_and_after_it() -> None:
    numbers = chain([Numbers(0, 9, 0, 10), Numbers(20, 29, 20, 30), Numbers(40, 49, 40, 50)])
    first, second, third = numbers.placed
    assert numbers.at(15) == (first, second, numbers.jumps[0])
    assert numbers.at(35) == (second, third, numbers.jumps[1])
    assert numbers.at(-1) == (None, first, None)
    assert numbers.at(51) == (third, None, None)


@pytest.mark.parametrize("time", [20, 25, 30])
def test_a_range_that_spans_a_time_is_before_and_after_it(time: int) -> None:
    numbers = chain([Numbers(0, 9, 0, 10), Numbers(20, 29, 20, 30)])
    assert numbers.at(time) == (numbers.placed[1], numbers.placed[1], None)


def test_a_range_without_times_is_neither_before_nor_after_any() -> None:
    assert chain([Numbers(0, 9, None, None)]).at(HOUR // 2) == (None, None, None)
