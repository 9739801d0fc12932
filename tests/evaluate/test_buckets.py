"""Buckets: rows whose keys are equal as in GROUP BY are in one bucket."""

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate.buckets import buckets_of
from recapture.ordering.keys import key_codes

STRINGS = st.none() | st.sampled_from(["", "a", "b", "ab", "ä", "device-12"])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan, math.inf])
ROWS = st.lists(st.tuples(STRINGS, FLOATS, st.none() | st.integers(-2, 2), st.none() | st.booleans()), max_size=40)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    types = (pa.string(), pa.float64(), pa.int64(), pa.bool_())
    return pa.table({name: pa.array(values, of) for name, values, of in zip("sfib", columns, types, strict=True)})


@given(ROWS, st.sets(st.sampled_from("sfib"), min_size=1), st.integers(1, 5), st.integers(0, 40))
def test_equal_keys_are_in_one_bucket_in_every_batch(
    rows: list[tuple[object, ...]], columns: set[str], buckets: int, place: int
) -> None:
    whole = table(rows)
    names = sorted(columns)
    parts = [whole.slice(0, place), whole.slice(place)]
    chosen = np.concatenate([buckets_of(part.combine_chunks(), names, buckets) for part in parts])
    assert chosen.tolist() == buckets_of(whole, names, buckets).tolist()
    assert all(0 <= bucket < buckets for bucket in chosen)
    codes = key_codes([whole[name] for name in names])
    assert len({*zip(codes.tolist(), chosen.tolist(), strict=True)}) == len({*codes.tolist()})


def test_many_keys_fill_all_buckets_evenly() -> None:
    rows = pa.table({"k": [f"device-{number}" for number in range(100_000)], "n": range(100_000)})
    for columns in (["k"], ["n"], ["k", "n"], []):
        sizes = np.bincount(buckets_of(rows, columns, 7))
        assert sizes.min() > 0.95 * len(rows) / 7


def test_rows_that_never_meet_are_divided_into_parts_next_to_each_other() -> None:
    assert buckets_of(pa.table({"k": range(5)}), [], 2).tolist() == [0, 0, 0, 1, 1]
