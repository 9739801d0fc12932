"""The elements of JSON arrays and the properties of JSON objects, read from the bytes of a column at once.

Only plain documents are read here: those whose parts Jackson would write in the same way, but for blanks. Strings have
no escapes; numbers are integers of up to 18 digits, or decimals of up to 15 that Java writes with the same characters.
`documents` reads all other strings.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.process.compilation import compiled

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

ARRAY, OBJECT = ord("["), ord("{")
_DEEPEST = 60
"""Largest number of arrays and objects within each other in a part of a plain document."""


def parts(strings: pa.Array, opening: int, type_: pa.ListType) -> tuple[pa.Array, Bools]:
    """Return the parts of plain arrays (`opening` is ARRAY) or objects (OBJECT), and which rows have one.

    `type_` is a list of structs: of an index and a string for elements, of two strings for properties. Other rows have
    NULL as their list.
    """
    if not len(strings):
        return pa.array([], type_), np.empty(0, np.bool_)
    spans = _spans(strings, opening)
    counts = np.maximum(spans.counts, 0)
    ends = np.cumsum(counts)
    if opening == ARRAY:
        first = pa.array(np.arange(ends[-1]) - np.repeat(ends - counts, counts))
    else:
        first = _strings(spans.data, spans.names[:, : ends[-1]])
    values = _strings(spans.data, spans.values[:, : ends[-1]])
    structs = pa.StructArray.from_arrays([first, values], fields=list(type_.value_type))
    list_offsets = pa.array(np.append(0, ends).astype(np.int32))
    is_plain = spans.counts >= 0
    return pa.ListArray.from_arrays(list_offsets, structs, type=type_, mask=pa.array(~is_plain)), is_plain


def counts(strings: pa.Array, opening: int) -> Int64s:
    """Return the number of parts of plain arrays (`opening` is ARRAY) or objects (OBJECT); -1 for other rows."""
    return _spans(strings, opening).counts if len(strings) else np.empty(0, np.int64)


def first_property(strings: pa.Array, name: str) -> tuple[pa.Array, Bools]:
    """Return the first property of plain objects that has a name and is not null, and which rows have a plain object.

    Other rows have NULL.
    """
    if not len(strings):
        return pa.array([], pa.string()), np.empty(0, np.bool_)
    spans = _spans(strings, OBJECT)
    chosen = np.full((2, len(strings)), -1)
    find(spans.data, spans.counts, spans.names, spans.values, np.frombuffer(name.encode(), np.uint8), chosen)
    return _strings(spans.data, chosen), spans.counts >= 0


@dataclass(frozen=True)
class _Spans:
    """Where the parts of documents are in the bytes of a column."""

    data: Bytes
    counts: Int64s
    """Number of parts of each row; -1 unless it has a plain document."""
    names: Int64s
    """Starts and ends of the names of the parts of all rows."""
    values: Int64s
    """Starts and ends of their values; -1 for null."""


def _spans(strings: pa.Array, opening: int) -> _Spans:
    _, offsets_buffer, data_buffer = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    most = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == ord(","))) + len(strings)
    names, values = np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    counts = np.empty(len(strings), np.int64)
    is_valid = strings.is_valid().to_numpy(zero_copy_only=False)
    scan(data, offsets.astype(np.int64), is_valid, opening, names, values, counts)
    return _Spans(data, counts, names, values)


def _strings(data: Bytes, spans: Int64s) -> pa.Array:
    """Return the strings between starts and ends in some bytes; NULL where the start is -1."""
    starts, ends = spans
    offsets = np.zeros(len(starts) + 1, np.int32)
    written = np.empty(int((ends - starts).sum()), np.uint8)
    write(data, starts, ends, offsets, written)
    is_null = starts < 0
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(written), valid)


@compiled
def write(data: Bytes, starts: Int64s, ends: Int64s, offsets: NDArray[np.int32], written: Bytes) -> None:
    """Write the bytes between starts and ends, one after another, and where each ends.

    The blanks of arrays and objects are left out. A string begins after its quote.
    """
    place = 0
    for number in range(len(starts)):
        start = starts[number]
        has_blanks = start > 0 and data[start - 1] != 34 and (data[start] == 91 or data[start] == 123)
        is_string = False
        for index in range(start, ends[number]):
            sign = data[index]
            is_string = is_string != (sign == 34)
            if is_string or not has_blanks or not is_blank(sign):
                written[place] = sign
                place += 1
        offsets[number + 1] = place


@compiled
def scan(
    data: Bytes,
    bounds: Int64s,
    is_valid: Bools,
    opening: int,
    names: Int64s,
    values: Int64s,
    counts: Int64s,
) -> None:
    """Write where the parts of each plain document start and end, and how many it has: -1 if it is not plain.

    Start and end of null are -1.
    """
    total = 0
    for row in range(len(counts)):
        first, is_plain = total, False
        index, end = bounds[row], bounds[row + 1]
        while index < end and is_blank(data[index]):
            index += 1
        if is_valid[row] and index < end and data[index] == opening:
            index += 1
            while index < end and is_blank(data[index]):
                index += 1
            # The closing sign is two characters after the opening one.
            is_plain = index < end and data[index] == opening + 2
            is_open = index < end and not is_plain
            while is_open:
                is_open = False
                if opening == 123:
                    if data[index] != 34:
                        break
                    names[0, total] = index + 1
                    index = string_end(data, index, end, False)
                    if index < 0:
                        break
                    names[1, total] = index - 1
                    while index < end and is_blank(data[index]):
                        index += 1
                    if index >= end or data[index] != 58:
                        break
                    index += 1
                    while index < end and is_blank(data[index]):
                        index += 1
                    if index >= end:
                        break
                start = index
                index = part_end(data, index, end)
                if index < 0:
                    break
                values[0, total], values[1, total] = start, index
                if data[start] == 34:
                    values[0, total], values[1, total] = start + 1, index - 1
                elif data[start] == 110:
                    values[0, total], values[1, total] = -1, -1
                total += 1
                while index < end and is_blank(data[index]):
                    index += 1
                if index >= end:
                    break
                if data[index] == opening + 2:
                    is_plain = True
                elif data[index] == 44:
                    index += 1
                    while index < end and is_blank(data[index]):
                        index += 1
                    is_open = index < end
        counts[row] = total - first if is_plain else -1
        if not is_plain:
            total = first


@compiled
def find(
    data: Bytes,
    counts: Int64s,
    names: Int64s,
    values: Int64s,
    name: Bytes,
    chosen: Int64s,
) -> None:
    """Write where the first value of a name that is not null starts and ends in each row; the others are of `scan`."""
    part = 0
    for row in range(len(counts)):
        for _ in range(counts[row]):
            is_chosen = chosen[0, row] < 0 and values[0, part] >= 0 and names[1, part] - names[0, part] == len(name)
            for index in range(len(name) if is_chosen else 0):
                is_chosen = is_chosen and data[names[0, part] + index] == name[index]
            if is_chosen:
                chosen[0, row], chosen[1, row] = values[0, part], values[1, part]
            part += 1


@compiled
def is_blank(sign: int) -> bool:
    """Return whether a byte is white space of JSON."""
    return sign == 32 or (9 <= sign <= 13 and sign != 11 and sign != 12)


@compiled
def string_end(data: Bytes, index: int, end: int, is_within: bool) -> int:
    """Return where a string ends that begins at a quote; -1 if it is not plain.

    `is_within` says that it is in an array or object of which Jackson writes the bytes: it escapes what is beyond
    U+FFFF.
    """
    index += 1
    while index < end:
        sign = data[index]
        if sign == 34:
            return index + 1
        if sign < 32 or sign == 92 or (is_within and sign >= 240):
            return -1
        index += 1
    return -1


@compiled
def number_end(data: Bytes, index: int, end: int) -> int:
    """Return where a number ends; -1 if it is not one that Java writes with the same characters."""
    is_negative = data[index] == 45
    index += is_negative
    start = index
    while index < end and 48 <= data[index] <= 57:
        index += 1
    digits = index - start
    if digits == 0 or (digits > 1 and data[start] == 48):
        return -1
    is_zero = data[start] == 48
    if index >= end or data[index] != 46:
        return -1 if digits > 18 or (is_zero and is_negative) else index
    index += 1
    start = index
    leading = 0
    while index < end and 48 <= data[index] <= 57:
        leading += data[index] == 48 and leading == index - start
        index += 1
    decimals = index - start
    if decimals == 0 or digits > 7 or (decimals > 1 and data[index - 1] == 48):
        return -1
    if is_zero and leading > 2:
        return -1
    return -1 if digits + decimals > 15 else index


@compiled
def word_end(data: Bytes, index: int, end: int) -> int:
    """Return where true, false or null ends; -1 if it is another word."""
    sign = data[index]
    if sign == 102 and index + 5 <= end:
        is_word = data[index + 1] == 97 and data[index + 2] == 108 and data[index + 3] == 115 and data[index + 4] == 101
        return index + 5 if is_word else -1
    if index + 4 > end:
        return -1
    if sign == 116:
        is_word = data[index + 1] == 114 and data[index + 2] == 117 and data[index + 3] == 101
    else:
        is_word = sign == 110 and data[index + 1] == 117 and data[index + 2] == 108 and data[index + 3] == 108
    return index + 4 if is_word else -1


@compiled
def part_end(data: Bytes, index: int, end: int) -> int:
    """Return where an element or the value of a property ends; -1 if it is not plain."""
    if data[index] == 34:
        return string_end(data, index, end, False)
    depth, kinds = 0, 0
    may_close, is_name, is_done = False, False, False
    while index < end:
        sign = data[index]
        is_object = depth > 0 and (kinds >> depth) & 1 == 1
        if depth > 0 and is_blank(sign):
            index += 1
        elif depth > 0 and (is_done or may_close) and sign == (125 if is_object else 93):
            depth -= 1
            index += 1
            is_done = True
        elif is_done:
            if sign != 44:
                return -1
            index += 1
            is_done, may_close, is_name = False, False, is_object
        elif is_name:
            if sign != 34:
                return -1
            index = string_end(data, index, end, True)
            while 0 <= index < end and is_blank(data[index]):
                index += 1
            if index < 0 or index >= end or data[index] != 58:
                return -1
            index += 1
            is_name, may_close = False, False
        elif sign == 91 or sign == 123:
            if depth == _DEEPEST:
                return -1
            depth += 1
            kinds = (kinds & ~(1 << depth)) | ((sign == 123) << depth)
            index += 1
            may_close, is_name = True, sign == 123
        else:
            if sign == 34:
                index = string_end(data, index, end, True)
            elif sign == 45 or 48 <= sign <= 57:
                index = number_end(data, index, end)
            else:
                index = word_end(data, index, end)
            if index < 0:
                return -1
            is_done, may_close = True, False
        if depth == 0 and is_done:
            return index
    return -1
