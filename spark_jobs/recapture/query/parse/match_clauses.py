"""MATCH_RECOGNIZE: the parser of its clauses, in the order of the page "MATCH_RECOGNIZE (Azure Stream Analytics)"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.tsql import TSQLParser
from sqlglot.tokenizer_core import Token, TokenType

from recapture.query.plan.row_patterns import Choice, Concatenation, Repeated, RowPattern, Variable

NAME = "MATCH_RECOGNIZE"
PATTERN = "pattern"
"""Key in the `meta` of a MatchRecognize: its RowPattern, whose variables have their names in lower case."""
ANY = "."
"""Variable that stands for any row."""
_SIGNS = {TokenType.STAR: (0, None), TokenType.PLUS: (1, None), TokenType.PLACEHOLDER: (0, 1)}
_SKIP = "ASA has only AFTER MATCH SKIP TO NEXT ROW: write it before PATTERN"
_FORM = "write PATTERN (A B+), with the names of DEFINE, the quantifiers * + ? {n} {n,} {n,m}, | and parentheses"


def starts_in_patterns(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where the tokens between the parentheses of each PATTERN (…) begin."""
    depth, before = 0, ""
    for token in tokens:
        if token.token_type == TokenType.L_PAREN and (depth or before == "PATTERN"):
            depth += 1
        elif token.token_type == TokenType.R_PAREN and depth:
            depth -= 1
        elif depth:
            yield token.start
        before = token.text.upper()


@dataclass(frozen=True)
class MatchParser:
    """Parses the clauses between the parentheses of MATCH_RECOGNIZE.

    The MatchRecognize has the keys of PARTITION BY as `partition_by`, the call after LIMIT as `duration`, `measures`
    and `define` as lists of Alias, the names of the pattern as `names`, and the `alias` after it.
    """

    parser: TSQLParser

    def parse(self) -> exp.MatchRecognize:
        """Return the clauses. Raise ParseError, with an `advice` if something is missing."""
        parser, start = self.parser, self.parser._prev
        self._require(f"a parenthesis is missing after {NAME}", "(")
        duration, partition_by = None, None
        while True:
            if duration is None and parser._match(TokenType.LIMIT):
                duration = parser._parse_unary()
            elif partition_by is None and parser._match(TokenType.PARTITION_BY):
                partition_by = parser._parse_csv(parser._parse_disjunction)
            else:
                break
        if duration is None:
            self._refuse(f"LIMIT DURATION is missing: {NAME} begins with LIMIT DURATION(minute, 1)")
        self._require(
            "MEASURES is missing: write it after LIMIT DURATION, and after PARTITION BY if there is one", "MEASURES"
        )
        measures = parser._parse_csv(lambda: self._named(parser._parse_disjunction()))
        self._require(_SKIP, "AFTER", "MATCH", "SKIP", "TO", "NEXT", "ROW")
        self._require(_FORM, "PATTERN")
        self._require(_FORM, "(")
        names: list[exp.Identifier] = []
        pattern = self._choice(names)
        self._require(_FORM, ")")
        self._require("DEFINE is missing: it goes after PATTERN (…)", "DEFINE")
        define = parser._parse_csv(self._definition)
        self._require(f"`)` is missing after the last condition of DEFINE of {NAME}", ")")
        if not parser._match(TokenType.ALIAS):
            self._refuse(f"a name is missing after {NAME} (…): write AS and a name, such as AS m")
        node = exp.MatchRecognize(
            partition_by=partition_by,
            duration=duration,
            measures=measures,
            names=names,
            define=define,
            alias=self._name(),
        )
        node.meta.update({PATTERN: pattern, "start": start.start})
        return node

    def _named(self, value: exp.Expr | None) -> exp.Alias:
        """Return an expression with the name after AS."""
        if value is None or not self.parser._match(TokenType.ALIAS):
            self._refuse("a measure needs a name: write Last(A.x) AS x")
        return self.parser.expression(exp.Alias(this=value, alias=self._name()))

    def _definition(self) -> exp.Alias:
        """Return a condition under the name of its variable: A AS A.x > 1."""
        form = "DEFINE takes a variable and its condition: A AS A.x > 1"
        name = self._name()
        condition = self.parser._parse_disjunction() if self.parser._match(TokenType.ALIAS) else None
        if condition is None:
            self._refuse(form)
        return self.parser.expression(exp.Alias(this=condition, alias=name))

    def _name(self) -> exp.Identifier:
        name = self.parser._parse_id_var(any_token=True)
        if not isinstance(name, exp.Identifier):
            self._refuse("a name is missing here: write one in letters, digits and `_`, or in brackets")
        return name

    def _choice(self, names: list[exp.Identifier]) -> RowPattern:
        """Return a pattern: A+ (B | C)."""
        parts = [self._sequence(names)]
        while self.parser._match(TokenType.PIPE):
            parts.append(self._sequence(names))
        return Choice(tuple(parts))

    def _sequence(self, names: list[exp.Identifier]) -> RowPattern:
        parts: list[RowPattern] = []
        while not self.parser._curr or self.parser._curr.token_type not in (TokenType.PIPE, TokenType.R_PAREN):
            parts.append(self._repeated(self._atom(names)))
        if not parts:
            self._refuse(_FORM)
        return Concatenation(tuple(parts))

    def _atom(self, names: list[exp.Identifier]) -> RowPattern:
        parser = self.parser
        if parser._match(TokenType.L_PAREN):
            inner = self._choice(names)
            self._require(_FORM, ")")
            return inner
        if parser._match(TokenType.DOT):
            return Variable(ANY)
        if not parser._curr or not (parser._curr.token_type == TokenType.IDENTIFIER or _is_word(parser._curr)):
            self._refuse(_FORM)
        names.append(self._name())
        return Variable(names[-1].name.lower())

    def _repeated(self, part: RowPattern) -> RowPattern:
        """Return a part with the quantifier after it."""
        parser = self.parser
        limits: tuple[int, int | None] | None = None
        if parser._curr and parser._curr.token_type in _SIGNS:
            limits = _SIGNS[parser._curr.token_type]
            parser._advance()
        elif parser._match(TokenType.L_BRACE):
            limits = self._braces()
        if limits is None:
            return part
        if parser._curr and parser._curr.token_type in (*_SIGNS, TokenType.L_BRACE):
            self._refuse("ASA does not document a quantifier after a quantifier: write (A+)? instead of A+?")
        least, most = limits
        if most is not None and (most < least or most == 0):
            self._refuse("a quantifier {n,m} needs 0 <= n <= m and 1 <= m")
        return Repeated(part, least, most)

    def _braces(self) -> tuple[int, int | None]:
        """Return the limits of {n}, {n,} or {n,m}."""
        least = self._number()
        most: int | None = least
        if self.parser._match(TokenType.COMMA):
            is_open = self.parser._curr and self.parser._curr.token_type == TokenType.R_BRACE
            most = None if is_open else self._number()
        self._require(_FORM, "}")
        return least, most

    def _number(self) -> int:
        token = self.parser._curr
        if not token or token.token_type != TokenType.NUMBER or not token.text.isdecimal():
            self._refuse(_FORM)
        self.parser._advance()
        return int(token.text)

    def _require(self, advice: str, *words: str) -> None:
        if not self.parser._match_text_seq(*words):
            self._refuse(advice)

    def _refuse(self, advice: str) -> NoReturn:
        """Raise ParseError at the next token, with a message for the user."""
        token: Token | None = self.parser._curr or None
        raise ParseError(advice, [{"start": token.start if token else None, "advice": advice}])


def _is_word(token: Token) -> bool:
    return token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
