"""Tokens: values of any type as strings, of which two are equal exactly if the values are equal in ASA.

A field that nothing declares may hold a number in one event and a string in the next. In ASA 503 and "503" differ, and
5 equals 5.0. So that rows can be compared, grouped and joined by such a field, its values are tokens:

    "503" => 503 · 503 => ￿503 · 5 and 5.0 => ￿5 · 21.50 => ￿21.5 · true => ￿true

A string is its own token, so a field that holds only strings costs nothing. The token of any other value begins with a
mark, the noncharacter U+FFFF. A string that begins with the mark gets the mark and a quotation mark.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MARK = "\uffff"
"""Beginning of the token of a value that is not a string."""
_ESCAPED = MARK + '"'
_NUMBER = rf"^{MARK}(-?([0-9]|Infinity)|NaN$)"
_EXACT_FLOATS = 2.0**53
"""Every integer up to this one is exactly a float."""
_LARGEST = 2**63
Datum: TypeAlias = pa.Array | pa.Scalar


def of_string(string: str) -> str:
    """Return the token of a string."""
    return _ESCAPED + string if string.startswith(MARK) else string


def of_number(number: int | float) -> str:
    """Return the token of a bigint or of a finite float: 5, 5.0 => ￿5"""
    return MARK + number_text(number)


def number_text(number: int | float) -> str:
    """Return a number as ASA writes it, but each float that is a bigint as this bigint: 5.0 => 5, 1e20 => 1E+20

    A number beyond the floats is infinite: 1e400 => Infinity
    """
    if isinstance(number, int):
        return str(number)
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number.is_integer() and -_LARGEST <= number < _LARGEST:
        return str(int(number))
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).strip("0")
    # The number is 0.DIGITS * 10 ** point.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    sign = "-" if number < 0 else ""
    if -5 < point <= 15:
        padded = digits.ljust(point, "0")
        return sign + ("0." + "0" * -point + digits if point <= 0 else padded[:point] + "." + padded[point:])
    rest = "." + digits[1:] if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}E{'+' if point > 0 else '-'}{abs(point - 1):02}"


def text_of(token: str) -> str:
    """Return the value of a token as a string."""
    return token.removeprefix(MARK).removeprefix('"') if token.startswith(MARK) else token


def of_strings(strings: Datum) -> Datum:
    """Return the tokens of strings."""
    marked = pc.fill_null(pc.starts_with(strings, MARK), False)
    if not pc.any(marked).as_py():
        return strings
    return pc.if_else(marked, pc.binary_join_element_wise(MARK, '"', strings, ""), strings)


def of_texts(texts: Datum) -> Datum:
    """Return the tokens of values that are not strings, from their texts."""
    return pc.binary_join_element_wise(MARK, texts, "")


def float_texts(floats: pa.Array) -> pa.Array:
    """Return what `number_text` does for finite floats."""
    sizes = pc.abs(floats)
    integral = pc.and_(pc.equal(floats, pc.floor(floats)), pc.less(sizes, _EXACT_FLOATS))
    integers = pc.if_else(integral, floats, None).cast(pa.int64()).cast(pa.string())
    short = pc.and_(pc.greater_equal(sizes, 1e-5), pc.less(sizes, 1e10))
    known = pc.coalesce(integers, pc.if_else(short, floats, None).cast(pa.string()))
    if known.null_count == floats.null_count:
        return known
    rest = pc.and_(pc.is_null(known), pc.is_valid(floats))
    return pc.replace_with_mask(known, rest, pa.array(map(number_text, floats.filter(rest).to_pylist()), pa.string()))


def texts(tokens: Datum) -> Datum:
    """Return the values of tokens as strings."""
    marked = pc.fill_null(pc.starts_with(tokens, MARK), False)
    if not pc.any(marked).as_py():
        return tokens
    unmarked = pc.utf8_slice_codeunits(tokens, 1)
    unmarked = pc.if_else(pc.starts_with(unmarked, '"'), pc.utf8_slice_codeunits(unmarked, 1), unmarked)
    return pc.if_else(marked, unmarked, tokens)


def in_order(comparison: str, left: Datum, right: Datum) -> Datum:
    """Return whether values are in an order, which is named as its operation; NULL if one is NULL.

    A value is a token, a bigint or a float. Numbers are compared as numbers, exactly, and strings by code point. Other
    values have no order: the result is false.
    """
    compare = _COMPARISONS[comparison]
    sides = (left, right)
    numbers = [_numbers(side) for side in sides]
    in_order = pc.fill_null(compare(*numbers), False)
    large = [pc.greater_equal(pc.abs(number), _EXACT_FLOATS) for number in numbers]
    equal = pc.and_(pc.equal(*numbers), pc.is_finite(numbers[0]))
    doubtful = pc.fill_null(pc.and_(equal, pc.and_(*large)), False)
    if pc.any(doubtful).as_py():
        in_order = _exactly(compare, sides, in_order, doubtful)
    if all(pa.types.is_string(side.type) for side in sides):
        are_strings = pc.and_(*map(_are_strings, sides))
        if pc.any(are_strings).as_py():
            in_order = pc.or_(in_order, pc.and_(are_strings, compare(*map(texts, sides))))
    return pc.if_else(pc.and_(*map(pc.is_valid, sides)), in_order, pa.scalar(None, pa.bool_()))


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": pc.less,
    "less_or_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_or_equal": pc.greater_equal,
}


def _are_strings(tokens: Datum) -> Datum:
    return pc.or_(pc.invert(pc.starts_with(tokens, MARK)), pc.starts_with(tokens, _ESCAPED))


def _numbers(values: Datum) -> Datum:
    """Return the numbers among values, as the nearest floats; NULL for other values."""
    if not pa.types.is_string(values.type):
        return pc.cast(values, pa.float64(), safe=False)
    if isinstance(values, pa.Scalar):
        return _numbers(pa.array([values.as_py()], pa.string()))[0]
    if pc.all(pc.starts_with(values, MARK)).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.utf8_slice_codeunits(values, 1).cast(pa.float64())
    is_number = pc.match_substring_regex(values, _NUMBER)
    numbers = pc.if_else(is_number, values, pa.scalar(None, pa.string()))
    return pc.utf8_slice_codeunits(numbers, 1).cast(pa.float64())


def _exactly(compare: Callable[[Any, Any], Any], sides: tuple[Datum, Datum], in_order: Datum, doubtful: Datum) -> Datum:
    """Return `in_order` with the rows in `doubtful` compared as integers of any size."""
    results = np.array(in_order.to_numpy(zero_copy_only=False))
    for place in np.flatnonzero(doubtful.to_numpy(zero_copy_only=False)):
        left, right = (_integer((side[place] if isinstance(side, pa.Array) else side).as_py()) for side in sides)
        results[place] = compare((left > right) - (left < right), 0).as_py()
    return pa.array(results)


def _integer(value: str | int | float) -> int:
    if not isinstance(value, str):
        return int(value)
    return int(float(value[1:])) if "E" in value else int(value[1:])
