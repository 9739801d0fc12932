"""Find the names in the text of a query without compiling it, because a query that does not compile has names too."""

import re

_COMMENT_OR_TEXT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)", re.DOTALL)
_NAME = r"(?:\[([^\]\n]+)\]|\"([^\"\n]+)\"|([A-Za-z_]\w*))"
_INTO = re.compile(rf"\bINTO\s+{_NAME}", re.IGNORECASE)
_READ = re.compile(rf"\b(?:FROM|JOIN)\s+{_NAME}", re.IGNORECASE)


def outputs(query: str) -> list[str]:
    """Return the outputs that the query writes to, without repetition; `output` if it names none, as in ASA."""
    names: dict[str, str] = {}
    for name, _ in _named(_INTO, query):
        names.setdefault(name.lower(), name)
    return list(names.values()) or ["output"]


def lines_into(query: str, output: str) -> list[int]:
    """Return the lines on which the query writes to an output."""
    return [line for name, line in _named(_INTO, query) if name.lower() == output.lower()]


def sources(query: str) -> list[str]:
    """Return the names after FROM and JOIN, in order: inputs and steps of the query."""
    return [name for name, _ in _named(_READ, query)]


def lines_calling(query: str, function: str) -> list[int]:
    """Return the lines on which the query calls a user-defined function."""
    name = re.escape(function)
    call = re.compile(rf"(?:\b(?:udf|uda)\s*\.\s*|(?<![\w.\[]))\[?{name}\]?\s*\(", re.IGNORECASE)
    return _lines(_code(query), call)


def lines_naming(query: str, field: str) -> list[int]:
    """Return the lines on which the query names a field."""
    return _lines(_code(query), re.compile(rf"(?<![\w@]){re.escape(field)}(?!\w)(?!\s*\()", re.IGNORECASE))


def _named(pattern: re.Pattern[str], query: str) -> list[tuple[str, int]]:
    """Return the names that the pattern captures, with their lines."""
    code = _code(query)
    return [(match[match.lastindex or 0], _line(code, match.start())) for match in pattern.finditer(code)]


def _lines(text: str, pattern: re.Pattern[str]) -> list[int]:
    return list(dict.fromkeys(_line(text, match.start()) for match in pattern.finditer(text)))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _code(query: str) -> str:
    """Return the query with blanks in place of its comments and string literals; offsets stay the same."""
    return _COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), query)
