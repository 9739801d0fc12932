"""What a query's text names, found without compiling it: a job that cannot be compiled has names too."""

import re

_SILENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)", re.DOTALL)
_NAME = r"(?:\[([^\]\n]+)\]|([A-Za-z_]\w*))"
_INTO = re.compile(rf"\bINTO\s+{_NAME}", re.IGNORECASE)
_READ = re.compile(rf"\b(?:FROM|JOIN)\s+{_NAME}", re.IGNORECASE)


def written(query: str) -> list[str]:
    """The outputs that the query writes to, each once; `output` where it names none, as in ASA."""
    found: dict[str, str] = {}
    for name, _ in _named(_INTO, query):
        found.setdefault(name.lower(), name)
    return list(found.values()) or ["output"]


def lines_into(query: str, output: str) -> list[int]:
    """The lines on which the query writes to an output."""
    return [line for name, line in _named(_INTO, query) if name.lower() == output.lower()]


def sources(query: str) -> list[str]:
    """What the query reads after FROM and JOIN: inputs and its own steps, in order."""
    return [name for name, _ in _named(_READ, query)]


def lines_from(query: str, source: str) -> list[int]:
    """The lines on which the query reads an input."""
    return [line for name, line in _named(_READ, query) if name.lower() == source.lower()]


def lines_calling(query: str, function: str) -> list[int]:
    """The lines on which the query calls a user-defined function."""
    name = re.escape(function)
    call = re.compile(rf"(?:\b(?:udf|uda)\s*\.\s*|(?<![\w.\[]))\[?{name}\]?\s*\(", re.IGNORECASE)
    return _lines(_spoken(query), call)


def lines_naming(query: str, field: str) -> list[int]:
    """The lines on which the query names a field."""
    return _lines(_spoken(query), re.compile(rf"(?<![\w@]){re.escape(field)}(?!\w)(?!\s*\()", re.IGNORECASE))


def _named(pattern: re.Pattern[str], query: str) -> list[tuple[str, int]]:
    spoken = _spoken(query)
    return [(found[1] or found[2], _line(spoken, found.start())) for found in pattern.finditer(spoken)]


def _lines(text: str, pattern: re.Pattern[str]) -> list[int]:
    return list(dict.fromkeys(_line(text, found.start()) for found in pattern.finditer(text)))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _spoken(query: str) -> str:
    """The query with comments and texts blanked, each line where it was."""
    return _SILENT.sub(lambda silent: re.sub(r"[^\n]", " ", silent.group()), query)
