"""JSON documents as Spark reads them with Jackson: names in order with duplicates, numbers by their text.

An object is a tuple of pairs, an array a list, a number a `Number`. What follows the document is not read.
"""

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from recapture.evaluate.float_text import texts

INVALID = object()
"""What stands for a string that is not a document."""


class Number(str):
    """A number, as it is written."""

    __slots__ = ()


@dataclass(frozen=True)
class Leniency:
    """What Spark's functions read besides JSON."""

    strings: bool
    """Strings in single quotes, or with control characters."""
    numbers: bool
    """NaN and Infinity."""


OF_PATHS = Leniency(strings=True, numbers=False)
"""What get_json_object, json_array_length and json_object_keys read."""
OF_FROM_JSON = Leniency(strings=False, numbers=True)
"""What from_json reads: also strings in single quotes, but no control characters in strings."""

MOST_LEVELS = 1_000
"""Largest number of arrays and objects within each other, which is Jackson's; a deeper string is not a document."""
_JSON = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=Number, parse_int=Number, parse_constant=lambda name: _Constant(name)
)
_BLANKS = re.compile(r"[ \t\n\r]*")


class _Constant(Number):
    """NaN, Infinity or -Infinity."""


def document(string: str, leniency: Leniency) -> Any:
    """Return the document that a string begins with; INVALID if it is none.

    {"a": [1.50]} => (("a", [Number("1.50")]),)
    """
    start = _BLANKS.match(string)
    assert start is not None
    if string.count("[") + string.count("{") > MOST_LEVELS and _levels(string) > MOST_LEVELS:
        return INVALID
    try:
        value, _ = _JSON.raw_decode(string, start.end())
    except RecursionError:  # of Python's decoder, which has a limit of its own
        return _Reader(string, leniency).document()
    except json.JSONDecodeError:
        return (
            _Reader(string, leniency).document()
            if "'" in string or (leniency.strings and not string.isprintable())
            else INVALID
        )
    if not leniency.numbers and ("NaN" in string or "Infinity" in string) and _has_constant(value):
        return INVALID
    return value


def _levels(string: str) -> int:
    """Return how many arrays and objects a document has within each other, or a string that looks like one."""
    levels = most = 0
    for sign in re.findall(r'"(?:[^"\\\\]|\\\\.)*"|[\[\]{}]', string, re.DOTALL):
        levels += (sign in "[{") - (sign in "]}")
        most = max(most, levels)
    return most


def _has_constant(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_constant, value))
    if isinstance(value, tuple):
        return any(_has_constant(part) for _, part in value)
    return isinstance(value, _Constant)


class _InvalidError(Exception):
    """The string is not a document."""


_ESCAPES = {'"': '"', "/": "/", "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+-])")
_WORD = re.compile(r"-?[A-Za-z]+")


class _Reader:
    """Reads a document with strings in single quotes, or with control characters."""

    def __init__(self, string: str, leniency: Leniency) -> None:
        self.text, self.leniency, self.index = string, leniency, 0

    def document(self) -> Any:
        try:
            return self._value()
        except _InvalidError:
            return INVALID

    def _blanks(self) -> str:
        match = _BLANKS.match(self.text, self.index)
        assert match is not None
        self.index = match.end()
        return self.text[self.index : self.index + 1]

    def _value(self) -> Any:
        sign = self._blanks()
        if sign in ('"', "'") and sign:
            return self._string(sign)
        if sign == "{":
            return self._object()
        if sign == "[":
            return self._array()
        if number := _NUMBER.match(self.text, self.index):
            self.index = number.end()
            return Number(number.group())
        word = _WORD.match(self.text, self.index)
        if word is None:
            raise _InvalidError
        self.index = word.end()
        match word.group():
            case "true":
                return True
            case "false":
                return False
            case "null":
                return None
            case "NaN" | "Infinity" | "-Infinity" if self.leniency.numbers:
                return _Constant(word.group())
        raise _InvalidError

    def _object(self) -> tuple[tuple[str, Any], ...]:
        pairs: list[tuple[str, Any]] = []
        self.index += 1
        sign = self._blanks()
        while sign != "}":
            if pairs:
                self._take(",")
                sign = self._blanks()
            if sign not in ('"', "'") or not sign:
                raise _InvalidError
            name = self._string(sign)
            self._blanks()
            self._take(":")
            pairs.append((name, self._value()))
            sign = self._blanks()
        self.index += 1
        return tuple(pairs)

    def _array(self) -> list[Any]:
        values: list[Any] = []
        self.index += 1
        while self._blanks() != "]":
            if values:
                self._take(",")
            values.append(self._value())
        self.index += 1
        return values

    def _take(self, sign: str) -> None:
        if self.text[self.index : self.index + 1] != sign:
            raise _InvalidError
        self.index += 1

    def _string(self, quote: str) -> str:
        parts: list[str] = []
        self.index += 1
        while True:
            sign = self.text[self.index : self.index + 1]
            self.index += 1
            if not sign or (sign < " " and not self.leniency.strings):
                raise _InvalidError
            if sign == quote:
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            if sign != "\\":
                parts.append(sign)
                continue
            code = self.text[self.index : self.index + 1]
            self.index += 1
            if code == "u" and re.fullmatch("[0-9a-fA-F]{4}", self.text[self.index : self.index + 4]):
                parts.append(chr(int(self.text[self.index : self.index + 4], 16)))
                self.index += 4
            elif code in _ESCAPES and code:
                parts.append(_ESCAPES[code])
            else:
                raise _InvalidError


_TO_ESCAPE = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    short = _SHORT.get(character)
    if short is not None:
        return short
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[index]:02X}{halves[index + 1]:02X}" for index in range(0, len(halves), 2))


def quoted(string: str) -> str:
    """Return a string as Jackson writes it: characters beyond U+FFFF are escaped."""
    return f'"{_TO_ESCAPE.sub(_escaped, string)}"'


_TO_ESCAPE_IN_TEXT = re.compile('["\\\\\x00-\x1f]')


def quoted_text(string: str) -> str:
    """Return a string as to_json writes it, which escapes no characters beyond U+FFFF."""
    return f'"{_TO_ESCAPE_IN_TEXT.sub(_escaped, string)}"'


@lru_cache(maxsize=65536)
def _number(string: str) -> str:
    """Return a number as Jackson writes it: 1.50 => 1.5, -0 => 0, 1e400 => "Infinity" with its quotes"""
    if re.fullmatch("-?[0-9]+", string):
        return str(int(string)) if len(string) < 4000 else string
    number = float(string)
    written = str(texts(np.array([number]), net=False)[0].as_py())
    return written if math.isfinite(number) else f'"{written}"'


def written(value: Any) -> str:
    """Return a value as Jackson writes it, without blanks."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Number():
            return _number(value)
        case str():
            return quoted(value)
        case list():
            return f"[{','.join(map(written, value))}]"
    return "{" + ",".join(f"{quoted(name)}:{written(part)}" for name, part in value) + "}"


def element_text(value: Any) -> str | None:
    """Return a value as from_json reads it to a string; NULL for null. Half a character becomes a question mark."""
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, Number):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    return written(value)


def path_text(value: Any) -> str | None:
    """Return a value as get_json_object gives it; NULL for a string with half a surrogate pair."""
    if isinstance(value, str) and not isinstance(value, Number):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return None
        return value
    return written(value)
