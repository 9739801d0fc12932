"""Java's regular expressions, as far as the compiler writes them, for RE2 and for Python.

A pattern is parsed and rewritten so that each part has the same meaning: classes are ASCII, `.` and `$` use Java's ends
of lines, and where case is ignored, a letter lists its variants. Anything else is refused.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

_ENDS = "\n\r\x85\u2028\u2029"
"""Characters that end a line in Java."""
_CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": " \\t\\n\\x0b\\f\\r"}
_COMPLEMENTS = {
    "D": "\\x00-/:-\U0010ffff",
    "W": "\\x00-/:-@\\[-\\^`{-\U0010ffff",
    "S": "\\x00-\\x08\\x0e-\\x1f!-\U0010ffff",
}
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??(?![*+?{])")
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_VARIANTS = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""Characters outside ASCII that are equal to a letter where case does not matter."""

_NUMBER = re.compile(r"\^[-?0-9+*\[\].()eE]*\$")
"""Regular expression of patterns of numbers. Nothing before their $ ends a line, so that RE2 can express it."""


class PatternError(ValueError):
    """A pattern that may mean something else; the message says which part, and what to write instead."""


@dataclass(frozen=True)
class Pattern:
    """A pattern in the languages of Python and of RE2."""

    python: re.Pattern[str]
    re2: str | None
    """None if RE2 cannot express it."""

    @property
    def re2_group(self) -> str | None:
        """Pattern with a name for its first group, with which it begins; None if RE2 cannot express it."""
        return None if self.re2 is None else self.re2.replace("\\A(", "\\A(?P<first>", 1)


def pattern_of(regex: str) -> Pattern:
    r"""Return the pattern of a regular expression that RE2 and Python read in the same way; its end is `\z`."""
    return Pattern(re.compile(regex.removesuffix("\\z") + "\\Z"), _re2(regex))


@lru_cache(maxsize=1024)
def compiled(java: str) -> Pattern:
    """Return a pattern of Java. Raise PatternError if it may mean something else in Python."""
    reader = _Reader(java)
    python = reader.read()
    try:
        known = re.compile(python)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the regular expression {java!r}: {error}") from None
    if _NUMBER.fullmatch(java):
        return Pattern(known, _re2(f"{java[:-1]}(?:\\r\\n|[\\n\\r\\x{{85}}\\x{{2028}}\\x{{2029}}])?\\z"))
    return Pattern(known, None if reader.looks_around else _re2(reader.re2()))


def _re2(pattern: str) -> str | None:
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid:
        return None
    return pattern


class _Reader:
    """Reads a pattern of Java once, and writes it for Python."""

    def __init__(self, java: str) -> None:
        flags = re.match(r"\(\?([a-z]+)\)", java)
        self.flags = flags[1] if flags else ""
        if set(self.flags) - set("isud"):
            raise PatternError(f"the flags {self.flags} of a regular expression")
        if ("i" in self.flags) != ("u" in self.flags) and java != "":
            # Without u, Java compares the letters of ASCII alone without case.
            self.ascii_case = "i" in self.flags
        else:
            self.ascii_case = False
        self.java = java[flags.end() :] if flags else java
        self.index = 0
        self.looks_around = False
        self.is_first_group = True
        self.written: list[str] = []

    def read(self) -> str:
        depth: list[int] = []
        while self.index < len(self.java):
            sign = self.java[self.index]
            if sign == "(":
                depth.append(len(self.written))
                self._open()
            elif sign == ")":
                if not depth:
                    raise PatternError("a regular expression with an odd parenthesis")
                depth.pop()
                self._write(")")
            elif match := _QUANTIFIER.match(self.java, self.index):
                self.index = match.end()
                self.written.append(match.group())
            elif sign in "*+?{":
                raise PatternError(f"the quantifier {self.java[self.index : self.index + 3]} of a regular expression")
            else:
                self._single(sign)
        if depth:
            raise PatternError("a regular expression with an odd parenthesis")
        return "".join(self.written)

    def re2(self) -> str:
        """Return the pattern for RE2, if it does not look around."""
        return "".join(self.written).replace("\\Z", "\\z")

    def _write(self, text: str, length: int = 1) -> None:
        self.written.append(text)
        self.index += length

    def _open(self) -> None:
        for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!"):
            if self.java.startswith(opening, self.index):
                self.looks_around = self.looks_around or opening != "(?:"
                self._write(opening, len(opening))
                return
        if self.java.startswith("(?", self.index):
            raise PatternError(f"{self.java[self.index : self.index + 4]} of a regular expression")
        # No pattern refers to its groups, and only the length of the first one is read.
        self._write("(" if self.is_first_group else "(?:", 1)
        self.is_first_group = False

    def _single(self, sign: str) -> None:
        match sign:
            case "^":
                self._write("\\A")
            case "$":
                if "d" in self.flags:
                    raise PatternError("$ with the flag d of a regular expression")
                self.looks_around = True
                self._write("(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\u2028\u2029])?\\Z)")
            case ".":
                self._write("(?s:.)" if "s" in self.flags else f"[^{_ENDS}]" if "d" not in self.flags else "[^\n]")
            case "|":
                self._write("|")
            case "[":
                self._set()
            case "\\":
                self._escape()
            case "]" | "}":
                self._write("\\" + sign)
            case _:
                self._write(self._letter(sign))

    def _letter(self, character: str) -> str:
        variants = self._variants(character)
        return re.escape(character) if len(variants) == 1 else f"[{''.join(variants)}]"

    def _variants(self, character: str) -> list[str]:
        """Return the characters that are equal to one, where case does not matter."""
        if "i" not in self.flags:
            return [character]
        if not character.isascii():
            return [character] if self.ascii_case else _equal_letters(character)
        if not character.isalpha():
            return [character]
        small = character.lower()
        return [small, small.upper(), *("" if self.ascii_case else _VARIANTS.get(small, ""))]

    def _escape(self) -> None:
        sign = self.java[self.index + 1 : self.index + 2]
        if sign in ("z", "A"):
            self._write("\\Z" if sign == "z" else "\\A", 2)
        elif sign in _CLASSES and sign:
            self._write(f"[{_CLASSES[sign]}]", 2)
        elif sign in ("D", "W", "S"):
            self._write(f"[^{_CLASSES[sign.lower()]}]", 2)
        else:
            character, length = self._escaped()
            self._write(self._letter(character), length)

    def _escaped(self) -> tuple[str, int]:
        """Return the character that an escape stands for, and how long the escape is."""
        code = _CODE.match(self.java, self.index + 1)
        if code:
            number = int(code[1] or code[2], 16)
            if 0xD800 <= number <= 0xDFFF:
                raise PatternError("half a character in a regular expression")
            return chr(number), 1 + len(code.group())
        sign = self.java[self.index + 1 : self.index + 2]
        if sign in _SIGNS and sign:
            return _SIGNS[sign], 2
        if not sign or sign.isalnum() or not sign.isascii():
            raise PatternError(f"\\{sign} of a regular expression")
        return sign, 2

    def _set(self) -> None:
        index = self.index + 1
        denied = self.java[index : index + 1] == "^"
        self.index = index + denied
        parts: list[str] = []
        while True:
            sign = self.java[self.index : self.index + 1]
            if sign == "]" and parts:
                break
            if sign in ("", "]", "[") or self.java.startswith("&&", self.index):
                raise PatternError("a set of a regular expression")
            following = self.java[self.index + 1 : self.index + 2]
            if sign == "\\" and following in {*_CLASSES, *_COMPLEMENTS}:
                parts.append({**_CLASSES, **_COMPLEMENTS}[following])
                self.index += 2
                continue
            first = self._member()
            is_range = self.java.startswith("-", self.index) and self.java[self.index + 1 : self.index + 2] not in (
                "",
                "]",
            )
            if is_range:
                self.index += 1
                if self.java[self.index] == "[" or re.match(r"\\[dDwWsS]", self.java[self.index :]):
                    raise PatternError("a range of a regular expression")
                parts.append(self._range(first, self._member()))
            else:
                parts.append("".join(map(_in_set, self._variants(first))))
        self._write(f"[{'^' if denied else ''}{''.join(parts)}]")

    def _member(self) -> str:
        if self.java[self.index] == "\\":
            character, length = self._escaped()
        else:
            character, length = self.java[self.index], 1
        self.index += length
        return character

    def _range(self, first: str, last: str) -> str:
        if first > last:
            raise PatternError("a range of a regular expression that runs backwards")
        written = f"{_in_set(first)}-{_in_set(last)}"
        if "i" not in self.flags:
            return written
        letters: set[str] = set()
        for code in range(ord(first), ord(last) + 1):
            try:
                variants = self._variants(chr(code)) if chr(code).isalpha() else []
            except PatternError as error:
                raise PatternError(f"{first}-{last}: {error}") from None
            if len(variants) > 1:
                letters.update(variants)
        return written + "".join(map(_in_set, sorted(letters)))


def _equal_letters(character: str) -> list[str]:
    """Return the characters that are equal to one outside ASCII, where case does not matter."""
    if len(character.upper()) > 1 or len(character.lower()) > 1:
        raise PatternError(
            f"REGEXMATCH ignores case, and it is not known which letters are equal to {character} in ASA: "
            "write `.` for it, or use LIKE or PATINDEX, for which case matters"
        )
    if character.upper() == character.lower():
        return [character]
    return _letters_by_fold()[_fold(character)]


def _fold(character: str) -> str:
    """Return toLowerCase(toUpperCase(character)) of Java, which maps a character to a single one."""
    upper = character.upper()
    lower = (upper if len(upper) == 1 else character).lower()
    return lower if len(lower) == 1 else lower[0]


@cache
def _letters_by_fold() -> dict[str, list[str]]:
    letters: dict[str, list[str]] = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x20000))):
        if character.upper() != character or character.lower() != character:
            letters.setdefault(_fold(character), []).append(character)
    return letters


def _in_set(character: str) -> str:
    return "\\" + character if character in "\\]^-[&~|" else re.escape(character) if character.isascii() else character
