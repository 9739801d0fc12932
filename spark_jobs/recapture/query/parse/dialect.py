"""ASAQL as a sqlglot dialect: T-SQL with ASA's clauses, such as TIMESTAMP BY … [OVER …]."""

from collections.abc import Collection
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ParseError
from sqlglot.parsers.tsql import TSQLParser
from sqlglot.tokenizer_core import Token, TokenType

from recapture.query.parse.match_clauses import NAME as MATCH_RECOGNIZE
from recapture.query.parse.match_clauses import MatchParser

E = TypeVar("E", bound=exp.Expr)

NEGATED_PREDICATE = "negated_predicate"
"""Key in the `meta` of a Not that is part of a predicate, as in x NOT IN (1)."""


class Asaql(TSQL):
    """T-SQL with ASA's clauses.

    A table's `timestamp_by` is the expression after TIMESTAMP BY, its `over` the list after OVER, its `partition_by`
    the list after PARTITION BY, its `match` the clauses of MATCH_RECOGNIZE. A Window has the `duration` after LIMIT,
    and the condition after WHEN as `when`. A call of a function is always an Anonymous, even if T-SQL knows the
    function.
    """

    class Tokenizer(TSQL.Tokenizer):
        """T-SQL's tokenizer, with !> and !<."""

        KEYWORDS: ClassVar = {**TSQL.Tokenizer.KEYWORDS, "!>": TokenType.LTE, "!<": TokenType.GTE}

    class Parser(TSQLParser):
        """T-SQL's parser, with the clauses that ASA adds to a table."""

        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {name: TSQLParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
        FUNC_TOKENS: ClassVar = {*TSQLParser.FUNC_TOKENS, TokenType.SESSION}
        WINDOW_ALIAS_TOKENS: ClassVar = TSQLParser.WINDOW_ALIAS_TOKENS - {TokenType.LIMIT, TokenType.WHEN}
        _reads_time = False
        _limits: tuple[exp.Expr | None, exp.Expr | None] = (None, None)
        NO_PAREN_FUNCTIONS: ClassVar = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": TSQLParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}

        def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
            clauses = (("OVER",), ("TIMESTAMP", "BY"), (MATCH_RECOGNIZE,))
            begins_clause = any(self._match_text_seq(*clause, advance=False) for clause in clauses)
            if begins_clause or self._match(TokenType.PARTITION_BY, advance=False):
                return None
            return super()._parse_table_alias(alias_tokens)

        def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
            table = super()._parse_table(*args, **options)
            while table:
                if not table.args.get("timestamp_by") and self._match_text_seq("TIMESTAMP", "BY"):
                    table.set("timestamp_by", self._parse_time() or self.raise_error("a time is missing"))
                    if self._match_text_seq("OVER"):
                        table.set("over", self._parse_keys())
                elif not table.args.get("partition_by") and self._match(TokenType.PARTITION_BY):
                    table.set("partition_by", self._parse_keys())
                    if self._match(TokenType.INTO) and not self._match(TokenType.NUMBER):
                        self.raise_error("the number of partitions is missing")
                elif not table.args.get("match") and self._match_text_seq(MATCH_RECOGNIZE):
                    table.set("match", MatchParser(self).parse())
                else:
                    break
            return _without_parentheses(table) if isinstance(table, exp.Subquery) else table

        def _parse_keys(self) -> list[exp.Expr]:
            return self._parse_csv(self._parse_disjunction) or self.raise_error("a key is missing")

        def _parse_time(self) -> exp.Expr | None:
            """Return the expression after TIMESTAMP BY. The next OVER belongs to TIMESTAMP BY, not to a function."""
            self._reads_time = True
            try:
                return self._parse_disjunction()
            finally:
                self._reads_time = False

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
            if self._reads_time:
                return this
            window = super()._parse_window(this, alias)
            if isinstance(window, exp.Window) and window is not this:
                for name, part in zip(("duration", "when"), self._limits, strict=True):
                    window.set(name, part)
                self._limits = (None, None)
            return window

        def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
            """Return PARTITION BY and ORDER BY of an OVER, and keep its LIMIT DURATION and WHEN for `_parse_window`."""
            parts = super()._parse_partition_and_order()
            duration = self._parse_unary() if self._match(TokenType.LIMIT) else None
            when = self._parse_disjunction() if self._match(TokenType.WHEN) else None
            self._limits = (duration, when)
            return parts

        def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
            """Return the Not of a predicate, for LIKE too, and mark it: x NOT IN (y) is not NOT x IN (y) for NULL."""
            negated = self.expression(exp.Not(this=this))
            negated.meta[NEGATED_PREDICATE] = True
            return negated

        def expression(self, instance: E, token: Token | None = None, comments: list[str] | None = None) -> E:
            """Return a node with the place where it was read, for nodes without a position of their own."""
            node = super().expression(instance, token, comments)
            if self._prev:
                node.meta.setdefault("read_at", self._prev.start)
            return node

        def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
            """Raise ParseError with the offset of a token; None is the end of the text."""
            token = token or self._curr or None
            raise ParseError(message, [{"start": token.start if token else None}])


def _without_parentheses(table: exp.Subquery) -> exp.Expr:
    """Return a joined table without its parentheses, and any other table as it is.

    (a JOIN b ON …) => a JOIN b ON …
    """
    is_joined = isinstance(table.this, exp.Table) and not any(part for key, part in table.args.items() if key != "this")
    return table.this if is_joined else table
