"""The JSON of records and arrays as DuckDB writes it, in compiled code: without spaces, and 21.50 as 21.5."""

import numpy as np
from numpy.typing import NDArray

from recapture.formats.json_bodies.grammar import UNUSUAL, after_number, digits_of
from recapture.process.byte_words import Bytes, byte_at
from recapture.process.compilation import compiled, inlined

_INTEGER_SIZE = 18
_FLOAT_SIZE = 15
"""Largest size of a number with a point, in bytes. Two numbers with so few digits are never the same float, so its
shortest spelling is this number without the zeros at its end."""
_DECIMALS = 4
"""Number of decimals of the smallest number that DuckDB certainly writes without a power of ten."""


@inlined
def _number_size(data: Bytes, at: int, after: int, is_integer: bool) -> int:
    """Return how much of a number DuckDB writes: 21.50 => 21.5, 22.00 => 22.0. Return 0 if it may write another one."""
    if after - at > (_INTEGER_SIZE if is_integer else _FLOAT_SIZE):
        return 0
    digits, decimals, has_power = digits_of(data, at, after)
    if has_power:
        return 0
    if is_integer:
        return after - at if digits or byte_at(data, at) != 0x2D else 0
    if digits and digits * 10**_DECIMALS < 10**decimals:
        return 0
    while byte_at(data, after - 1) == 0x30 and byte_at(data, after - 2) != 0x2E:
        after -= 1
    return after - at


@compiled
def copy_json(
    data: Bytes,
    begin: int,
    end: int,
    places: NDArray[np.int64],
    sizes: NDArray[np.int32],
    bounds: NDArray[np.int32],
    copies: Bytes,
    usual: NDArray[np.bool_],
) -> None:
    """Copy the JSON of a field from its places in a buffer, one after the other, and set the bounds of the copies.

    `sizes` are those in the buffer, 0 where a body has no value. A body is not usual if DuckDB may write one of its
    numbers in another way.
    """
    for row in range(begin, end):
        at, after, target, in_string = places[row], places[row] + sizes[row], bounds[row], False
        while at < after:
            byte = byte_at(data, at)
            if not in_string and (byte == 0x2D or (byte >= 0x30 and byte <= 0x39)):
                number_end, is_integer = after_number(data, at)
                size = 0 if number_end == UNUSUAL else _number_size(data, at, number_end, is_integer)
                if not size:
                    usual[row] = False
                    break
                for place in range(size):
                    copies[np.uint64(target + place)] = data[np.uint64(at + place)]
                target += size
                at = number_end
                continue
            if in_string or byte > 0x20:
                copies[np.uint64(target)] = byte
                target += 1
                in_string ^= byte == 0x22
            at += 1
        bounds[row + 1] = target
