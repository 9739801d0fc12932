"""String functions as Spark computes them. A character is a code point."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.evaluate import control
from recapture.evaluate.distinct import each, is_ascii, of_many
from recapture.evaluate.faults import RowError, stop
from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.vectors import Numbers, from_arrow

_LARGEST_INT = 2**31 - 1


def arrow(function: Callable[..., Any], **options: Any) -> Callable[[Frame, Node], Any]:
    """Return the kernel of an Arrow function of one string."""

    def kernel(frame: Frame, node: Node) -> Any:
        return from_arrow(function(frame.array(node.arguments[0]), **options))

    return kernel


def length(frame: Frame, node: Node) -> Any:
    return from_arrow(pc.utf8_length(frame.array(node.arguments[0])).cast(pa.int32()))


def changed(frame: Frame, node: Node) -> Any:
    """Return UPPER or LOWER, with Unicode's full mappings: ß has the capital SS."""
    (name,) = node.parameters
    column = frame.array(node.arguments[0])
    if is_ascii(column):
        return (pc.ascii_upper if name == "upper" else pc.ascii_lower)(column)
    at_once, one_by_one = (pc.ascii_upper, upper) if name == "upper" else (pc.ascii_lower, lower)
    ascii_ = pc.string_is_ascii(column)
    others = each(one_by_one, pc.if_else(ascii_, pa.scalar(None, pa.string()), column), pa.string())
    return pc.if_else(ascii_, at_once(column), others)


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


def upper(text: str) -> str:
    """Return a string in capitals."""
    return text.translate(_CAPITALS).upper()


def lower(text: str) -> str:
    """Return a string in small letters."""
    return text.translate(_SMALL).lower()


def trimmed(frame: Frame, node: Node) -> Any:
    """Return TRIM with the characters to remove."""
    ends, characters = node.parameters
    function = {"leading": pc.utf8_ltrim, "trailing": pc.utf8_rtrim, "both": pc.utf8_trim}[ends]
    return function(frame.array(node.arguments[0]), characters=characters)


def concat(frame: Frame, node: Node) -> Any:
    """Return CONCAT, which is NULL if one part is. A part is not evaluated where one before it is NULL."""
    vectors, _ = frame.strict(node.arguments)
    if not all(_is_given(vector) for vector in vectors):
        return pa.nulls(frame.size, pa.string())
    return pc.binary_join_element_wise(*_of_rows(frame, vectors), "", null_handling="emit_null")


def concat_ws(frame: Frame, node: Node) -> Any:
    """Return CONCAT_WS, which leaves NULL out; NULL if the separator is."""
    separator, *parts = (frame.vector(argument) for argument in node.arguments)
    if not _is_given(separator):
        return pa.nulls(frame.size, pa.string())
    # Arrow loses a row if all its parts are NULL.
    given = [part for part in parts if _is_given(part)] or [pa.scalar("")]
    if not any(isinstance(part, pa.Scalar) for part in given):
        nothing = reduce(pc.and_, (pc.is_null(part) for part in given))
        given = [pc.if_else(nothing, "", given[0]), *given[1:]]
    joined = pc.binary_join_element_wise(*_of_rows(frame, given), separator, null_handling="skip")
    if isinstance(separator, pa.Array) and separator.null_count:
        return pc.if_else(separator.is_null(), pa.scalar(None, pa.string()), joined)
    return joined


def _is_given(vector: Any) -> bool:
    return not isinstance(vector, pa.Scalar) or bool(vector.is_valid)


def _of_rows(frame: Frame, parts: list[Any]) -> list[Any]:
    """Return strings of which at least one is an array."""
    if all(isinstance(part, pa.Scalar) for part in parts):
        return [pa.repeat(parts[0], frame.size), *parts[1:]]
    return parts


def repeat(text: str, count: int) -> str:
    return text * max(count, 0)


def replace(frame: Frame, node: Node) -> Any:
    vectors = [frame.vector(argument) for argument in node.arguments]
    if isinstance(vectors[1], pa.Scalar) and isinstance(vectors[2], pa.Scalar):
        found, put = (vector.as_py() for vector in vectors[1:])
        if found is None or put is None:
            return pa.nulls(frame.size, pa.string())
        column = frame.array(node.arguments[0])
        return column if found == "" else pc.replace_substring(column, pattern=found, replacement=put)
    return _replaced(frame, node)


_replaced = of_many(lambda text, old, new: text.replace(old, new) if old else text)


def translate(text: str, characters: str, others: str) -> str:
    """Replace each character by its other; the first of equal characters counts, and one without other is removed."""
    table: dict[int, str] = {}
    for index, character in enumerate(characters):
        table.setdefault(ord(character), others[index : index + 1])
    return text.translate(table)


def _int(number: int) -> int:
    """Return a number as Java's int holds it."""
    return (number + 2**31) % 2**32 - 2**31


def part(text: str, position: int, count: int) -> str:
    """Return UTF8String.substringSQL: from a position, which counts from 1, or from the end if it is negative."""
    size = len(text)
    start = position - 1 if position > 0 else size + position if position < 0 else 0
    end = min(max(start + count, -(2**31)), _LARGEST_INT)
    if end <= start:
        return ""
    return text[max(start, 0) : max(end, 0)]


def left(text: str, count: int) -> str:
    return part(text, 1, count)


def right(text: str, count: int) -> str:
    return "" if count <= 0 else part(text, -count, _LARGEST_INT)


def overlay(text: str, insertion: str, position: int, count: int) -> str:
    """Return OVERLAY; `position + count` wraps around as Java's int does."""
    length_ = count if count >= 0 else len(insertion)
    return part(text, 1, _int(position - 1)) + insertion + part(text, _int(position + length_), _LARGEST_INT)


def locate(sought: str, text: str, start: int) -> int:
    if start < 1:
        return 0
    if not sought:
        return 1
    return text.find(sought, start - 1) + 1


def contains(frame: Frame, node: Node) -> Any:
    sought = frame.vector(node.arguments[1])
    if isinstance(sought, pa.Scalar) and sought.is_valid:
        return from_arrow(pc.match_substring(frame.array(node.arguments[0]), pattern=sought.as_py()))
    return _contains(frame, node)


_contains = of_many(lambda text, sought: sought in text)


def code_point(frame: Frame, node: Node) -> Any:
    """Return ASCII: the code point of the first character; 0 for an empty string."""
    first = pc.utf8_slice_codeunits(frame.array(node.arguments[0]), 0, 1)
    return from_arrow(each(lambda text: ord(text) if text else 0, first, pa.int32()))


def character(frame: Frame, node: Node) -> Any:
    """Return the character of a code point."""
    codes = frame.array(node.arguments[0])
    encoded = codes.dictionary_encode()
    return pa.array([_character(code) for code in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)


def _character(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        return "?"  # half a character
    if not 0 <= code <= 0x10FFFF:
        stop("MALFORMED_CHARACTER_CODING", f"{code} is not the code point of a character")
    return chr(code)


def element(frame: Frame, node: Node) -> Any:
    """Return ELT: one of several literals, by a number from 1."""
    numbers = frame.vector(node.arguments[0])
    assert isinstance(numbers, Numbers)
    strings = pa.array(node.parameters, pa.string())
    indexes = numbers.values - 1
    null = numbers.null
    outside = (indexes < 0) | (indexes >= len(strings))
    if np.any(outside if null is None else outside & ~null):
        stop("INVALID_ARRAY_INDEX", "ELT has no such element")
    if not indexes.shape:
        indexes = np.full(frame.size, indexes)
        null = None if null is None else np.full(frame.size, null)
    return strings.take(pa.array(np.where(outside, 0, indexes), mask=null))


def padded(frame: Frame, node: Node) -> Any:
    """Return LPAD to a literal width with a literal character."""
    width, character_ = node.parameters
    column = pc.utf8_lpad(frame.array(node.arguments[0]), width=width, padding=character_)
    return pc.utf8_slice_codeunits(column, 0, width)


def bigint_text(frame: Frame, node: Node) -> Any:
    return frame.array(node.arguments[0]).cast(pa.string())


def same(frame: Frame, node: Node) -> Any:
    return frame.vector(node.arguments[0])


REVERSED = arrow(pc.utf8_reverse)
RIGHT = of_many(right)
_left, _part, _locate = of_many(left), of_many(part), of_many(locate)


def _constants(frame: Frame, nodes: Sequence[Node]) -> list[int] | None:
    """Return integers that are computed from literals; None if a row decides one, or if one is NULL."""
    if not all(map(_is_literal, nodes)):
        return None
    try:
        vectors = [frame.vector(node) for node in nodes]
    except RowError:
        return None
    shared = [vector.values.item() for vector in vectors if not vector.values.shape and vector.null is None]
    return shared if len(shared) == len(vectors) else None


def _is_literal(node: Node) -> bool:
    if not node.arguments:
        return node.kernel is control.constant
    return all(map(_is_literal, node.arguments))


def substring(frame: Frame, node: Node) -> Any:
    """Return SUBSTRING."""
    text, *places = node.arguments
    constants = _constants(frame, places)
    if constants is None or constants[0] < 1 or constants[1] < 0:
        return _part(frame, node)
    start, count = constants
    return pc.utf8_slice_codeunits(frame.array(text), start - 1, min(start - 1 + count, _LARGEST_INT))


def taken_left(frame: Frame, node: Node) -> Any:
    text, count = node.arguments
    constants = _constants(frame, [count])
    if constants is None or constants[0] < 0:
        return _left(frame, node)
    return pc.utf8_slice_codeunits(frame.array(text), 0, constants[0])


def located(frame: Frame, node: Node) -> Any:
    """Return LOCATE; in ASCII, bytes are characters."""
    sought, text, start = node.arguments
    vector = frame.vector(sought)
    constants = _constants(frame, [start])
    if constants == [1] and isinstance(vector, pa.Scalar) and vector.is_valid and vector.as_py():
        column = frame.array(text)
        if is_ascii(column):
            return from_arrow(pc.add(pc.find_substring(column, pattern=vector.as_py()), 1))
    return _locate(frame, node)
