"""Characters that an editor does not show: those of no width are blanks, and all others are refused by name.

They come with what is copied from a page or saved with a byte order mark. A string, a name in quotes or brackets and a
comment may contain them.
"""

import re
import unicodedata

from recapture.query.parse.source import QUOTED, Source

_NO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
"""Zero width space, non-joiner and joiner; word joiner; and the byte order mark, a zero width no-break space."""
_WITHIN_A_WORD = re.compile(rf"(?<=[\w@#$])[{_NO_WIDTH}]+(?=[\w@#$])")
_LIKE_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Fillers and selectors, which are hidden although Unicode counts them as letters, marks or symbols."""


def with_blanks(source: Source) -> str:
    """Return the text of a query with a blank for each character of no width, so that every offset stays the same.

    Raise DefinitionError for such a character within a word, and for any other hidden character.
    """
    text = QUOTED.sub(lambda quoted: "." * len(quoted.group()), source.text)
    if text.isascii() and text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable():
        return source.text
    within = _WITHIN_A_WORD.search(text)
    for offset, character in enumerate(text):
        is_hidden = not (character.isprintable() or character.isspace()) or _LIKE_LETTERS.match(character)
        if is_hidden and (character not in _NO_WIDTH or (within and offset == within.start())):
            raise source.error(offset, f"the hidden character {name_of(character)} is not supported here: remove it")
    return "".join(
        " " if character in _NO_WIDTH and shown in _NO_WIDTH else character
        for character, shown in zip(source.text, text, strict=True)
    )


def name_of(character: str) -> str:
    """Return the code point of a character, and its name in Unicode: U+200B ZERO WIDTH SPACE"""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
