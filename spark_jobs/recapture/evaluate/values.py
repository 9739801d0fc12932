"""Columns as integers that compare as Spark compares their values."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.keys import comparable

NAN = int(comparable(np.array([np.nan]))[0])
"""The integer that stands for NaN."""


class Comparable(NamedTuple):
    """A column as integers in the order of its values."""

    numbers: NDArray[np.int64]
    """One integer for each row; any for NULL."""
    is_valid: NDArray[np.bool_]
    """Which rows are not NULL."""
    value: Callable[[pa.Array], pa.Array]
    """Returns the values that integers stand for; of floats, 0.0 for -0.0."""


def comparable_column(column: pa.Array) -> Comparable:
    """Return a column of bigints, floats, strings or bits as integers."""
    is_valid = column.is_valid().to_numpy(zero_copy_only=False)
    type_ = column.type
    if pa.types.is_null(type_):
        return Comparable(np.zeros(len(column), np.int64), is_valid, lambda numbers: pa.nulls(len(numbers)))
    if pa.types.is_floating(type_):
        floats = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        return Comparable(comparable(floats), is_valid, _floats)
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return Comparable(numbers, is_valid, lambda numbers: numbers.cast(type_))
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.zeros(len(order) + 1, np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    numbers = ranks[encoded.indices.fill_null(len(order)).to_numpy()]
    in_order = encoded.dictionary.take(order)
    return Comparable(numbers, is_valid, in_order.take)


def _floats(numbers: pa.Array) -> pa.Array:
    """Return the floats that integers of `keys.comparable` stand for."""
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    bits = np.where(values < 0, values ^ np.iinfo(np.int64).max, values)
    return pa.array(bits.view(np.float64), mask=numbers.is_null().to_numpy(zero_copy_only=False))


def as_floats(column: pa.Array) -> NDArray[np.float64]:
    """Return a column of floats or bigints as floats; any for NULL."""
    return column.fill_null(0).cast(pa.float64()).to_numpy(zero_copy_only=False)


def single_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array. Strings of more than 2 GB are large strings."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.nbytes > np.iinfo(np.int32).max and pa.types.is_string(column.type):
        column = column.cast(pa.large_string())
    return column.combine_chunks()
