"""The tokens of a query. What sqlglot would misread or ignore is refused."""

import re
from collections.abc import Iterator
from itertools import accumulate

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from recapture.errors import DefinitionError
from recapture.query.parse.dialect import Asaql
from recapture.query.parse.hidden_characters import with_blanks
from recapture.query.parse.match_clauses import starts_in_patterns
from recapture.query.parse.source import QUOTED, Source

_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*(?:(?!/\*|\*/).)*\*/)*", re.DOTALL)
_REFUSED = {
    "NULLS": "NULL is the smallest in every ORDER BY: leave out NULLS FIRST, NULLS LAST; a column is written [nulls]",
}
_TYPOGRAPHIC = frozenset("\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}“”")
_AFTER_SELECT_LIST = (TokenType.INTO, TokenType.FROM)
_CLAUSES = (TokenType.GROUP_BY, TokenType.HAVING, TokenType.WHERE)
_NEVER_AFTER_COMMA = {TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON, *_CLAUSES}
_BEFORE_NAMES = (TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN, TokenType.WITH)
"""Tokens after which FROM and INTO are names themselves."""
_NO_NAMES = re.compile(
    "ALTER|AND|AS|BEGIN|BETWEEN|CREATE|CROSS|DISTINCT|DROP|ELSE|EXCEPT|FETCH|FOR|FROM|GRANT|HAVING|INNER|INSERT"
    "|INTERSECT|INTO|JOIN|LIKE|NOT|ON|OPTION|OR|OUTER|REVOKE|ROLLBACK|SELECT|TABLE|TABLESAMPLE|THEN|UNION|VALUES"
    "|WHEN|WHERE|WITH"
)
"""Words that T-SQL reserves and the parser cannot take as names."""


def tokens_of(source: Source) -> list[Token]:
    """Return the tokens of a query. Raise DefinitionError for signs and words that are not supported."""
    text = with_blanks(source)
    try:
        tokens = Asaql().tokenize(text)
    except TokenError:
        raise _unclosed(source) from None
    if tokens and tokens[0].token_type in Asaql.Tokenizer.COMMANDS:
        raise source.error(tokens[0], f"`{source.word(tokens[0])}` is not supported: a query begins with SELECT")
    end, before, earlier = 0, None, None
    read: list[Token] = []
    quantifiers = set(starts_in_patterns(tokens))
    for token in tokens:
        _only_blank(source, text, end, token.start)
        end = token.end + 1
        word = keyword(source, token)
        if word in _REFUSED and before != TokenType.DOT:
            raise source.error(token, _REFUSED[word])
        if not _TYPOGRAPHIC.isdisjoint(word):
            raise source.error(token, "these are typographic quotation marks: write strings in single quotes, '…'")
        if word == "!":
            raise source.error(token, "`!` is not supported here: write NOT before a condition")
        if word in ("{", "}") and token.start not in quantifiers:
            raise source.error(token, f"`{token.text}` is not supported")
        if before == TokenType.COMMA and token.token_type in _NEVER_AFTER_COMMA:
            raise source.error(token, f"syntax error near `{token.text}`: something is missing after a comma")
        if word == "-" and earlier in _AFTER_SELECT_LIST:
            raise source.error(token, "a name with - in it goes in brackets, such as [in-orders]")
        if before == TokenType.COMMA and token.token_type in _AFTER_SELECT_LIST:
            read.pop()  # ASA ignores the comma.
            before = earlier
        is_clause = before in _AFTER_SELECT_LIST and earlier not in _BEFORE_NAMES
        if is_clause and word.isidentifier():
            _read_as_name(source, token, word)
        earlier, before = before, token.token_type
        if token.token_type == TokenType.NATIONAL_STRING:
            token.token_type = TokenType.STRING
        # The parser would read hints out of comments.
        token.comments = []
        read.append(token)
    _only_blank(source, text, end, len(text))
    if before == TokenType.COMMA:
        raise source.error(tokens[-1], "something is missing after the last comma")
    return read


def keyword(source: Source, token: Token) -> str:
    """Return a token's word in capitals; empty for a string or a name in quotes and a name in brackets."""
    return "" if source.text[token.start] in "'[\"" else token.text.upper()


def depths(tokens: list[Token]) -> Iterator[int]:
    """Yield the number of open parentheses after each token."""
    steps = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
    return accumulate(steps.get(token.token_type, 0) for token in tokens)


def _read_as_name(source: Source, token: Token, word: str) -> None:
    """Let the parser read a word as a name although it is a keyword of other dialects, such as ROWS.

    Raise DefinitionError for a word that T-SQL reserves.
    """
    if _NO_NAMES.fullmatch(word):
        message = f"a name is expected here, not the keyword {word}: for this name write [{token.text}], in brackets"
        raise source.error(token, message)
    if token.token_type != TokenType.VAR:
        token.token_type = TokenType.IDENTIFIER


def _only_blank(source: Source, text: str, start: int, end: int) -> None:
    blank = _BLANK.match(text, start, end)
    if blank is None or blank.end() != end:
        where = blank.end() if blank else start
        raise source.error(where, "this comment is nested, not closed, or of no known kind: write -- … or /* … */")


def _unclosed(source: Source) -> DefinitionError:
    """Return the error for a string, a name or a comment that is never closed."""
    rest = QUOTED.sub(lambda piece: " " * len(piece.group()), source.text)
    opening = re.search(r"'|\[|/\*|\"", rest)
    if opening is None:
        return source.error(0, "the query cannot be read: check its quotes, brackets and comments")
    return source.error(opening.start(), f"`{opening.group()}` is never closed")
