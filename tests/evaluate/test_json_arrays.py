"""JSON arrays equal those that Python joins, however their elements lie in memory."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate import json_arrays as arrays
from recapture.evaluate.json_arrays import json_arrays

STRINGS = st.lists(st.text(max_size=12), min_size=1, max_size=8)


@given(STRINGS, st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=5), st.booleans(), st.booleans())
def test_each_array_has_the_strings_of_its_rows(
    strings: list[str], windows: list[list[int]], is_cut: bool, is_large: bool
) -> None:
    whole = pa.array(["before", *strings] if is_cut else strings, pa.large_string() if is_large else pa.string())
    rows = [[row % len(strings) for row in window] for window in windows]
    starts = np.cumsum([0, *map(len, rows)])
    joined = json_arrays(whole[1:] if is_cut else whole, np.array([*chain.from_iterable(rows)], np.int64), starts)
    joined.validate(full=True)
    assert joined.to_pylist() == ["[" + ",".join(strings[row] for row in window) + "]" for window in rows]


def test_arrays_that_are_too_large_for_arrow_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MOST_STRING_BYTES", 8)
    two = np.arange(2)
    assert json_arrays(pa.array(["12", "345"]), two, np.array([0, 2])).to_pylist() == ["[12,345]"]
    with pytest.raises(pa.ArrowCapacityError, match="has 9 bytes; at most 8 are possible"):
        json_arrays(pa.array(["12", "3456"]), two, np.array([0, 2]))
