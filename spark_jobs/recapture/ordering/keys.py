"""Keys of rows as numbers, and the order of rows in time.

Spark groups rows by keys in which NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0. So do these numbers.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.radix import sorted_order

Numbered: TypeAlias = tuple[NDArray[np.int64], int]
"""A number for each row, from 0, and a number that is above all of them."""
_SPARSE = 8
"""The numbers of several columns together get a table of up to this many entries a row; above that, a hash table."""


def key_codes(columns: Sequence[pa.ChunkedArray | pa.Array]) -> NDArray[np.int64]:
    """Return a number for each row, from 0 without gaps: rows have the same number if their keys are equal in Spark.

    `columns` are the parts of the key, at least one. Rows have no particular order of numbers.
    """
    return joint_codes([numbered(column) for column in columns])


def joint_codes(parts: Sequence[Numbered]) -> NDArray[np.int64]:
    """Return a number for each row, from 0 without gaps: rows have the same number if all parts have.

    `parts` are at least one; the numbers of the first have no gaps.
    """
    (codes, count), *others = parts
    for more, size in others:
        codes, count = without_gaps(codes * size + more, count * size)
    return codes


def first_rows(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row of each number of `key_codes`."""
    rows = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    rows[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return rows


def concatenated(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the values of all arrays, of which there is one at least. A single array is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def arrival_order(rows: pa.Table, codes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the places of rows in the order of number, System.Timestamp, arrival, partition and `_row`.

    `codes` has the numbers of `key_codes`; without it, the order begins with the time. Rows without the column `_row`
    that are equal in all of these keep their order. Partitions are compared as UTF-8 bytes.
    """
    sort_keys = [rows["_row"].to_numpy()] if "_row" in rows.column_names else []
    sort_keys += [partition_ranks(rows["_partition"]), *(rows[name].to_numpy() for name in _TIMES)]
    return sorted_order([*sort_keys, *([] if codes is None else [codes])])


_TIMES = ("_arrival", "_system_timestamp")


def partition_ranks(partitions: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the rank of each row's partition, from 0, in the order of their UTF-8 bytes."""
    return ranks(partitions)[0]


def ranks(column: pa.ChunkedArray | pa.Array) -> Numbered:
    """Return the rank of each row's value among the distinct values. NULL comes first, strings as their UTF-8 bytes."""
    codes, values = _encoded(column)
    order = np.roll(pc.sort_indices(values).to_numpy(), values.null_count)  # Arrow puts NULL last
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values))
    return ranks[codes], len(values)


def comparable(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return integers that compare as Spark compares floats: -0.0 equals 0.0, NaN equals NaN and is the largest."""
    normal = floats + 0.0
    normal[np.isnan(normal)] = np.nan
    bits = normal.view(np.int64)
    return bits ^ (bits >> 63 & np.iinfo(np.int64).max)


def numbered(column: pa.ChunkedArray | pa.Array) -> Numbered:
    """Return numbers for the values of one column, without gaps."""
    codes, values = _encoded(column)
    return codes, len(values)


def _encoded(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return numbers for the values of one column, and the value of each number; floats are those of `comparable`."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), column[:1]
    if pa.types.is_floating(column.type):
        values = comparable(column.fill_null(0.0).to_numpy(zero_copy_only=False))
        column = pa.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def without_gaps(codes: NDArray[np.int64], bound: int) -> Numbered:
    """Return numbers without gaps in the places of numbers below `bound`."""
    if bound > _SPARSE * len(codes):
        return numbered(pa.array(codes))
    is_used = np.zeros(bound, np.bool_)
    is_used[codes] = True
    numbers = np.cumsum(is_used, dtype=np.int32)
    return numbers[codes].astype(np.int64) - 1, int(numbers[-1]) if bound else 0
