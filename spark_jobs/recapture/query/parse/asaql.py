"""ASAQL as a sqlglot dialect: T-SQL with TIMESTAMP BY … [OVER …], and the split of a text into its statements."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.tsql import TSQLParser
from sqlglot.tokenizer_core import Token, TokenType

from recapture.errors import DefinitionError
from recapture.query.parse.hidden_characters import with_blanks
from recapture.query.parse.match_clauses import NAME as MATCH_RECOGNIZE
from recapture.query.parse.match_clauses import MatchParser, starts_in_patterns
from recapture.query.parse.names import identifiers
from recapture.query.parse.nesting import compiler_room, require_shallow
from recapture.query.parse.source import QUOTED, Source, require_only

E = TypeVar("E", bound=exp.Expr)

NEGATED_PREDICATE = "negated_predicate"
"""Key in the `meta` of a Not that is part of a predicate, as in x NOT IN (1)."""
MAYBE_STRING = "maybe_string"
"""Key in the `meta` of a name in double quotes that may be a string: whether it is a whole column or key."""
_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*(?:(?!/\*|\*/).)*\*/)*", re.DOTALL)
_REFUSED = {
    "NULLS": "NULL is the smallest in every ORDER BY: leave out NULLS FIRST, NULLS LAST; a column is written [nulls]",
}
_TAKE_COLUMNS = exp.Dot | exp.MatchRecognize | exp.Ordered | exp.Table | exp.Window
"""Clauses that take columns and no strings."""
_TYPOGRAPHIC = frozenset("\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}“”")
_JOINING = ("UNION", "ALL", "EXCEPT", "INTERSECT", "DISTINCT")
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
_NEAR = {
    "OVER": "OVER belongs to TIMESTAMP BY, right after the input: FROM input TIMESTAMP BY time OVER key",
    "TIMESTAMP": "TIMESTAMP BY follows the input, once: FROM input TIMESTAMP BY time",
    "INTO": "INTO goes after the columns and before FROM: SELECT … INTO output FROM …",
    "LIMIT": "LIMIT DURATION goes into OVER, after PARTITION BY: LAG(x) OVER (PARTITION BY id LIMIT DURATION(hour, 1))",
}


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
            negated = this and self.expression(exp.Not(this=this))
            if negated:
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


@dataclass(frozen=True)
class Step:
    """One step of WITH, or a query in FROM, which is an unnamed step."""

    name: Token | exp.Identifier
    """Name in WITH; for a query in FROM the name after AS."""
    key: str
    """Name in lower case, by which FROM finds the step; for a query in FROM a key that no name can be."""
    query: exp.Query
    """Its query. A MATCH_RECOGNIZE in FROM is the `match` of a SELECT without columns, which reads its rows."""


@dataclass(frozen=True)
class Script:
    """The statements of a text."""

    source: Source
    tokens: list[Token]
    declarations: list[list[Token]]
    """Tokens of each CREATE TABLE."""
    steps: list[Step]
    statements: list[exp.Query]
    """Each SELECT, or UNION of several, that writes to an output."""

    @property
    def canonical(self) -> str:
        """Text in one spelling, whatever its comments, its white space and the case of its keywords; for digests.

        select a.X from input -- all => SELECT A.[X] FROM INPUT
        """
        words = []
        for token in self.tokens:
            written = self.source.text[token.start : token.end + 1]
            if token.start in self.source.case_sensitive:
                words.append("[" + token.text.replace("]", "]]") + "]")
            elif token.token_type != TokenType.SEMICOLON:
                words.append(written if token.token_type == TokenType.STRING else written.upper())
        return " ".join(words)

    @property
    def queries(self) -> list[exp.Query]:
        """Queries of all steps and statements, in the order of the text."""
        return [*(step.query for step in self.steps), *self.statements]


def parse(text: str) -> Script:
    """Return the statements of a text: CREATE TABLE (…), WITH step AS (…), …, and SELECTs, with or without semicolons.

    WITH a AS (SELECT …) SELECT x INTO b FROM a; SELECT … => Script(steps=[a], statements=[SELECT x …, SELECT …])

    Raise DefinitionError with line and column for a syntax error.
    """
    source = Source(text)
    with compiler_room(source):
        return _script(source)


def _script(source: Source) -> Script:
    tokens = _tokens(source)
    declarations: list[list[Token]] = []
    steps: list[Step] = []
    statements: list[exp.Query] = []
    has_with = False
    rest = tokens
    while rest:
        first = _keyword(source, rest[0])
        if rest[0].token_type == TokenType.SEMICOLON:
            rest = rest[1:]
        elif first == "CREATE":
            end = _end_of_declaration(source, rest)
            declarations.append(rest[:end])
            rest = rest[end:]
        elif first == "WITH":
            if has_with:
                message = "a second WITH is not supported: write all steps in one, with commas between them"
                raise source.error(rest[0], message)
            has_with = True
            named, rest = _steps(source, rest)
            steps += named
        elif _begins_query(source, rest):
            end = _end_of_statement(source, rest)
            statements.append(_query(source, rest[:end]))
            steps += _lifted(source, statements[-1])
            rest = rest[end:]
        else:
            raise source.error(rest[0], f"`{source.word(rest[0])}` is not supported: a query begins with SELECT")
    if not statements:
        raise source.error(len(source.text.rstrip()), "there is no query: write SELECT … INTO … FROM … GROUP BY …")
    return Script(source, tokens, declarations, steps, statements)


def selects_of(source: Source, query: exp.Expr) -> list[exp.Select]:
    """Return the SELECTs of a UNION, left to right, or the one SELECT.

    Raise DefinitionError for EXCEPT, INTERSECT and whatever else is not supported.
    """
    if isinstance(query, exp.Union):
        require_only(source, query, "this", "expression", "distinct")
        return [*selects_of(source, query.this), *selects_of(source, query.expression)]
    if isinstance(query, exp.Subquery):
        require_only(source, query, "this")
        return selects_of(source, query.this)
    if not isinstance(query, exp.Select):
        instead = {"except": "LEFT JOIN and WHERE … IS NULL", "intersect": "JOIN"}.get(query.key, "SELECT and UNION")
        raise source.error(query, f"{query.key.upper()} is not supported: use {instead}")
    return [query]


def _steps(source: Source, tokens: list[Token]) -> tuple[list[Step], list[Token]]:
    """Return the steps of a WITH, and the tokens after it."""
    form = "write WITH step AS (SELECT …), another AS (SELECT …) SELECT …"
    steps: list[Step] = []
    rest = tokens[1:]
    while True:
        if len(rest) < 4 or rest[1].token_type != TokenType.ALIAS or rest[2].token_type != TokenType.L_PAREN:
            raise source.error(rest[0] if rest else len(source.text.rstrip()), f"a step is missing here: {form}")
        end = _closing(rest[2:])
        if end is None:
            raise source.error(rest[2], f"this parenthesis is never closed: {form}")
        name, inside = rest[0], rest[3 : 2 + end]
        if not _begins_query(source, inside):
            raise source.error(inside[0] if inside else rest[2], f"a step is a SELECT in parentheses: {form}")
        query = _query(source, inside)
        steps += [*_lifted(source, query), Step(name, name.text.lower(), query)]
        rest = rest[3 + end :]
        if not rest or rest[0].token_type != TokenType.COMMA:
            return steps, rest
        rest = rest[1:]


def _lifted(source: Source, query: exp.Query) -> list[Step]:
    """Return the queries in the FROMs and JOINs of a query as steps, inner ones first, and let these name the steps.

    SELECT id FROM (SELECT id FROM input) AS s => Step(s, SELECT id FROM input), and SELECT id FROM <its key> AS s
    SELECT id FROM input MATCH_RECOGNIZE (…) AS m => Step(m, SELECT FROM input, with its match), and SELECT id FROM …
    """
    steps: list[Step] = []
    for clause in reversed([*query.find_all(exp.From, exp.Join)]):
        matched = _matched(source, clause) if clause.this.args.get("match") else None
        inner = _inner_query(source, clause if matched is None else matched.query.args["from_"])
        steps += [step for step in (inner, matched) if step is not None]
    return steps


def _inner_query(source: Source, clause: exp.Expr) -> Step | None:
    """Return the query in a FROM or JOIN as a step, and let the clause name it; None if it names a table."""
    table = clause.this
    if not isinstance(table, exp.Subquery) or not isinstance(table.unnest(), exp.Select | exp.SetOperation):
        return None
    if not table.alias:
        word = "FROM" if isinstance(clause, exp.From) else "JOIN"
        raise source.error(table, f"name the query in {word}: write {word} (SELECT …) AS name")
    key = f"\0{source.offset(table)}"
    name = exp.Identifier(this=key, quoted=True)
    name.meta["start"] = source.offset(table)
    clause.set("this", exp.Table(**{**table.args, "this": name}))
    return Step(table.args["alias"].this, key, table.this)


def _matched(source: Source, clause: exp.Expr) -> Step:
    """Return the matches that a FROM reads as a step, and let FROM name it."""
    table = clause.this
    match = table.args["match"]
    if not isinstance(clause, exp.From) or table.args.get("joins"):
        raise source.error(match, f"ASA does not document {MATCH_RECOGNIZE} next to a JOIN: put it into a step")
    table.set("match", None)
    key = f"\0{source.offset(match)}"
    name = exp.Identifier(this=key, quoted=True)
    name.meta["start"] = source.offset(match)
    alias = match.args["alias"]
    clause.set("this", exp.Table(this=name, alias=exp.TableAlias(this=alias)))
    select = exp.Select(expressions=[], from_=exp.From(this=table))
    select.set("match", match)
    return Step(alias, key, select)


def _begins_query(source: Source, tokens: list[Token]) -> bool:
    """Return whether tokens begin with SELECT, or with parentheses and then SELECT."""
    first = next((token for token in tokens if token.token_type != TokenType.L_PAREN), None)
    return first is not None and _keyword(source, first) == "SELECT"


def depths(tokens: list[Token]) -> Iterator[int]:
    """Yield the number of open parentheses after each token."""
    steps = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
    return accumulate(steps.get(token.token_type, 0) for token in tokens)


def _closing(tokens: list[Token]) -> int | None:
    """Return the index where the parenthesis that the tokens begin with is closed; None if it never is."""
    return next((index for index, depth in enumerate(depths(tokens)) if depth == 0), None)


def _keyword(source: Source, token: Token) -> str:
    """Return a token's word in capitals; empty for a string or a name in quotes and a name in brackets."""
    return "" if source.text[token.start] in "'[\"" else token.text.upper()


def _end_of_statement(source: Source, tokens: list[Token]) -> int:
    """Return the index where a statement ends: at a semicolon, or where the next one begins."""
    for index, (token, depth) in enumerate(zip(tokens, depths(tokens), strict=True)):
        if token.token_type == TokenType.SEMICOLON:
            return index
        word = _keyword(source, token)
        joined = word == "SELECT" and _keyword(source, tokens[index - 1]) in _JOINING
        if depth == 0 and index and word in ("SELECT", "WITH", "CREATE") and not joined:
            return index
    return len(tokens)


def _tokens(source: Source) -> list[Token]:
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
        word = _keyword(source, token)
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


def _end_of_declaration(source: Source, tokens: list[Token]) -> int:
    if [token.text.upper() for token in tokens[:2]] != ["CREATE", "TABLE"]:
        raise source.error(tokens[0], "the only CREATE that is supported is CREATE TABLE input (field type, …)")
    for index, (token, depth) in enumerate(zip(tokens, depths(tokens), strict=True)):
        if token.token_type == TokenType.SEMICOLON:
            break
        if depth == 0 and token.token_type == TokenType.R_PAREN:
            return index + 1
    raise source.error(tokens[0], "write CREATE TABLE input (field type, …), with its closing parenthesis")


def _query(source: Source, tokens: list[Token]) -> exp.Query:
    try:
        statements = Asaql.Parser(dialect=Asaql(), error_level=ErrorLevel.IMMEDIATE).parse(tokens, source.text)
    except ParseError as error:
        first = error.errors[0]
        raise _syntax_error(source, tokens, first["start"], first.get("advice")) from None
    root = statements[0]
    if not isinstance(root, exp.Select | exp.SetOperation | exp.Subquery):
        raise source.error(tokens[0], f"`{tokens[0].text}` is not supported: a query begins with SELECT")
    require_shallow(source, root)
    _mark_strings(source, root)
    return root


def _mark_strings(source: Source, root: exp.Query) -> None:
    """Mark each "…" that may be a string: "a b" and x = "a b", but not t."a b" and PARTITION BY "a b"."""
    for name in root.find_all(exp.Identifier):
        start, column = name.meta.get("start"), name.parent
        if start is None or source.text[start] != '"' or not isinstance(column, exp.Column):
            continue
        if len(identifiers(column) or []) == 1 and not isinstance(column.parent, _TAKE_COLUMNS):
            name.meta[MAYBE_STRING] = isinstance(column.parent, exp.Select | exp.Alias | exp.Group)


def _syntax_error(source: Source, tokens: list[Token], start: int | None, advice: str | None) -> DefinitionError:
    if start is None:
        return source.error(tokens[-1], f"the query ends too early, after `{source.word(tokens[-1])}`")
    if advice is not None:
        return source.error(start, advice)
    word = source.word(start)
    return source.error(start, _NEAR.get(word.upper(), f"syntax error near `{word}`"))
