"""Numbers for strings, the same in every chunk of events: a hash table that is kept from chunk to chunk."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.process.compilation import compiled

_WORD = 8
"""Bytes that are hashed and compared at once."""
_PADDING = _WORD + 1
"""Bytes after the last string. With one fewer, Numba would compile the function once more for a single word."""
_FREE = -1
"""What a free slot has."""
_NOWHERE = np.zeros(1, np.int64)
"""Bounds of no strings."""
_P1, _P2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
"""Odd numbers that mix the bits of a hash."""


class _Strings(NamedTuple):
    """Strings as Arrow's large strings hold them."""

    bounds: NDArray[np.int64]
    """Where each string begins in the content, and where the last one ends."""
    words: NDArray[np.uint64]
    """The word that begins at each byte of the content."""


class _Known(NamedTuple):
    """Distinct strings by number, with room for more."""

    bounds: NDArray[np.int64]
    content: NDArray[np.uint8]
    words: NDArray[np.uint64]
    slots: NDArray[np.int64]
    """The hash table. A slot has 31 bits of the hash of a string and its number, or _FREE."""


class StringCodes:
    """Assigns a number to each distinct string, from 0 without gaps, the same number in every chunk."""

    def __init__(self) -> None:
        self._count = 0
        self._known = _room(0, 0)

    @property
    def values(self) -> pa.Array:
        """The distinct strings so far (large), by number. New ones will follow them."""
        buffers = [None, pa.py_buffer(self._known.bounds), pa.py_buffer(self._known.content)]
        return pa.Array.from_buffers(pa.large_string(), self._count, buffers)

    def encode(self, strings: pa.Array) -> pa.DictionaryArray:
        """Return strings with their numbers; the dictionary is `values`."""
        large = strings.cast(pa.large_string())
        _, bounds, content = large.buffers()
        places = np.frombuffer(bounds, np.int64)[large.offset :][: len(large) + 1].copy() if len(large) else _NOWHERE
        content = np.frombuffer(content or b"", np.uint8)[places[0] : places[-1]]
        padded = np.append(content, np.zeros(_PADDING, np.uint8))
        is_valid = large.is_valid().to_numpy(zero_copy_only=False)
        numbers = self._number(_Strings(places - places[0], _words(padded)), is_valid)
        return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=~is_valid), self.values)

    def _number(self, strings: _Strings, is_valid: NDArray[np.bool_]) -> NDArray[np.int32]:
        known, most = self._known, self._count + len(is_valid)
        size = int(known.bounds[self._count] + strings.bounds[-1])
        if most >= len(known.bounds) or size > len(known.content) - _PADDING:
            larger = _room(most + self._count, size + int(known.bounds[self._count]))
            distinct = _Strings(known.bounds, known.words)
            number_strings(distinct, np.ones(self._count, np.bool_), 0, larger, np.empty(self._count, np.int32))
            self._known = larger
        numbers = np.empty(len(is_valid), np.int32)
        self._count = number_strings(strings, is_valid, self._count, self._known, numbers)
        return numbers


def _room(strings: int, size: int) -> _Known:
    """Return a table without strings, with room for some that have this size in bytes together."""
    content = np.zeros(size + _PADDING, np.uint8)
    slots = np.full(1 << (strings * 3 // 2 + 1).bit_length(), _FREE, np.int64)
    return _Known(np.zeros(strings + 1, np.int64), content, _words(content), slots)


def _words(content: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the word that begins at each byte, as a view; the last bytes begin none."""
    return np.ndarray((len(content) - _WORD + 1,), "<u8", content, strides=(1,))


@compiled
def number_strings(
    strings: _Strings, is_valid: NDArray[np.bool_], count: int, known: _Known, numbers: NDArray[np.int32]
) -> int:
    """Fill in the number of each valid string, add new strings to the first `count`, and return how many there are."""
    bounds, words, slots = strings.bounds, strings.words, known.slots
    last_slot = np.uint64(len(slots) - 1)
    hashes = np.empty(len(numbers), np.uint64)
    for row in range(len(numbers)):
        place, end = bounds[row], bounds[row + 1]
        mixed = np.uint64(end - place) * _P2
        while place < end:
            word = words[place]
            if end - place < 8:
                word &= (np.uint64(1) << np.uint64(8 * (end - place))) - np.uint64(1)
            mixed = (mixed ^ word) * _P1
            mixed ^= mixed >> np.uint64(32)
            place += 8
        hashes[row] = mixed * _P2
    for row in range(len(numbers)):
        if not is_valid[row]:
            continue
        begin, size = bounds[row], bounds[row + 1] - bounds[row]
        mark = np.int64(hashes[row] >> np.uint64(33))
        slot = hashes[row] & last_slot
        while True:
            entry = slots[slot]
            if entry < 0:
                start = known.bounds[count]
                for place in range(size):
                    known.content[start + place] = np.uint8(words[begin + place] & np.uint64(255))
                known.bounds[count + 1] = start + size
                slots[slot] = mark << 32 | count
                numbers[row] = count
                count += 1
                break
            number = entry & 0xFFFFFFFF
            start = known.bounds[number]
            if entry >> 32 == mark and known.bounds[number + 1] - start == size:
                place = 0
                while place < size:
                    differing = known.words[start + place] ^ words[begin + place]
                    if size - place < 8:
                        differing <<= np.uint64(64 - 8 * (size - place))
                    if differing:
                        break
                    place += 8
                if place >= size:
                    numbers[row] = number
                    break
            slot = (slot + np.uint64(1)) & last_slot
    return count
