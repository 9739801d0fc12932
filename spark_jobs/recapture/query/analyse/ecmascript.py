"""REGEXMATCH's patterns: those of ECMAScript whose meaning is certain; others are refused.

A pattern is translated so that RE2 and Python read it in the same way: classes are ASCII, and each letter lists those
that are equal to it, as case does not matter.
"""

import re
from functools import cache

from recapture.query.analyse.patterns import first_match_regex, literal
from recapture.query.plan.regular import PatternError, pattern_of

_CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": " \\t\\n\\x0b\\f\\r"}
_COMPLEMENTS = {
    "D": "\\x00-/:-\U0010ffff",
    "W": "\\x00-/:-@\\[-\\^`{-\U0010ffff",
    "S": "\\x00-\\x08\\x0e-\\x1f!-\U0010ffff",
}
_IN_SET = {f"\\{name}": members for name, members in (_CLASSES | _COMPLEMENTS).items()}
_WORD = f"[{_CLASSES['w']}]"
_PIECES = {
    **{f"\\{name}": f"[{members}]" for name, members in _CLASSES.items()},
    **{f"\\{name}": f"[^{_CLASSES[name.lower()]}]" for name in _COMPLEMENTS},
    "\\b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "\\B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
    "^": r"(?<=\A@)",
    "$": r"(?=\n?\z)",
    ".": ".",
    "|": "|",
    ")": ")",
}
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
_GROUP = re.compile(r"\(\?[:=!]|\((?!\?)")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??(?![*+?{])")
_VARIANTS = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""Characters outside ASCII that are equal to a letter."""


def match_regex(pattern: str) -> str:
    """Return the regular expression of `Op.FIRST_MATCH` for a pattern. Raise PatternError if it is not supported.

    Letter case does not matter, and `.` matches the end of a line, too.
    """
    try:
        re.compile(pattern)
        regex = first_match_regex(_translated(pattern))
        pattern_of(regex)
    except (re.error, OverflowError, RecursionError, PatternError) as error:
        raise PatternError(f"REGEXMATCH cannot use this pattern: {error}") from None
    return regex


def _translated(pattern: str) -> str:
    pieces, index = [], 0
    while index < len(pattern):
        piece, index = _piece(pattern, index)
        pieces.append(piece)
    return "".join(pieces)


def _piece(pattern: str, index: int) -> tuple[str, int]:
    """Return the translated piece that begins at a place of a pattern, and the place after it."""
    if pattern[index] == "[":
        return _set(pattern, index)
    for length in (1, 2):
        if pattern[index : index + length] in _PIECES:
            return _PIECES[pattern[index : index + length]], index + length
    if group := _GROUP.match(pattern, index):
        return "(?:" if group.group() == "(" else group.group(), group.end()
    if quantifier := _QUANTIFIER.match(pattern, index):
        return quantifier.group(), quantifier.end()
    if pattern[index] in "({*+?":
        raise PatternError(f"`{pattern[index : index + 3]}` is not supported")
    character, index = _character(pattern, index)
    letters = _equal_letters(character)
    return literal(character) if len(letters) == 1 else f"[{''.join(letters)}]", index


def _set(pattern: str, start: int) -> tuple[str, int]:
    denied = pattern.startswith("^", start + 1)
    index = start + 1 + denied
    parts: list[str] = []
    while index < len(pattern) and pattern[index] != "]":
        if pattern[index : index + 2] in _IN_SET:
            parts.append(_IN_SET[pattern[index : index + 2]])
            index += 2
            continue
        first, index = _character(pattern, index)
        if pattern.startswith("-", index) and pattern[index + 1 : index + 2] not in ("", "]"):
            last, index = _character(pattern, index + 1)
            parts.append(_range(first, last))
        else:
            parts += map(literal, _equal_letters(first))
    if index == len(pattern) or not parts:
        raise PatternError(f"`{pattern[start:index]}` is an empty or unclosed set")
    return f"[{'^' if denied else ''}{''.join(parts)}]", index + 1


def _character(pattern: str, index: int) -> tuple[str, int]:
    """Return the character that stands at a place of a pattern, maybe as an escape, and the place after it."""
    if pattern[index] != "\\":
        return pattern[index], index + 1
    if code := _CODE.match(pattern, index):
        number = int(code[1] or code[2], 16)
        if 0xD800 <= number <= 0xDFFF:
            raise PatternError("half a character in a regular expression")
        return chr(number), code.end()
    sign = pattern[index + 1]
    if sign.isalnum() and sign not in _SIGNS:
        raise PatternError(f"`\\{sign}` is not supported")
    return _SIGNS.get(sign, sign), index + 2


def _range(first: str, last: str) -> str:
    """Return a range of a set, and the letters that are equal to one of its own: a-c => a-cABCabc"""
    letters: set[str] = set()
    for character in map(chr, range(ord(first), ord(last) + 1)):
        try:
            equal = _equal_letters(character) if character.isalpha() else []
        except PatternError as error:
            raise PatternError(f"{first}-{last}: {error}") from None
        if len(equal) > 1:
            letters.update(equal)
    return f"{literal(first)}-{literal(last)}{''.join(map(literal, sorted(letters)))}"


def _equal_letters(character: str) -> list[str]:
    """Return a character, and those that are equal to it where case does not matter: k => k, K, \u212a"""
    if character.isascii():
        others = [character.swapcase(), *_VARIANTS.get(character.lower(), "")] if character.isalpha() else []
        return [character, *others]
    if len(character.upper()) > 1 or len(character.lower()) > 1:
        raise PatternError(
            f"REGEXMATCH ignores case, and it is not known which letters are equal to {character} in ASA: "
            "write `.` for it, or use LIKE or PATINDEX, for which case matters"
        )
    others = [] if character.upper() == character.lower() else _letters_by_fold()[_fold(character)]
    return [*dict.fromkeys([character, *others])]


def _fold(character: str) -> str:
    """Return a letter in a case in which equal letters are the same: its capital as a small letter."""
    upper = character.upper()
    lower = (upper if len(upper) == 1 else character).lower()
    return lower[0]


@cache
def _letters_by_fold() -> dict[str, list[str]]:
    letters: dict[str, list[str]] = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x20000))):
        if character.upper() != character or character.lower() != character:
            letters.setdefault(_fold(character), []).append(character)
    return letters
