"""Rows are sorted by the bits of several values, as far as these are needed."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering.radix import CACHED_ROWS, FEW_ROWS, Field, field, order_of, sorted_order


@pytest.mark.parametrize("rows", [0, 1, FEW_ROWS, FEW_ROWS + 1, CACHED_ROWS, 4 * CACHED_ROWS])
@pytest.mark.parametrize("sizes", [(1, 1), (2**40, 3), (3, 2**63 - 1), (2**63 - 1, 2**63 - 1, 5)])
def test_rows_are_sorted_by_the_last_key_first_and_equal_rows_keep_their_order(
    rows: int, sizes: tuple[int, ...]
) -> None:
    random = np.random.default_rng(rows)
    keys = [random.choice(random.integers(-size, size, 50), rows) for size in sizes]
    assert sorted_order(keys).tolist() == np.lexsort(keys).tolist()


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 1)] * 3), min_size=1))
def test_keys_of_the_whole_range_of_bigints_are_sorted(rows: list[tuple[int, int, int]]) -> None:
    keys = [np.array(key, np.int64) for key in zip(*rows, strict=True)]
    assert sorted_order(keys).tolist() == np.lexsort(keys).tolist()


def test_a_field_is_read_only_if_rows_are_equal_before_it() -> None:
    def fields(*first: int) -> Iterator[Field]:
        yield field(np.array(first))
        raise LookupError

    assert order_of(3, fields(2**63 - 1, -(2**63), 0)).tolist() == [1, 2, 0]
    with pytest.raises(LookupError):
        order_of(3, fields(2**63 - 1, -(2**63), -(2**63)))
