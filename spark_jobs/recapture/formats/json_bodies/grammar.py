"""The grammar of JSON in ASCII without escapes, in compiled code: where a value ends.

Every function gets the place of a byte in a buffer, in which a `}` follows the value. So no loop reads beyond it.
"""

import numpy as np

from recapture.process.byte_words import Bytes, byte_at, eight_at
from recapture.process.compilation import compiled, inlined

UNUSUAL = -1
"""Stands for the place after what is not JSON, has an escape or a byte beyond ASCII, or may be an infinite number."""
_NUMBER_SIZE = 100
"""Largest size of a number, in bytes."""
_MAX_DEPTH = 60
_TRUE, _FALSE, _NULL = b"true", b"false", b"null"


@inlined
def after_spaces(data: Bytes, at: int) -> int:
    byte = byte_at(data, at)
    while byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09:
        at += 1
        byte = byte_at(data, at)
    return at


@inlined
def string_end(data: Bytes, at: int, end: int) -> int:
    """Return the place of the quotation mark that ends a string; UNUSUAL if another special byte, or `end`, is first.

    Special are quotation marks, backslashes, control characters, and all bytes beyond ASCII.
    """
    ones, tops = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    limit = len(data) - 8
    while at <= limit and at < end:
        word = eight_at(data, at)
        quotes = word ^ np.uint64(0x2222222222222222)
        backslashes = word ^ np.uint64(0x5C5C5C5C5C5C5C5C)
        special = (
            ((quotes - ones) & ~quotes)
            | ((backslashes - ones) & ~backslashes)
            | ((word - np.uint64(0x2020202020202020)) & ~word)
            | word
        ) & tops
        if special:
            below = (special & (~special + np.uint64(1))) - np.uint64(1)
            at += int(((below & ones) * ones) >> np.uint64(56)) - 1
            break
        at += 8
    while at < end:
        byte = byte_at(data, at)
        if byte == 0x22:
            return at
        if byte == 0x5C or byte < 0x20 or byte >= 0x80:
            break
        at += 1
    return UNUSUAL


@inlined
def _after_digits(data: Bytes, at: int) -> int:
    while 0x30 <= byte_at(data, at) <= 0x39:
        at += 1
    return at


@inlined
def after_number(data: Bytes, at: int) -> tuple[int, bool]:
    """Return the place after a number, and whether it is an integer."""
    begin = at
    at += byte_at(data, at) == 0x2D
    first = at
    at = _after_digits(data, at)
    if at == first or (at > first + 1 and byte_at(data, first) == 0x30):
        return UNUSUAL, False
    whole = at
    if byte_at(data, at) == 0x2E:
        at = _after_digits(data, at + 1)
        if at == whole + 1:
            return UNUSUAL, False
    byte = byte_at(data, at)
    if byte == 0x65 or byte == 0x45:
        at += 1
        byte = byte_at(data, at)
        at += byte == 0x2B or byte == 0x2D
        power = at
        at = _after_digits(data, at)
        if not 1 <= at - power <= 2:
            return UNUSUAL, False
    if at - begin > _NUMBER_SIZE:
        return UNUSUAL, False
    return at, at == whole


@inlined
def digits_of(data: Bytes, at: int, after: int) -> tuple[np.int64, int, bool]:
    """Return the digits of a number as an integer, how many are decimals, and whether the number has a power of ten.

    The number has at most 18 bytes; its sign is left out. If it has a power of ten, the integer means nothing.

        -21.50 => 2150, 2, False
    """
    digits, decimals, has_point, has_power = np.int64(0), 0, 0, False
    for place in range(at, after):
        byte = byte_at(data, place)
        if byte >= 0x30 and byte <= 0x39:
            digits = digits * 10 + (byte - 0x30)
            decimals += has_point
        elif byte == 0x2E:
            has_point = 1
        elif byte != 0x2D:
            has_power = True
    return digits, decimals, has_power


@inlined
def after_literal(data: Bytes, at: int) -> int:
    """Return the place after true, false or null."""
    word = _TRUE if byte_at(data, at) == _TRUE[0] else _FALSE if byte_at(data, at) == _FALSE[0] else _NULL
    for letter in word:
        if byte_at(data, at) != letter:
            return UNUSUAL
        at += 1
    return at


@inlined
def after_key(data: Bytes, at: int, end: int) -> int:
    """Return the place of the value that follows a key."""
    if byte_at(data, at) != 0x22:
        return UNUSUAL
    at = string_end(data, at + 1, end)
    if at == UNUSUAL:
        return UNUSUAL
    at = after_spaces(data, at + 1)
    if byte_at(data, at) != 0x3A:
        return UNUSUAL
    return after_spaces(data, at + 1)


@compiled
def after_value(data: Bytes, at: int, end: int) -> int:
    """Return the place after a value of any kind."""
    depth, arrays = 0, np.int64(0)
    while True:
        byte = byte_at(data, at)
        if byte == 0x22:
            at = string_end(data, at + 1, end) + 1
            if at == UNUSUAL + 1:
                return UNUSUAL
        elif byte == 0x7B or byte == 0x5B:
            if depth == _MAX_DEPTH:
                return UNUSUAL
            depth += 1
            arrays = arrays << 1 | (byte == 0x5B)
            at = after_spaces(data, at + 1)
            if byte_at(data, at) != byte + 2:  # the closing bracket
                if not arrays & 1:
                    at = after_key(data, at, end)
                    if at == UNUSUAL:
                        return UNUSUAL
                continue
            at += 1
            depth, arrays = depth - 1, arrays >> 1
        else:
            if byte == 0x74 or byte == 0x66 or byte == 0x6E:
                at = after_literal(data, at)
            else:
                at, _ = after_number(data, at)
            if at == UNUSUAL:
                return UNUSUAL
        while depth:
            if at >= end:
                return UNUSUAL
            at = after_spaces(data, at)
            byte = byte_at(data, at)
            if byte == 0x2C:
                break
            if byte != (0x5D if arrays & 1 else 0x7D):
                return UNUSUAL
            at += 1
            depth, arrays = depth - 1, arrays >> 1
        if not depth:
            return at
        at = after_spaces(data, at + 1)
        if not arrays & 1:
            at = after_key(data, at, end)
            if at == UNUSUAL:
                return UNUSUAL
