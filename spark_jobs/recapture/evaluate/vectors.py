"""Vectors: the values of an expression over some rows.

Numbers, bits and dates are NumPy arrays with a mask of NULL; strings, structs and arrays are Arrow arrays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.duckdb_sql import one_array

DTYPES: dict[pa.DataType, Any] = {
    pa.int64(): np.int64,
    pa.int32(): np.int64,
    pa.float64(): np.float64,
    pa.bool_(): np.bool_,
    pa.date32(): np.int64,
    pa.timestamp("us", tz="UTC"): np.int64,
}
"""Types whose values are in NumPy. An INT and a DATE are computed in 64 bits."""


@dataclass(frozen=True)
class Numbers:
    """Numbers, bits, dates or times; a value under NULL means nothing, but is not NaN."""

    values: NDArray[Any]
    """One value per row, or a single one without dimension for all rows."""
    null: NDArray[np.bool_] | None = None
    """Which rows are NULL; None if none is."""


Vector = Any
"""Values of some rows: Numbers, or an array or a scalar of Arrow; a scalar stands for all rows."""


def from_arrow(column: pa.ChunkedArray | pa.Array) -> Vector:
    """Return a column of a table as a vector."""
    array = one_array(column) if isinstance(column, pa.ChunkedArray) else column
    dtype = DTYPES.get(array.type)
    if dtype is None:
        return array
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    if not array.null_count:
        return Numbers(array.to_numpy(zero_copy_only=False).astype(dtype, copy=False))
    null = array.is_null().to_numpy(zero_copy_only=False)
    return Numbers(
        pc.fill_null(array, False if dtype is np.bool_ else 0).to_numpy(zero_copy_only=False).astype(dtype, copy=False),
        null,
    )


def to_arrow(vector: Vector, type_: pa.DataType, size: int) -> pa.Array:
    """Return a vector of `size` rows as an Arrow array."""
    if isinstance(vector, pa.Scalar):
        if vector.is_valid:
            return pa.repeat(vector, size)
        return pa.nulls(size, type_)
    if not isinstance(vector, Numbers):
        return vector
    values = vector.values if vector.values.shape else np.full(size, vector.values)
    null = vector.null
    if null is not None and not null.shape:
        null = np.full(size, null)
    if pa.types.is_int32(type_) or pa.types.is_date32(type_):
        return pa.array(values.astype(np.int32), pa.int32(), mask=null).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64(), mask=null).cast(type_)
    return pa.array(values, type_, mask=null)


def null_of(vector: Vector) -> NDArray[np.bool_] | None:
    """Return which rows are NULL; None if none is. A mask without dimension stands for all rows."""
    if isinstance(vector, Numbers):
        return vector.null
    if isinstance(vector, pa.Scalar):
        return None if vector.is_valid else np.ones((), np.bool_)
    if isinstance(vector, pa.Array):
        return vector.is_null().to_numpy(zero_copy_only=False) if vector.null_count else None
    null: NDArray[np.bool_] = vector.indexes < 0
    return null if null.any() else None


def either(*masks: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which rows are in one of the masks; None if all masks are None."""
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    return present[0] if len(present) == 1 else np.logical_or.reduce(np.broadcast_arrays(*present))


def taken(vector: Vector, rows: NDArray[np.int64]) -> Vector:
    """Return the values of some rows, by their indexes."""
    if isinstance(vector, pa.Scalar):
        return vector
    if isinstance(vector, Numbers):
        values = vector.values[rows] if vector.values.shape else vector.values
        null = vector.null[rows] if vector.null is not None and vector.null.shape else vector.null
        if null is not None and null.shape and not null.any():
            null = None
        return Numbers(values, null)
    if isinstance(vector, pa.Array):
        return vector.take(pa.array(rows))
    return vector.taken(rows)
