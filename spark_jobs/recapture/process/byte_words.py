"""Read and compare the bytes of a buffer in compiled code, one or eight at a time.

Places must not be negative, and the bytes must be there: nothing is checked.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import inlined

Bytes: TypeAlias = NDArray[np.uint8]


@inlined
def byte_at(data: bytes | Bytes, at: int) -> int:
    """Return a byte. An unsigned index spares Numba the check for negative ones, which count from the end."""
    return int(data[np.uint64(at)])


@inlined
def eight_at(data: Bytes, at: int) -> np.uint64:
    """Return eight bytes as one number; LLVM makes one instruction of it."""
    place, word = np.uint64(at), np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[place + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@inlined
def are_equal(data: Bytes, left: int, right: int, size: int) -> bool:
    """Return whether the bytes at two places are equal."""
    place = 0
    if size >= 8:
        last = size - 8
        while place < last:
            if eight_at(data, left + place) != eight_at(data, right + place):
                return False
            place += 8
        return bool(eight_at(data, left + last) == eight_at(data, right + last))
    while place < size and byte_at(data, left + place) == byte_at(data, right + place):
        place += 1
    return place == size
