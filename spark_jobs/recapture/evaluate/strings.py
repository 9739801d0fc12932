"""String functions. A character is a code point."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate import characters
from recapture.evaluate.characters import is_ascii
from recapture.evaluate.distinct import each, of_many, row_by_row
from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.vectors import Numbers, Vector, either, from_arrow, null_of, to_arrow

_LARGEST_CODE = 0x10FFFF
_LONGEST = 2**31 - 1
"""Number of characters that no string exceeds."""

Int64s = NDArray[np.int64]


def arrow(function: Callable[..., Any]) -> Kernel:
    """Return the kernel of an Arrow function of one string."""

    def kernel(frame: Frame, node: Node) -> Vector:
        return from_arrow(function(frame.array(node.arguments[0])))

    return kernel


def trimming(function: Callable[..., Any]) -> Kernel:
    """Return the kernel of an Arrow function that takes the characters to remove."""

    def kernel(frame: Frame, node: Node) -> Vector:
        return function(frame.array(node.arguments[0]), characters=node.parameters[0])

    return kernel


def _length(column: pa.Array) -> pa.Array:
    return pc.utf8_length(column).cast(pa.int64())


length = arrow(lambda column: _length(pc.utf8_rtrim(column, characters=" ")))
REVERSED = arrow(pc.utf8_reverse)
TRIM, TRIM_START, TRIM_END = map(trimming, (pc.utf8_trim, pc.utf8_ltrim, pc.utf8_rtrim))


def changed(ascii_only: Callable[[pa.Array], pa.Array], change: Callable[[str], str]) -> Kernel:
    """Return the kernel of UPPER or LOWER, with Unicode's full mappings: ß has the capital SS."""

    def kernel(frame: Frame, node: Node) -> Vector:
        column = frame.array(node.arguments[0])
        if is_ascii(column):
            return ascii_only(column)
        is_plain = pc.string_is_ascii(column)
        others = each(change, pc.if_else(is_plain, pa.scalar(None, pa.string()), column), pa.string())
        return pc.if_else(is_plain, ascii_only(column), others)

    return kernel


_NEW = {
    **dict(
        zip(
            "\u019b\u0264\u1c8a\ua7cd\ua7cf\ua7d3\ua7d5\ua7db",
            "\ua7dc\ua7cb\u1c89\ua7cc\ua7ce\ua7d2\ua7d4\ua7da",
            strict=True,
        )
    ),
    **{chr(capital + 0x20): chr(capital) for capital in range(0x10D50, 0x10D66)},
    **{chr(capital + 0x1B): chr(capital) for capital in range(0x16EA0, 0x16EB9)},
}
"""Small letters that have capitals since Unicode 15. Java's library knows them, Python 3.11 does not."""
_CAPITALS = str.maketrans(_NEW)
_SMALL = str.maketrans({capital: small for small, capital in _NEW.items()})


def upper(string: str) -> str:
    """Return a string in capitals."""
    return string.translate(_CAPITALS).upper()


def lower(string: str) -> str:
    """Return a string in small letters."""
    return string.translate(_SMALL).lower()


UPPER, LOWER = changed(pc.ascii_upper, upper), changed(pc.ascii_lower, lower)


def concat(frame: Frame, node: Node) -> Vector:
    """Return CONCAT, which is NULL if one part is. A part is not evaluated where one before it is NULL."""
    vectors, _ = frame.strict(node.arguments)
    if not all(_is_given(vector) for vector in vectors):
        return pa.nulls(frame.size, pa.string())
    return pc.binary_join_element_wise(*_of_rows(frame, vectors), "", null_handling="emit_null")


def concat_ws(frame: Frame, node: Node) -> Vector:
    """Return CONCAT_WS, which leaves NULL out; NULL if the separator is."""
    separator, *parts = (frame.vector(argument) for argument in node.arguments)
    if not _is_given(separator):
        return pa.nulls(frame.size, pa.string())
    # Arrow loses a row if all its parts are NULL.
    strings = [part for part in parts if _is_given(part)] or [pa.scalar("")]
    if not any(isinstance(part, pa.Scalar) for part in strings):
        nothing = reduce(pc.and_, (pc.is_null(part) for part in strings))
        strings = [pc.if_else(nothing, "", strings[0]), *strings[1:]]
    joined = pc.binary_join_element_wise(*_of_rows(frame, strings), separator, null_handling="skip")
    if isinstance(separator, pa.Array) and separator.null_count:
        return pc.if_else(separator.is_null(), pa.scalar(None, pa.string()), joined)
    return joined


def _is_given(vector: Vector) -> bool:
    return not isinstance(vector, pa.Scalar) or bool(vector.is_valid)


def _of_rows(frame: Frame, parts: list[Any]) -> list[Any]:
    """Return strings of which at least one is an array."""
    if all(isinstance(part, pa.Scalar) for part in parts):
        return [pa.repeat(parts[0], frame.size), *parts[1:]]
    return parts


def repeat(frame: Frame, node: Node) -> Vector:
    """Return a string so many times; NULL for a negative count."""
    string, count = node.arguments
    counts: Numbers = frame.vector(count)
    null = either(counts.null, np.asarray(counts.values < 0))
    assert null is not None
    strings = frame.scattered([(frame.where(~null), string)], node.type)
    times = pa.array(np.clip(_of_each_row(counts, frame), 0, _LONGEST))
    return _null_where(pc.binary_repeat(_strings(strings, frame), times), null)


def replace(frame: Frame, node: Node) -> Vector:
    vectors = [frame.vector(argument) for argument in node.arguments]
    if isinstance(vectors[1], pa.Scalar) and isinstance(vectors[2], pa.Scalar):
        sought, put = (vector.as_py() for vector in vectors[1:])
        if sought is None or put is None:
            return pa.nulls(frame.size, pa.string())
        column = frame.array(node.arguments[0])
        return column if sought == "" else pc.replace_substring(column, pattern=sought, replacement=put)
    return _replaced(frame, node)


_replaced = of_many(lambda string, old, new: string.replace(old, new) if old else string)


def translate(frame: Frame, node: Node) -> Vector:
    """Return strings with each character replaced by its counterpart; lists of unlike length stop the run."""
    string, *lists, refused = node.arguments
    (old, new, strings), _ = frame.strict([*lists, string])
    lengths = [_of_vector(_length(_strings(vector, frame))) for vector in (old, new)]
    is_unlike = np.asarray(lengths[0].values != lengths[1].values)
    for vector in lengths:
        is_unlike = is_unlike if vector.null is None else is_unlike & ~vector.null
    if is_unlike.any():
        frame.where(is_unlike).vector(refused)
    if isinstance(old, pa.Scalar) and isinstance(new, pa.Scalar) and old.is_valid and new.is_valid:
        column, is_plain = _strings(strings, frame), old.as_py().isascii() and new.as_py().isascii()
        if is_plain and is_ascii(column):
            return _translated(column, old.as_py(), new.as_py())
    return row_by_row(_translate, frame, [strings, old, new], [pa.string()] * 3, node.type)


def _translation(characters_: str, others: str) -> dict[int, int]:
    """Return the counterpart of each character; the first of equal characters counts."""
    return {ord(old): ord(new) for old, new in reversed([*zip(characters_, others, strict=False)])}


def _translated(column: pa.Array, characters_: str, others: str) -> pa.Array:
    """Translate ASCII, byte by byte."""
    table = np.arange(256, dtype=np.uint8)
    for old, new in _translation(characters_, others).items():
        table[old] = new
    valid, offsets, data = column.buffers()
    if data is None:
        return column
    translated = pa.py_buffer(table[np.frombuffer(data, np.uint8)])
    return pa.Array.from_buffers(pa.string(), len(column), [valid, offsets, translated], offset=column.offset)


def _translate(string: str, old: str, new: str) -> str:
    return string.translate(_translation(old, new))


def left(frame: Frame, node: Node) -> Vector:
    string, count, *refused = node.arguments
    strings, counts = _counted(frame, [string, count], refused)
    return _part(strings, Numbers(np.zeros((), np.int64)), counts, frame)


def right(frame: Frame, node: Node) -> Vector:
    string, count, *refused = node.arguments
    strings, counts = _counted(frame, [string, count], refused)
    lengths = _of_vector(_length(_strings(strings, frame)))
    return _part(strings, Numbers(np.maximum(lengths.values - counts.values, 0), counts.null), lengths, frame)


def substring(frame: Frame, node: Node) -> Vector:
    """Return what of the places start to start + length - 1, which count from 1, strings have."""
    string, start, count, *refused = node.arguments
    strings, starts, counts = _counted(frame, [string, start, count], refused)
    first = Numbers(np.clip(starts.values, -_LONGEST, _LONGEST) - 1, starts.null)
    last = Numbers(first.values + np.minimum(counts.values, _LONGEST), counts.null)
    return _part(strings, Numbers(np.maximum(first.values, 0), first.null), last, frame)


def stuff(frame: Frame, node: Node) -> Vector:
    """Return strings in which an insertion replaces so many characters from a start, which counts from 1.

    Empty for a start beyond the end.
    """
    string, start, count, insertion, *refused = node.arguments
    strings, starts, counts = _counted(frame, [string, start, count], refused)
    column = _strings(strings, frame)
    null = either(starts.null, counts.null, null_of(column))
    first = np.ascontiguousarray(np.broadcast_to(np.clip(starts.values, 1, _LONGEST) - 1, (frame.size,)))
    last = first + np.minimum(counts.values, _LONGEST)
    is_beyond = starts.values > _of_vector(_length(column)).values
    is_changed = np.broadcast_to(~is_beyond if null is None else ~is_beyond & ~null, (frame.size,))
    inserted = to_arrow(frame.scattered([(frame.where(is_changed), insertion)], node.type), node.type, frame.size)
    before = characters.parts(column, np.zeros_like(first), first)
    after = characters.parts(column, last, np.full_like(first, _LONGEST))
    joined = pc.binary_join_element_wise(before, inserted, after, "")
    stuffed = pc.if_else(pa.array(is_changed), joined, "")
    return _null_where(stuffed, null)


def position(frame: Frame, node: Node) -> Vector:
    """Return where strings have what is sought, from a start on, counted from 1; 0 for none."""
    sought_node, string, start = node.arguments
    (sought, starts, strings), _ = frame.strict([sought_node, start, string])
    if isinstance(sought, pa.Scalar) and sought.is_valid and sought.as_py():
        column = _strings(strings, frame)
        begins = starts.null is None and not starts.values.shape and starts.values <= 1
        if begins and is_ascii(column):  # bytes are characters
            return from_arrow(pc.add(pc.find_substring(column, pattern=sought.as_py()), 1).cast(pa.int64()))
    types = (pa.string(), pa.string(), pa.int64())
    return row_by_row(_position, frame, [sought, strings, starts], types, node.type)


def _position(sought: str, string: str, start: int) -> int:
    return string.find(sought, max(start, 1) - 1) + 1 if sought else 0


def contains(frame: Frame, node: Node) -> Vector:
    """Return whether strings contain the literal that is the second argument."""
    sought = frame.vector(node.arguments[1])
    return from_arrow(pc.match_substring(frame.array(node.arguments[0]), pattern=sought.as_py()))


def code_point(frame: Frame, node: Node) -> Vector:
    """Return the code point of the first character; NULL for an empty string."""
    first = pc.utf8_slice_codeunits(frame.array(node.arguments[0]), 0, 1)
    return from_arrow(each(lambda string: ord(string) if string else None, first, pa.int64()))


def character(frame: Frame, node: Node) -> Vector:
    """Return the character of a code point; NULL for a number that is none."""
    return each(_character, frame.array(node.arguments[0]), pa.string())


def _character(code: int | None) -> str | None:
    if code is None or not 0 <= code <= _LARGEST_CODE:
        return None
    return "?" if 0xD800 <= code <= 0xDFFF else chr(code)  # half a character


def name_of(frame: Frame, node: Node) -> Vector:
    """Return the name with a number, which counts from 1."""
    (numbers,), _ = frame.strict(node.arguments)
    (names,) = node.parameters
    places = to_arrow(Numbers(numbers.values - 1, numbers.null), pa.int64(), frame.size)
    return pa.array(names, pa.string()).take(places)


def bigint_text(frame: Frame, node: Node) -> Vector:
    return frame.array(node.arguments[0]).cast(pa.string())


def _counted(frame: Frame, arguments: Sequence[Node], refused: Sequence[Node]) -> list[Any]:
    """Return the values of arguments, the last of which is a length; a negative one stops the run.

    The length is computed first, as it guards the others.
    """
    vectors, _ = frame.strict([*reversed(arguments)])
    counts = vectors[0]
    if refused:
        is_negative = np.asarray(counts.values < 0)
        is_negative = is_negative if counts.null is None else is_negative & ~counts.null
        if is_negative.any():
            frame.where(is_negative).vector(refused[0])
    return [*reversed(vectors)]


def _part(strings: Vector, first: Numbers, last: Numbers, frame: Frame) -> Vector:
    """Return the characters between two places of strings; NULL where one of them is."""
    column = _strings(strings, frame)
    if not (first.values.shape or last.values.shape) and first.null is None and last.null is None:
        start, end = first.values.item(), min(last.values.item(), _LONGEST)
        return pc.utf8_slice_codeunits(column, start, max(start, end))
    part = characters.parts(column, _of_each_row(first, frame), _of_each_row(last, frame))
    return _null_where(part, either(first.null, last.null))


def _null_where(column: pa.Array, null: NDArray[np.bool_] | None) -> pa.Array:
    """Return strings, and NULL in some rows."""
    if null is None or not null.any():
        return column
    return pc.if_else(pa.array(np.broadcast_to(null, (len(column),))), pa.scalar(None, pa.string()), column)


def _strings(vector: Vector, frame: Frame) -> pa.Array:
    return to_arrow(vector, pa.string(), frame.size)


def _of_each_row(numbers: Numbers, frame: Frame) -> Int64s:
    return np.ascontiguousarray(np.broadcast_to(numbers.values, (frame.size,)))


def _of_vector(column: pa.Array) -> Numbers:
    vector: Numbers = from_arrow(column)
    return vector
