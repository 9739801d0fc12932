"""Strings from events, blobs and other foreign sources, made safe for a terminal and for a line of a log.

A control character can steer a terminal, a line break can forge a line, and a bidirectional override can turn the order
of what follows. They are shown as JSON escapes them, so that JSON stays the same document: ESC => \\u001b
"""

import json
import re
import unicodedata

_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of control, format and surrogate characters, and of separators of lines and paragraphs."""
_TO_LOOK_AT = re.compile("[^ -~]")
"""Characters that may be invisible: all but the printable ones of ASCII, which are most."""


def printable(text: str) -> str:
    """Return a string with its control, format and surrogate characters escaped, except line feeds and tabs."""
    return _escaped(text, "\n\t")


def one_line(text: str) -> str:
    """Return a string with its control, format and surrogate characters escaped, line feeds and tabs too."""
    return _escaped(text, "")


def message(text: str) -> str:
    """Return a printable string whose lines are indented from the second on: no line looks like another message."""
    return re.sub(r"\n(?!  )", "\n  ", printable(text))


def _escaped(text: str, spared: str) -> str:
    def shown(match: re.Match[str]) -> str:
        character = match[0]
        invisible = character not in spared and unicodedata.category(character) in _INVISIBLE
        return _escape(character) if invisible else character

    return text if text.isprintable() else _TO_LOOK_AT.sub(shown, text)


def _escape(character: str) -> str:
    """Return a character as JSON escapes it. JSON may leave the delete character as it is."""
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]
