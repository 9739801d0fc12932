"""Buckets of rows: rows with equal keys are in one bucket, whatever their input, their task or their machine."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.ordering.keys import comparable
from recapture.process.compilation import compiled

_NULL = -7046029254386353131
"""What NULL is hashed as."""


def buckets_of(rows: pa.Table | pa.RecordBatch, columns: Sequence[str], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each row, from 0: rows whose keys are equal as in GROUP BY have the same bucket.

    Without columns, rows next to each other have the same bucket.
    """
    if not columns:
        return np.arange(rows.num_rows) * buckets // max(rows.num_rows, 1)
    hashes = np.zeros(rows.num_rows, np.uint64)
    for name in columns:
        mix(hashes, _integers(rows[name]))
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _integers(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return an integer for each value; equal values have equal integers."""
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([np.empty(0, np.int64), *map(_integers, column.chunks)])
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_string(column.type):
        _, offsets, content = column.buffers()
        integers = np.empty(len(column), np.int64)
        places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        hash_strings(np.frombuffer(content or b"", np.uint8), places, integers)
    elif pa.types.is_floating(column.type):
        integers = comparable(column.fill_null(0.0).to_numpy(zero_copy_only=False))
    else:
        integers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(is_null, _NULL, integers)


@compiled
def hash_strings(content: NDArray[np.uint8], places: NDArray[np.int32], hashes: NDArray[np.int64]) -> None:
    """Write a hash of each string (FNV-1a), which is between two of the places."""
    for row in range(len(hashes)):
        state = np.uint64(14695981039346656037)
        for place in range(places[row], places[row + 1]):
            state = (state ^ np.uint64(content[place])) * np.uint64(1099511628211)
        hashes[row] = np.int64(state)


@compiled
def mix(hashes: NDArray[np.uint64], integers: NDArray[np.int64]) -> None:
    """Mix an integer into the hash of each row (the finalizer of SplitMix64)."""
    for row in range(len(hashes)):
        state = (hashes[row] + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(integers[row])
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes[row] = state ^ (state >> np.uint64(31))
