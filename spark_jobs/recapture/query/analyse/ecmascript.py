"""REGEXMATCH's patterns: those of ECMAScript that mean the same to Java; others are refused."""

import re

from recapture.query.analyse.patterns import first_match_regex, literal
from recapture.query.plan.regular import PatternError, compiled

_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\s", "S": r"\S"}
_SIGNS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\x0B"}
_ANCHORS = {"b": r"(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))", "B": r"(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))"}
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}")
_GROUP = re.compile(r"\((?:\?[:=!]|(?!\?))")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??(?![*+?{])")


def match_regex(pattern: str) -> str:
    """Return the regular expression of `Op.FIRST_MATCH` for a pattern. Raise PatternError if it is not supported.

    Letter case does not matter, and `.` matches the end of a line, too.
    """
    try:
        re.compile(pattern)
        regex = first_match_regex(_java(pattern), "isud")
        compiled(regex)
    except (re.error, OverflowError, PatternError) as error:
        raise PatternError(f"REGEXMATCH cannot use this pattern: {error}") from None
    return regex


def _java(pattern: str) -> str:
    """Return the pattern for Java, which matches after one added character."""
    written, index = [], 0
    while index < len(pattern):
        piece, index = _piece(pattern, index)
        written.append(piece)
    return "".join(written)


def _piece(pattern: str, index: int) -> tuple[str, int]:
    sign = pattern[index]
    if sign == "\\":
        return _escape(pattern, index + 1, _CLASSES | _SIGNS | _ANCHORS)
    if sign == "[":
        return _set(pattern, index)
    if sign == "^":
        return r"(?<=\A@)", index + 1
    if sign == "$":
        return r"(?=\n?\z)", index + 1
    for known in (_GROUP, _QUANTIFIER):
        match = known.match(pattern, index)
        if match:
            return match.group(), match.end()
    if sign in ".|)":
        return sign, index + 1
    if sign in "({*+?":
        raise PatternError(f"`{pattern[index : index + 3]}` is not supported")
    return literal(sign), index + 1


def _set(pattern: str, start: int) -> tuple[str, int]:
    index = start + 1
    written = "["
    if pattern[index : index + 1] == "^":
        written, index = "[^", index + 1
    first = index
    while index < len(pattern) and pattern[index] != "]":
        if pattern[index] == "\\":
            piece, index = _escape(pattern, index + 1, _CLASSES | _SIGNS)
        else:
            piece = "-" if pattern[index] == "-" else literal(pattern[index])
            index += 1
        written += piece
    if index == len(pattern) or index == first:
        raise PatternError(f"`{pattern[start:index]}` is an empty or unclosed set")
    return written + "]", index + 1


def _escape(pattern: str, index: int, known: dict[str, str]) -> tuple[str, int]:
    code = _CODE.match(pattern, index)
    if code:
        return "\\" + code.group(), code.end()
    sign = pattern[index : index + 1]
    if sign in known and sign:
        return known[sign], index + 1
    if not sign or sign.isalnum():
        raise PatternError(f"`\\{sign}` is not supported")
    return literal(sign), index + 1
