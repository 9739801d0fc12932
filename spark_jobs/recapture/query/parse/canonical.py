"""The canonical text of a query, which digests cover."""

from sqlglot.tokenizer_core import Token, TokenType

from recapture.query.parse.source import Source


def canonical(source: Source, tokens: list[Token]) -> str:
    """Return the query in one spelling, whatever its comments, its white space and the case of its keywords.

    select a.X from input -- all => SELECT A.[X] FROM INPUT
    """
    words = []
    for token in tokens:
        written = source.text[token.start : token.end + 1]
        if token.start in source.case_sensitive:
            words.append("[" + token.text.replace("]", "]]") + "]")
        elif token.token_type == TokenType.STRING:
            words.append(written)
        elif token.token_type != TokenType.SEMICOLON:
            words.append(written.upper())
    return " ".join(words)
