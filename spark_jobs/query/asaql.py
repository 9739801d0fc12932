"""ASAQL as a sqlglot dialect: T-SQL with TIMESTAMP BY … [OVER …], and the split of a text into its statements."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.tsql import TSQLParser
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import DefinitionError
from spark_jobs.query.source import Source

E = TypeVar("E", bound=exp.Expr)

_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*(?:(?!/\*|\*/).)*\*/)*", re.DOTALL)
_NEVER_AFTER_COMMA = {
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.INTO,
    TokenType.R_PAREN,
    TokenType.SEMICOLON,
    TokenType.WHERE,
}
_NEAR = {
    "PARTITION": "PARTITION BY is not needed: every partition is ordered on its own; leave it out",
    "OVER": "OVER belongs to TIMESTAMP BY, right after the input: FROM input TIMESTAMP BY time OVER key",
    "TIMESTAMP": "TIMESTAMP BY follows the input, once, and names a field: FROM input TIMESTAMP BY time",
    "LIMIT": "LIMIT is not supported; leave it out",
}


class Asaql(TSQL):
    """The dialect. A table's `timestamp_by` is the expression after TIMESTAMP BY, its `over` the list after OVER."""

    class Parser(TSQLParser):
        """T-SQL's parser, with the clause that ASA adds to a table."""

        def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
            if self._match_text_seq("TIMESTAMP", "BY", advance=False) or self._match_text_seq("OVER", advance=False):
                return None
            return super()._parse_table_alias(alias_tokens)

        def _parse_table(
            self,
            schema: bool = False,
            joins: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
            parse_bracket: bool = False,
            is_db_reference: bool = False,
            parse_partition: bool = False,
            consume_pipe: bool = False,
        ) -> exp.Expr | None:
            table = super()._parse_table(
                schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition, consume_pipe
            )
            if table and self._match_text_seq("TIMESTAMP", "BY"):
                table.set("timestamp_by", self._parse_disjunction())
                if self._match_text_seq("OVER"):
                    table.set("over", self._parse_csv(self._parse_disjunction))
            return table

        def expression(self, instance: E, token: Token | None = None, comments: list[str] | None = None) -> E:
            """A node that knows where it was read, for those without a position of their own."""
            node = super().expression(instance, token, comments)
            if self._prev:
                node.meta.setdefault("read_at", self._prev.start)
            return node

        def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
            """Fail with the place as a token's offset; None is the end of the text."""
            token = token or self._curr or None
            raise ParseError(message, [{"start": token.start if token else None}])


@dataclass(frozen=True)
class Parsed:
    """A text in its parts. `declarations` are the tokens of each CREATE TABLE, `select` is the query's tree."""

    source: Source
    tokens: list[Token]
    declarations: list[list[Token]]
    select: exp.Select


def parse(text: str) -> Parsed:
    """Take a text apart: any number of CREATE TABLE (…), then one SELECT; semicolons may stand between and after.

    Raises DefinitionError with line and column for a syntax error.
    """
    source = Source(text)
    tokens = _tokens(source)
    rest, declarations = tokens, []
    while rest and rest[0].text.upper() == "CREATE":
        end = _end_of_declaration(source, rest)
        declarations.append(rest[:end])
        rest = rest[end:]
        while rest and rest[0].token_type == TokenType.SEMICOLON:
            rest = rest[1:]
    while rest and rest[-1].token_type == TokenType.SEMICOLON:
        rest = rest[:-1]
    if not rest:
        raise source.refuse(len(text.rstrip()), "there is no query: write SELECT … INTO … FROM … GROUP BY …")
    if rest[0].text.upper() not in ("SELECT", "WITH"):
        raise source.refuse(rest[0], f"`{source.word(rest[0])}` is not supported: a query begins with SELECT")
    for token in rest:
        if token.token_type == TokenType.SEMICOLON:
            raise source.refuse(token, "a pipeline has one query, and this `;` ends it: leave out what follows")
    return Parsed(source, tokens, declarations, _select(source, rest))


def _tokens(source: Source) -> list[Token]:
    try:
        tokens = Asaql().tokenize(source.text)
    except TokenError:
        raise _unclosed(source) from None
    if tokens and tokens[0].token_type in Asaql.Tokenizer.COMMANDS:
        raise source.refuse(tokens[0], f"`{source.word(tokens[0])}` is not supported: a query begins with SELECT")
    end, before = 0, None
    for token in tokens:
        _only_blank(source, end, token.start)
        end = token.end + 1
        if source.text[token.start] == '"':
            raise source.refuse(token, "write text in single quotes, '…', and names in brackets, […]; not in \"…\"")
        if token.text in ("{", "}"):
            raise source.refuse(token, f"`{token.text}` is not supported")
        if before == TokenType.COMMA and token.token_type in _NEVER_AFTER_COMMA:
            raise source.refuse(token, f"syntax error near `{token.text}`: something is missing after a comma")
        before = token.token_type
        # The parser reads hints out of comments; here a comment is a comment.
        token.comments = []
    _only_blank(source, end, len(source.text))
    if before == TokenType.COMMA:
        raise source.refuse(tokens[-1], "something is missing after the last comma")
    return tokens


def _only_blank(source: Source, start: int, end: int) -> None:
    blank = _BLANK.match(source.text, start, end)
    if blank is None or blank.end() != end:
        where = blank.end() if blank else start
        raise source.refuse(where, "this comment is nested, not closed, or of no known kind: write -- … or /* … */")


def _unclosed(source: Source) -> DefinitionError:
    """Find what the tokenizer stumbled over: a text, name or comment that is never closed."""
    pieces = re.compile(r"'(?:[^']|'')*'|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
    rest = pieces.sub(lambda piece: " " * len(piece.group()), source.text)
    found = re.search(r"'|\[|/\*|\"", rest)
    if found is None:
        return source.refuse(0, "the query cannot be read: check its quotes, brackets and comments")
    return source.refuse(found.start(), f"`{found.group()}` is never closed")


def _end_of_declaration(source: Source, tokens: list[Token]) -> int:
    if [token.text.upper() for token in tokens[:2]] != ["CREATE", "TABLE"]:
        raise source.refuse(tokens[0], "of CREATE only CREATE TABLE input (field type, …) is supported")
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.SEMICOLON:
            break
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.R_PAREN:
            return index + 1
    raise source.refuse(tokens[0], "write CREATE TABLE input (field type, …), with its closing parenthesis")


def _select(source: Source, tokens: list[Token]) -> exp.Select:
    try:
        statements = Asaql.Parser(dialect=Asaql(), error_level=ErrorLevel.IMMEDIATE).parse(tokens, source.text)
    except ParseError as error:
        raise _syntax_error(source, tokens, error.errors[0]["start"]) from None
    root = statements[0]
    if isinstance(root, exp.SetOperation):
        raise source.refuse(tokens[0], f"{root.key.upper()} is not supported: a pipeline has one SELECT")
    if not isinstance(root, exp.Select):
        raise source.refuse(tokens[0], f"`{tokens[0].text}` is not supported: a query begins with SELECT")
    return root


def _syntax_error(source: Source, tokens: list[Token], start: int | None) -> DefinitionError:
    if start is None:
        return source.refuse(tokens[-1], f"the query ends too early, after `{source.word(tokens[-1])}`")
    word = source.word(start)
    return source.refuse(start, _NEAR.get(word.upper(), f"syntax error near `{word}`"))
