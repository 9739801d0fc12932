"""The values of a column as integers that compare as Spark compares the values."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.keys import comparable

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NAN = comparable(np.array([np.nan]))[0]


def ranks(column: pa.ChunkedArray | pa.Array) -> tuple[Int64s, Callable[[Int64s, Bools], pa.Array]]:
    """Return an integer for each value of a column, and a function that returns the values of such integers.

    Strings are compared as UTF-8 bytes; NaN is the largest float, and -0.0 becomes 0.0. The integer of NULL means
    nothing. The function takes which integers stand for NULL, too; these must be 0.
    """
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    type_ = column.type
    if pa.types.is_null(type_):
        return np.zeros(len(column), np.int64), lambda chosen, null: pa.nulls(len(chosen))
    if pa.types.is_string(type_):
        return _text_ranks(column)
    if pa.types.is_floating(type_):
        numbers = comparable(column.fill_null(0.0).to_numpy(zero_copy_only=False))
        return numbers, lambda chosen, null: pa.array(floats(chosen), mask=null)
    filled = column.fill_null(pa.scalar(False if pa.types.is_boolean(type_) else 0, type_))
    numbers = filled.cast(pa.int64()).to_numpy()
    return numbers, lambda chosen, null: pa.array(chosen, mask=null).cast(type_)


def sort_keys(column: pa.Array, *, descending: bool = False) -> list[Int64s]:
    """Return what orders the values of a column in ORDER BY; the last comes first.

    NULL is the smallest value. NaN is the largest, and comes last in both directions.
    """
    numbers, _ = ranks(column)
    is_valid = column.is_valid().to_numpy(zero_copy_only=False)
    if descending:
        numbers = np.where((numbers == _NAN) & pa.types.is_floating(column.type), numbers, ~numbers)
    return [np.where(is_valid, numbers, 0), (is_valid != descending).astype(np.int64)]


def floats(numbers: Int64s) -> NDArray[np.float64]:
    """Return the floats of integers that `keys.comparable` returned."""
    return np.where(numbers < 0, numbers ^ np.iinfo(np.int64).max, numbers).view(np.float64)


def _text_ranks(column: pa.Array) -> tuple[Int64s, Callable[[Int64s, Bools], pa.Array]]:
    encoded = pc.dictionary_encode(column)
    order = pc.array_sort_indices(encoded.dictionary)
    places = np.zeros(len(order) + 1, np.int64)
    places[order.to_numpy()] = np.arange(len(order))
    numbers = places[encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)]
    texts = encoded.dictionary.take(order)
    return numbers, lambda chosen, null: texts.take(pa.array(chosen, mask=null))
