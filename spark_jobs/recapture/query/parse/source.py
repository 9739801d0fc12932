"""The text of a query, and the places in it that errors show."""

import re
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from recapture.errors import DefinitionError

QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""A string, a name in quotes or brackets, or a comment."""


@dataclass(frozen=True)
class Source:
    """A query as the user wrote it. Places in it are offsets; errors show line and column, from 1."""

    text: str
    case_sensitive: set[int] = field(default_factory=set, compare=False)
    """Offsets of the names whose case matters."""

    def error(self, where: "int | Token | exp.Expr", message: str) -> DefinitionError:
        """Return the error that shows a place and says what is wrong there, for the caller to raise."""
        offset = self.offset(where)
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        written = self.text.split("\n")[line - 1]
        before = re.sub(r"[^\t]", " ", written[: column - 1])
        shown = f"    {written}\n    {before}^"
        return DefinitionError(f"query, line {line}, column {column}: {message}\n{shown}")

    def untyped_null(self, where: exp.Expr) -> DefinitionError:
        """Return the error of a NULL whose type nothing tells, for the caller to raise."""
        return self.error(where, "NULL alone has no type here: write, for example, CAST(NULL AS float)")

    def offset(self, where: "int | Token | exp.Expr") -> int:
        """Return where a token or an expression begins; an expression begins with its first leaf."""
        if isinstance(where, int):
            return where
        if isinstance(where, Token):
            return where.start
        for position in ("start", "read_at"):
            offsets = [node.meta[position] for node in where.walk() if node.meta.get(position) is not None]
            if offsets:
                return int(min(offsets))
        return 0

    def word(self, where: "int | Token | exp.Expr") -> str:
        """Return the word or sign at a place, as written."""
        offset = self.offset(where)
        word = re.compile(r"\[[^\]\n]*\]|\"[^\"\n]*\"|'[^'\n]*'?|\w+|\S").search(self.text, offset)
        return word.group() if word else ""


_PARTS = {
    "catalog": "a name of several parts",
    "db": "a name of several parts",
    "expressions": "another argument",
    "field": "a field as a list",
    "options": "OPTION",
    "query": "a query inside a query",
    "sample": "TABLESAMPLE",
    "temporary": "a temporary table",
    "windows": "WINDOW",
}


def require_only(source: Source, node: exp.Expr, *known: str) -> None:
    """Raise DefinitionError if a node has a part that is not among `known`, so that nothing is silently ignored."""
    for part, value in node.args.items():
        if part not in known and value:
            first = value[0] if isinstance(value, list) else value
            where = first if isinstance(first, exp.Expr) else node
            name = _PARTS.get(part, part.rstrip("_").replace("_", " ").upper())
            raise source.error(where, f"{name} is not supported here, near `{source.word(where)}`")
