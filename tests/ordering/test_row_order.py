"""Published rows are sorted as Arrow sorts them, and equal rows are the same whatever order they came in."""

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.model import TYPES
from recapture.ordering import radix, row_order
from recapture.ordering.row_order import sorted_rows

OTHER_NAN = float(np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, OTHER_NAN, math.inf, 1.5, 5e-324]),
    pa.string(): st.text(max_size=20) | st.sampled_from(["", "a", "a\0", "b" * 8, "b" * 80, "b" * 81, "b" * 80 + "\0"]),
    pa.bool_(): st.booleans(),
    pa.timestamp("us", tz="UTC"): st.integers(-(2**62), 2**62) | st.integers(-1, 1),
}
"""Values of all types that are published."""


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw rows with few distinct values, so many of them are equal in some columns, in two chunks."""
    count = draw(st.integers(0, 40))
    columns = {}
    for number, type_ in enumerate(draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=4))):
        some = draw(st.lists(draw(st.sampled_from([VALUES[type_], VALUES[type_] | st.none()])), min_size=1, max_size=6))
        some = draw(st.sampled_from([some, [None]]))
        values = pa.array([some[draw(st.integers(0, len(some) - 1))] for _ in range(count)], type_)
        cut = draw(st.integers(0, count))
        columns[str(number)] = pa.chunked_array([values[:cut], values[cut:]], type_)
    return pa.table(columns)


def sorted_by_arrow(rows: pa.Table) -> pa.Table:
    """Return rows sorted by all columns, NULL first; then by the bits of floats that are equal."""
    keys = {}
    for name in rows.column_names:
        keys[f"{name} is given"] = pc.is_valid(rows[name])
        keys[name] = rows[name]
    for name in rows.column_names:
        if pa.types.is_floating(rows[name].type):
            floats = rows[name].fill_null(0.0).to_numpy()
            keys[f"{name} as bits"] = np.where((floats == 0) | np.isnan(floats), floats.view(np.int64), 0)
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def bits_of(rows: pa.Table) -> pa.Table:
    """Return rows with their floats as bits, so NaN equals NaN, and no zero another one."""
    columns = [c.combine_chunks() for c in rows.columns]
    return pa.table([c.view(pa.int64()) if pa.types.is_floating(c.type) else c for c in columns], rows.column_names)


def test_all_published_types_are_drawn() -> None:
    assert {representation.published for representation in TYPES.values()} == {*VALUES}


@given(tables())
def test_rows_are_sorted_as_arrow_sorts_them(rows: pa.Table) -> None:
    in_order = sorted_rows(rows)
    assert in_order.schema == rows.schema
    assert bits_of(in_order).equals(bits_of(sorted_by_arrow(rows)))


@pytest.mark.parametrize("distinct", [3, 1000, 2**63])
def test_many_rows_are_sorted_as_arrow_sorts_them(distinct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "BATCH_ROWS", 10_000)
    random = np.random.default_rng(3)
    count = 3 * radix.CACHED_ROWS
    numbers = random.integers(0, distinct, count)
    columns = {"device": [f"device-{number % 1999}" for number in numbers], "d": np.round(numbers / 7, 2), "n": numbers}
    rows = pa.table(columns)
    assert sorted_rows(rows).equals(sorted_by_arrow(rows))


def test_the_order_of_equal_zeros_and_nan_does_not_depend_on_the_order_of_the_rows() -> None:
    odd = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]
    floats = [math.nan, 0.0, odd, -0.0, 1.0, None, -1.0]
    rows = pa.table({"x": pa.array(floats), "n": [1] * len(floats)})
    bits = {
        sorted_rows(rows.take(list(order)))["x"].drop_null().to_numpy().tobytes()
        for order in itertools.permutations(range(len(floats)))
    }
    assert len(bits) == 1
    assert [str(value) for value in sorted_rows(rows)["x"].to_pylist()] == (
        ["None", "-1.0", "-0.0", "0.0", "1.0", "nan", "nan"]
    )


def test_strings_are_sorted_by_their_bytes_and_null_comes_first() -> None:
    words = [None, "", "b", "a\u00e9", "a", "\uffff", "\U0001f600", "aa"]
    rows = pa.table({"word": [words[number * 7 % 8] for number in range(9000)], "x": [*range(9000, 0, -1)]})

    expected = sorted(rows.to_pylist(), key=lambda row: ((row["word"] or "").encode(), row["x"]))
    expected.sort(key=lambda row: row["word"] is not None)

    assert sorted_rows(rows).to_pylist() == expected


@pytest.mark.parametrize(
    "columns",
    [
        {"w": [1, 1, 2], "k": ["b", "a", "a"]},
        {"w": [1, 1, 2], "k": ["a", "a", "b"], "n": [2, 1, 0]},
        {"w": [1, 2, None], "k": ["a", "b", "c"]},
        {"w": [1, 1, 2], "x": [1.0, math.nan, 0.0], "n": [1, 0, 2]},
        {"w": [False, True], "k": ["b", "a"]},
    ],
)
def test_rows_that_ascend_only_in_some_columns_are_sorted(columns: dict[str, list[Any]]) -> None:
    rows = pa.table(columns)
    expected = sorted(rows.to_pylist(), key=lambda row: [(x is not None, x != x, x or 0) for x in row.values()])
    assert repr(sorted_rows(rows).to_pylist()) == repr(expected)
