"""The order of published rows: by all columns. NULL comes first, and NaN after all other floats.

Rows that differ only in the sign of a zero or in the bits of a NaN are sorted by these bits, so the sorted rows do not
depend on the order in which they came.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.keys import comparable, ranks
from recapture.ordering.radix import BLOCK, Field, field, order_of
from recapture.process.compilation import compiled, read_only

BATCH_ROWS = 1 << 20
"""Number of rows that are taken at once."""
_MOST_BYTES = 64
"""Rows are sorted by up to this many bytes of a string before they are sorted by the whole string."""
MOST_STRING_BYTES = 2**31 - 1
"""Largest size, in bytes, of the strings of an array of Arrow's type `string`, which has offsets of 32 bits."""


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Return rows in the order of `row_order`."""
    return in_row_order(rows, row_order(rows))


def row_order(rows: pa.Table) -> NDArray[np.int64]:
    """Return the places of rows, sorted by all columns."""
    return order_of(len(rows), _fields(rows))


def in_row_order(rows: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return rows in the given order, in batches of BATCH_ROWS."""
    whole = (rows if rows.nbytes <= MOST_STRING_BYTES else with_large_strings(rows)).combine_chunks()
    starts = range(0, len(order), BATCH_ROWS)
    batches = itertools.chain.from_iterable(
        whole.take(order[start : start + BATCH_ROWS]).cast(rows.schema).to_batches() for start in starts
    )
    return pa.Table.from_batches(batches, rows.schema)


def with_large_strings(table: pa.Table) -> pa.Table:
    """Return a table whose strings may have more than 2 GB together."""
    large = {pa.string(): pa.large_string()}
    return table.cast(pa.schema([field.with_type(large.get(field.type, field.type)) for field in table.schema]))


def _fields(rows: pa.Table) -> Iterator[Field]:
    """Yield the fields that the columns are sorted by, then those that break ties between equal floats.

    New memory costs as much as sorting, so most fields share one array for their values.
    """
    values = np.empty(len(rows), np.uint64)
    for column in rows.columns:
        if column.null_count:
            yield field(column.is_valid().cast(pa.int64()).to_numpy())
        if pa.types.is_string(column.type):
            yield from _string_fields(_filled(column, ""), values)
        elif pa.types.is_floating(column.type):
            yield _float_field(comparable, column, values)
        else:
            yield field(_filled(column.cast(pa.int64()), 0).to_numpy())
    for column in rows.columns:
        if pa.types.is_floating(column.type):
            yield _float_field(_bits_of_equals, column, values)


def _filled(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    return column.fill_null(value) if column.null_count else column


def _float_field(
    integers: Callable[[NDArray[np.float64]], NDArray[np.int64]], column: pa.ChunkedArray, values: NDArray[np.uint64]
) -> Field:
    """Return floats as a field: `integers` makes integers of them, by which they are sorted."""
    floats, signed = _filled(column, 0.0).to_numpy(), values.view(np.int64)
    for start in range(0, len(floats), BLOCK):
        signed[start : start + BLOCK] = integers(floats[start : start + BLOCK])
    return field(signed)


def _string_fields(column: pa.ChunkedArray, values: NDArray[np.uint64]) -> Iterator[Field]:
    """Yield eight bytes of each string at a time. Strings are equal if their bytes and their lengths are."""
    lengths = pc.binary_length(column).to_numpy()
    longest = int(lengths.max(initial=0))
    for first in range(0, min(longest, _MOST_BYTES), 8):
        row = 0
        for chunk in column.chunks:
            _, bounds, content = chunk.buffers()
            starts = read_only(bounds, np.int32)[chunk.offset :][: len(chunk) + 1]
            words_of(starts, read_only(content, np.uint8), first, min(8, longest - first), values[row:])
            row += len(chunk)
        yield field(values)
    if longest <= _MOST_BYTES:
        values[:] = lengths
        yield field(values)
    else:
        yield field(ranks(column.cast(pa.large_string()))[0])


@compiled
def words_of(
    starts: NDArray[np.int32], content: NDArray[np.uint8], first: int, size: int, words: NDArray[np.uint64]
) -> None:
    """Write `size` bytes of each string, from its byte `first` on, as a number. Zeros follow the end of a string.

    `starts` says where each string starts in the content, and where the last one ends.
    """
    for row in range(len(starts) - 1):
        start = starts[row] + first
        end = min(start + size, starts[row + 1])
        word = np.uint64(0)
        if start < end:
            for place in range(start, end):
                word = word << np.uint64(8) | np.uint64(content[np.uint64(place)])
            word <<= np.uint64(8 * (size - (end - start)))
        words[row] = word


def _bits_of_equals(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bits of zeros and of NaN, which may be equal although their bits differ; 0 for all other floats."""
    return np.where((floats == 0.0) | np.isnan(floats), floats.view(np.int64), 0)
