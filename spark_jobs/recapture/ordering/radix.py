"""The order of rows by several values: a radix sort.

Each value is written in as few bits as its range needs, in the same order. The bits of a row form one long number, with
the first value in the highest bits. Rows are sorted by the first 64 bits, and those that tie by the next 64. So later
values are read only to break ties.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recapture.process.compilation import compiled

DIGIT_BITS = 10
"""Number of bits that one pass sorts by."""
CACHED_ROWS = 1 << 15
"""Largest number of rows that are sorted from the lowest digit on: they fit into the cache of a core."""
FEW_ROWS = 24
"""Largest number of rows that are sorted by insertion."""
BLOCK = 1 << 15
"""Number of rows that NumPy computes at once: the results fit into the cache of a core."""
_WORD = 64
Keys: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = NDArray[np.int64]


class Field(NamedTuple):
    """A value of each row. Rows with a smaller value come first."""

    values: Keys
    """Values, or the bits of signed integers."""
    least: np.uint64
    bits: int
    """Number of bits of the largest difference from the least value."""


def field(values: NDArray[np.int64] | Keys) -> Field:
    """Return a value of each row as a field."""
    least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    bits = np.ascontiguousarray(values).view(np.uint64)
    return Field(bits, np.uint64(least % (1 << _WORD)), (most - least).bit_length())


def sorted_order(sort_keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the places of rows in the order of several keys, as np.lexsort does: the last key comes first."""
    return order_of(len(sort_keys[0]), map(field, reversed(sort_keys)))


def order_of(rows: int, fields: Iterable[Field]) -> NDArray[np.int64]:
    """Return the places of rows, sorted by their fields, of which the first counts most; equal rows keep their order.

    A field is read only if rows tie in all fields before it. Once the next field is read, it is not read again.
    """
    order = np.arange(rows)
    is_first = np.zeros(rows, np.bool_)
    is_first[:1] = True
    for number, word in enumerate(_words(rows, fields)):
        if not sort_runs(word[order] if number else word, order, is_first):
            break
    return order


def _words(rows: int, fields: Iterable[Field]) -> Iterator[Keys]:
    """Yield 64 bits of each row at a time. The array is used again: copy it to keep it."""
    word, room = np.zeros(rows, np.uint64), _WORD
    for values, least, bits in fields:
        while bits:
            _add_bits(word, values, least, _WORD - bits, _WORD - room)
            added = min(bits, room)
            bits, room = bits - added, room - added
            if not room:
                yield word
                word[:], room = 0, _WORD
    if room < _WORD:
        yield word


def _add_bits(word: Keys, values: Keys, least: np.uint64, passed: int, taken: int) -> None:
    """Append the bits of each value to the word of its row: skip the `passed` highest, write after the `taken` ones."""
    for start in range(0, len(word), BLOCK):
        bits = values[start : start + BLOCK] - least
        bits <<= np.uint64(passed)
        bits >>= np.uint64(taken)
        word[start : start + BLOCK] |= bits


@compiled
def sort_runs(keys: Keys, order: Rows, is_first: NDArray[np.bool_]) -> bool:
    """Sort each run of rows by their keys, and split it where keys differ. Return whether any run still has two rows.

    `order` has the rows of all runs, and `keys` the key of each of them. `is_first` says where runs begin.
    """
    spare_keys, spare_rows = np.empty(0, np.uint64), np.empty(0, np.int64)
    has_ties = False
    first = 0
    while first < len(keys):
        last, is_sorted = first + 1, True
        while last < len(keys) and not is_first[last]:
            is_sorted = is_sorted and keys[last - 1] <= keys[last]
            last += 1
        if not is_sorted:
            count = last - first
            if count > len(spare_keys):
                spare_keys, spare_rows = np.empty(count, np.uint64), np.empty(count, np.int64)
            sort_rows(keys[first:last], order[first:last], spare_keys[:count], spare_rows[:count])
        for place in range(first + 1, last):
            is_first[place] = keys[place] != keys[place - 1]
            has_ties = has_ties or not is_first[place]
        first = last
    return has_ties


@compiled
def sort_rows(keys: Keys, rows: Rows, spare_keys: Keys, spare_rows: Rows) -> None:
    """Sort rows by their keys; rows with equal keys keep their order. The spare arrays, as large, are overwritten.

    Many rows are divided by the highest digit in which they differ, and each part is sorted on its own.
    """
    count = len(keys)
    if count <= FEW_ROWS:
        insert_in_order(keys, rows)
        return
    low, high = differing_bits(keys)
    if count <= CACHED_ROWS:
        sort_digits(keys, rows, spare_keys, spare_rows, low, high)
        return
    for place in range(count):
        spare_keys[place], spare_rows[place] = keys[place], rows[place]
    shift = max(low, high - DIGIT_BITS)
    ends = move_to_digits(spare_keys, spare_rows, keys, rows, shift)
    first = 0
    for last in ends:
        if shift > low and last - first > 1:
            sort_rows(keys[first:last], rows[first:last], spare_keys[first:last], spare_rows[first:last])
        first = last


@compiled
def insert_in_order(keys: Keys, rows: Rows) -> None:
    """Sort a few rows by their keys."""
    for number in range(1, len(keys)):
        key, row, place = keys[number], rows[number], number
        while place > 0 and keys[place - 1] > key:
            keys[place], rows[place] = keys[place - 1], rows[place - 1]
            place -= 1
        keys[place], rows[place] = key, row


@compiled
def differing_bits(keys: Keys) -> tuple[int, int]:
    """Return the lowest bit in which keys differ, and the one above the highest; the same if all are equal."""
    differing = np.uint64(0)
    for key in keys:
        differing |= key ^ keys[0]
    low = high = 0
    while high < _WORD and differing >> np.uint64(high):
        high += 1
    while low < high and not differing >> np.uint64(low) & np.uint64(1):
        low += 1
    return low, high


@compiled
def sort_digits(keys: Keys, rows: Rows, spare_keys: Keys, spare_rows: Rows, low: int, high: int) -> None:
    """Sort rows by the bits of their keys from `low` to `high`, digit by digit from the lowest."""
    from_keys, from_rows, to_keys, to_rows = keys, rows, spare_keys, spare_rows
    is_moved = False
    for shift in range(low, high, DIGIT_BITS):
        move_to_digits(from_keys, from_rows, to_keys, to_rows, shift)
        from_keys, from_rows, to_keys, to_rows = to_keys, to_rows, from_keys, from_rows
        is_moved = not is_moved
    if is_moved:
        for place in range(len(keys)):
            keys[place], rows[place] = spare_keys[place], spare_rows[place]


@compiled
def move_to_digits(keys: Keys, rows: Rows, to_keys: Keys, to_rows: Rows, shift: int) -> Rows:
    """Sort rows by one digit into other arrays, and return where the rows of each digit end."""
    digit, ends = np.uint64((1 << DIGIT_BITS) - 1), np.zeros((1 << DIGIT_BITS) + 1, np.int64)
    right = np.uint64(shift)
    for key in keys:
        ends[(key >> right & digit) + np.uint64(1)] += 1
    for number in range(1 << DIGIT_BITS):
        ends[number + 1] += ends[number]
    for number in range(len(keys)):
        key = keys[number]
        place = ends[key >> right & digit]
        ends[key >> right & digit] = place + 1
        to_keys[place], to_rows[place] = key, rows[number]
    return ends[:-1]
