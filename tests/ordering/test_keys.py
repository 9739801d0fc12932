"""Keys are numbered and rows ordered as Spark compares them."""

import math

import numpy as np
import pyarrow as pa
import pytest

from recapture.ordering.keys import arrival_order, comparable, first_rows, key_codes

NAN = float("nan")
OTHER_NAN = float(np.array([0x7FF8000000000001], np.int64).view(np.float64)[0])


def partition_of(codes: np.ndarray) -> list[int]:
    """Return each row's first row with the same number."""
    return first_rows(codes)[codes].tolist()


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (pa.array([1, None, 1, None, 0]), [0, 1, 0, 1, 4]),
        (pa.array([NAN, 0.0, None, -0.0, OTHER_NAN, None, 1.5]), [0, 1, 2, 1, 0, 2, 6]),
        (pa.array(["a", "", None, "a", "A", None]), [0, 1, 2, 0, 4, 2]),
        (pa.array([True, None, False, True]), [0, 1, 2, 0]),
        (pa.nulls(3), [0, 0, 0]),
        (pa.chunked_array([["b", "a"], ["a", None]]), [0, 1, 1, 3]),
    ],
)
def test_equal_keys_have_the_same_number(values: pa.Array, first: list[int]) -> None:
    assert partition_of(key_codes([values])) == first


def test_keys_of_several_columns_are_equal_if_all_parts_are() -> None:
    codes = key_codes([pa.array([1, 1, None, None, 1]), pa.array(["a", "b", None, None, "a"]), pa.array([NAN] * 5)])
    assert partition_of(codes) == [0, 1, 2, 2, 0]
    assert sorted(set(codes.tolist())) == [0, 1, 2]


def test_numbers_of_many_sparse_keys_have_no_gaps() -> None:
    random = np.random.default_rng(1)
    columns = [random.integers(0, 40, 300) for _ in range(4)]
    codes = key_codes([pa.array(column) for column in columns])
    distinct = list(dict.fromkeys(zip(*(column.tolist() for column in columns), strict=True)))
    assert sorted(set(codes.tolist())) == list(range(len(distinct)))
    keys = [tuple(column[row] for column in columns) for row in first_rows(codes)]
    assert [tuple(column[row] for column in columns) for row in range(300)] == [keys[code] for code in codes]


def test_no_rows_have_no_keys() -> None:
    assert len(key_codes([pa.array([], pa.string()), pa.array([], pa.float64())])) == 0


def test_rows_are_ordered_by_key_time_arrival_partition_and_row() -> None:
    random = np.random.default_rng(2)
    count = 2000
    partitions = [["z", "é", "a", "10", "9"][number] for number in random.integers(0, 5, count)]
    rows = pa.table(
        {
            "_system_timestamp": random.integers(-3, 3, count) * 10**13,
            "_arrival": random.integers(0, 3, count),
            "_partition": partitions,
            "_row": random.permutation(count),
        }
    )
    codes = random.integers(0, 7, count)
    columns = [rows[name].to_pylist() for name in ("_system_timestamp", "_arrival", "_partition", "_row")]
    keys = [
        (code, time, arrival, partition.encode(), row)
        for code, time, arrival, partition, row in zip(codes, *columns, strict=True)
    ]
    assert arrival_order(rows, codes).tolist() == sorted(range(count), key=keys.__getitem__)
    assert arrival_order(rows).tolist() == sorted(range(count), key=lambda row: keys[row][1:])
    unnumbered = arrival_order(rows.drop_columns("_row"), codes)
    assert unnumbered.tolist() == sorted(range(count), key=lambda row: keys[row][:4])


def test_no_rows_have_an_order() -> None:
    rows = pa.table({"_system_timestamp": pa.array([], pa.int64()), "_arrival": pa.array([], pa.int64())})
    rows = rows.append_column("_partition", pa.array([], pa.string()))
    assert len(arrival_order(rows)) == 0


def test_floats_compare_as_in_spark() -> None:
    floats = np.array([NAN, -math.inf, -1e300, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, OTHER_NAN])
    numbers = comparable(floats)
    assert numbers[4] == numbers[5]
    assert numbers[0] == numbers[9]
    order = numbers[[1, 2, 3, 4, 6, 7, 8, 0]]
    assert np.all(np.diff(order.astype(object)) > 0)
