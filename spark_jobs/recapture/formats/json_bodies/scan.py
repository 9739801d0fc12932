"""Scan JSON bodies of the usual form and note their values, in compiled code.

A body has the usual form if it is an object in ASCII without escapes, and each value that is read is null, or of the
type of its field and of a usual size. Other values may be of any kind, but must be JSON. The scan says only that any
other body is unusual: DuckDB reads it (`decoder`).

Senders write the keys of all bodies in one order. So each key is first compared with the one that stood in its place in
the body before: if they have the same bytes, it is not looked up.

Every loop over bytes ends at the latest at the bracket that closes the body, so none reads beyond the buffer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.formats.json_bodies.grammar import (
    UNUSUAL,
    after_key,
    after_literal,
    after_number,
    after_spaces,
    after_value,
    digits_of,
    string_end,
)
from recapture.process.byte_words import Bytes, are_equal, byte_at
from recapture.process.compilation import compiled, inlined
from recapture.tokens import MARK

STRING, TOKEN, FLOAT, BIGINT, BIT, ARRAY, RECORD = range(7)
"""What is read of a field; a RECORD is one whose JSON is read, or whose fields are."""
MISSING, NULL, VALUE, MARKED, WRITTEN = range(5)
"""What a body has of a field. MARKED is a value other than a string, whose token begins with a mark; WRITTEN is a float
that the scan does not convert."""
TOP = -1
"""Stands for the body among the records."""
_FLOAT_SIZE = 15
"""Largest size of a float that is converted, in bytes.

Its digits are an integer below 2 ** 53, and the power of ten that divides it is a float. So the quotient is rounded
once, and is the nearest float (source: Clinger, "How to Read Floating Point Numbers Accurately").
"""
_BIGINT_SIZE = 18
_TOKEN_SIZE = 11
"""Largest size of a number with a point, in bytes, that ASA certainly writes without a power of ten."""
_MAX_KEYS = 64
"""Number of keys of a body that are compared with those of the body before."""
_NO_FIELD = -1
_POWERS = np.power(10.0, np.arange(_FLOAT_SIZE + 1))
_MARK = np.frombuffer(MARK.encode(), np.uint8)


class Fields(NamedTuple):
    """The fields that are read, and the records that have them."""

    letters: NDArray[np.uint8]
    """Their names in small letters, one after the other."""
    bounds: NDArray[np.int64]
    """Where each name begins in `letters`, and where the last one ends."""
    kinds: NDArray[np.int8]
    """What is read of each."""
    records: NDArray[np.int64]
    """Index of the record that has it, or TOP."""


class Values(NamedTuple):
    """What is noted of bodies; all but `kinds` and `usual` have a row for each field."""

    kinds: NDArray[np.int8]
    """What is read of each field."""
    usual: NDArray[np.bool_]
    """Whether the body has the usual form. If not, its other values mean nothing."""
    present: NDArray[np.int8]
    """MISSING, NULL, VALUE, MARKED or WRITTEN."""
    numbers: NDArray[np.int64]
    """A bigint; a bit as 0 or 1; the place in the buffer of a string, a token, JSON, or a float that is WRITTEN."""
    floats: NDArray[np.float64]
    sizes: NDArray[np.int32]
    """Size in bytes of what has a place in the buffer; 0 for all else."""


@inlined
def _field(data: Bytes, at: int, end: int, record: int, fields: Fields) -> int:
    """Return the field of a record that a key names in any case, given the place of its first letter."""
    for field in range(len(fields.kinds)):
        begin = fields.bounds[field]
        size = fields.bounds[field + 1] - begin
        if fields.records[field] != record or at + size >= end or byte_at(data, at + size) != 0x22:
            continue
        place = 0
        while place < size:
            byte = byte_at(data, at + place)
            if byte >= 0x41 and byte <= 0x5A:
                byte += 0x20
            if byte != fields.letters[begin + place]:
                break
            place += 1
        if place == size:
            return field
    return _NO_FIELD


@inlined
def _after_noted(data: Bytes, at: int, end: int, field: int, kind: int, row: int, values: Values) -> int:
    """Note a value that is neither a string nor a record, and return the place after it."""
    byte = byte_at(data, at)
    if byte == 0x6E:
        values.present[field, row] = NULL
        return after_literal(data, at)
    values.present[field, row] = VALUE
    if byte == 0x74 or byte == 0x66:
        after = after_literal(data, at)
        if kind == TOKEN:
            values.present[field, row] = MARKED
            values.numbers[field, row] = at
            values.sizes[field, row] = after - at
        elif kind == BIT:
            values.numbers[field, row] = byte == 0x74
        else:
            return UNUSUAL
        return after
    after, is_integer = after_number(data, at)
    if after == UNUSUAL:
        return UNUSUAL
    size = after - at
    digits, power, has_power = np.int64(0), 0, False
    if size <= _BIGINT_SIZE:
        digits, power, has_power = digits_of(data, at, after)
    is_negative = byte_at(data, at) == 0x2D
    if is_negative and digits == 0 and size <= _BIGINT_SIZE and (is_integer or kind != FLOAT):
        return UNUSUAL
    if kind == BIGINT and is_integer and size <= _BIGINT_SIZE:
        values.numbers[field, row] = -digits if is_negative else digits
    elif kind == FLOAT and size <= _FLOAT_SIZE and not has_power:
        quotient = digits / _POWERS[power]
        values.floats[field, row] = -quotient if is_negative else quotient
    elif kind == FLOAT and not is_integer:
        values.present[field, row] = WRITTEN
        values.numbers[field, row] = at
        values.sizes[field, row] = size
    elif kind == TOKEN and not has_power:
        values.present[field, row] = MARKED
        values.numbers[field, row] = at
        values.sizes[field, row] = _token_size(data, at, after, is_integer)
        return after if values.sizes[field, row] else UNUSUAL
    else:
        return UNUSUAL
    return after


@inlined
def _token_size(data: Bytes, at: int, after: int, is_integer: bool) -> int:
    """Return how much of a number ASA writes: 21.50 => 21.5, 22.0 => 22. Return 0 if it may write it in another way."""
    if is_integer:
        return after - at if after - at <= _FLOAT_SIZE else 0
    first = at + (byte_at(data, at) == 0x2D)
    is_tiny = byte_at(data, first) == 0x30
    for place in range(first + 2, min(first + 6, after)):
        is_tiny = is_tiny and byte_at(data, place) == 0x30
    if is_tiny or after - at > _TOKEN_SIZE:
        return 0
    while byte_at(data, after - 1) == 0x30:
        after -= 1
    return after - at - (byte_at(data, after - 1) == 0x2E)


@compiled
def scan(
    data: Bytes,
    places: NDArray[np.int64],
    lengths: NDArray[np.int64],
    begin: int,
    end: int,
    fields: Fields,
    values: Values,
) -> None:
    """Note the values of the bodies from one row to another, all in this buffer. `values` must be zero there."""
    key_places, key_sizes, key_fields, key_records = np.zeros((4, _MAX_KEYS), np.int64)
    for row in range(begin, end):
        at, last = places[row], places[row] + lengths[row] - 1
        if last <= at or last >= len(data) or byte_at(data, at) != 0x7B or byte_at(data, last) != 0x7D:
            continue
        record, number = TOP, 0
        at = after_spaces(data, at + 1)
        while at < last:
            size = key_sizes[number] if number < _MAX_KEYS and key_records[number] == record else 0
            if size and at + size <= last and are_equal(data, at, key_places[number], size):
                field = key_fields[number]
                at += size
            else:
                key = at
                at = after_key(data, at, last)
                if at == UNUSUAL:
                    break
                field = _field(data, key + 1, last, record, fields)
                if number < _MAX_KEYS:
                    key_places[number], key_sizes[number] = key, at - key
                    key_fields[number], key_records[number] = field, record
            number += 1
            if field == _NO_FIELD:
                is_string = byte_at(data, at) == 0x22
                at = string_end(data, at + 1, last) + 1 if is_string else after_value(data, at, last)
            elif values.present[field, row] != MISSING:
                at = UNUSUAL
            elif byte_at(data, at) == 0x22:
                string = at + 1
                at = string_end(data, string, last) + 1
                values.present[field, row] = VALUE
                values.numbers[field, row] = string
                values.sizes[field, row] = at - 1 - string
                if fields.kinds[field] != STRING and fields.kinds[field] != TOKEN:
                    at = UNUSUAL
            elif byte_at(data, at) == 0x7B:
                if fields.kinds[field] != RECORD:
                    at = UNUSUAL
                    break
                values.present[field, row] = VALUE
                values.numbers[field, row] = at
                record = field
                at = after_spaces(data, at + 1)
                if byte_at(data, at) != 0x7D:
                    continue
            elif byte_at(data, at) == 0x5B and fields.kinds[field] == ARRAY:
                values.present[field, row] = VALUE
                values.numbers[field, row] = at
                at = after_value(data, at, last)
                values.sizes[field, row] = at - values.numbers[field, row]
            else:
                at = _after_noted(data, at, last, field, fields.kinds[field], row, values)
            if at <= 0 or at > last:
                at = UNUSUAL
                break
            at = after_spaces(data, at)
            while record != TOP and at < last and byte_at(data, at) == 0x7D:
                values.sizes[record, row] = at + 1 - values.numbers[record, row]
                record = fields.records[record]
                at = after_spaces(data, at + 1)
            if at == last or byte_at(data, at) != 0x2C:
                break
            at = after_spaces(data, at + 1)
            if at == last:
                at = UNUSUAL
        values.usual[row] = at == last and record == TOP


@compiled
def copy_values(
    data: Bytes,
    begin: int,
    end: int,
    present: NDArray[np.int8],
    places: NDArray[np.int64],
    sizes: NDArray[np.int32],
    bounds: NDArray[np.int32],
    copies: Bytes,
) -> None:
    """Copy what is noted of a field from its places in a buffer to its bounds in another."""
    for row in range(begin, end):
        target, place = np.uint64(bounds[row]), np.uint64(places[row])
        if present[row] == MARKED:
            for byte in range(len(_MARK)):
                copies[target + np.uint64(byte)] = _MARK[byte]
            target += np.uint64(len(_MARK))
        for byte in range(sizes[row]):
            copies[target + np.uint64(byte)] = data[place + np.uint64(byte)]
