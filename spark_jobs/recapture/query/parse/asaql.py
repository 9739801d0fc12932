"""The split of a text into its statements, and the steps of WITH and of the queries in FROM."""

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from recapture.errors import DefinitionError
from recapture.query.parse.dialect import Asaql
from recapture.query.parse.match_clauses import NAME as MATCH_RECOGNIZE
from recapture.query.parse.names import identifier_at, identifiers
from recapture.query.parse.nesting import compiler_room, require_shallow
from recapture.query.parse.source import Source, require_only
from recapture.query.parse.tokens import depths, keyword, tokens_of

MAYBE_STRING = "maybe_string"
"""Key in the `meta` of a name in double quotes that may be a string: whether it is a whole column or key."""
_TAKE_COLUMNS = exp.Dot | exp.MatchRecognize | exp.Ordered | exp.Table | exp.Window
"""Clauses that take columns and no strings."""
_JOINING = ("UNION", "ALL", "EXCEPT", "INTERSECT", "DISTINCT")
_NEAR = {
    "OVER": "OVER belongs to TIMESTAMP BY, right after the input: FROM input TIMESTAMP BY time OVER key",
    "TIMESTAMP": "TIMESTAMP BY follows the input, once: FROM input TIMESTAMP BY time",
    "INTO": "INTO goes after the columns and before FROM: SELECT … INTO output FROM …",
    "LIMIT": "LIMIT DURATION goes into OVER, after PARTITION BY: LAG(x) OVER (PARTITION BY id LIMIT DURATION(hour, 1))",
}


@dataclass(frozen=True)
class Step:
    """One step of WITH, or a query in FROM, which is an unnamed step."""

    name: exp.Identifier
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
    tokens = tokens_of(source)
    declarations: list[list[Token]] = []
    steps: list[Step] = []
    statements: list[exp.Query] = []
    has_with = False
    rest = tokens
    while rest:
        first = keyword(source, rest[0])
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
        end = next((index for index, depth in enumerate(depths(rest[2:])) if depth == 0), None)
        if end is None:
            raise source.error(rest[2], f"this parenthesis is never closed: {form}")
        name, inside = rest[0], rest[3 : 2 + end]
        if not _begins_query(source, inside):
            raise source.error(inside[0] if inside else rest[2], f"a step is a SELECT in parentheses: {form}")
        query = _query(source, inside)
        steps += [*_lifted(source, query), Step(identifier_at(name.start, name.text), name.text.lower(), query)]
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
    name = _unnamed(source, table)
    clause.set("this", exp.Table(**{**table.args, "this": name}))
    return Step(table.args["alias"].this, name.name, table.this)


def _matched(source: Source, clause: exp.Expr) -> Step:
    """Return the matches that a FROM reads as a step, and let FROM name it."""
    table = clause.this
    match = table.args["match"]
    if not isinstance(clause, exp.From) or table.args.get("joins"):
        raise source.error(match, f"ASA does not document {MATCH_RECOGNIZE} next to a JOIN: put it into a step")
    table.set("match", None)
    name, alias = _unnamed(source, match), match.args["alias"]
    clause.set("this", exp.Table(this=name, alias=exp.TableAlias(this=alias)))
    select = exp.Select(expressions=[], from_=exp.From(this=table))
    select.set("match", match)
    return Step(alias, name.name, select)


def _unnamed(source: Source, node: exp.Expr) -> exp.Identifier:
    """Return the key of an unnamed step, as the name by which FROM finds it."""
    return identifier_at(source.offset(node), f"\0{source.offset(node)}")


def _begins_query(source: Source, tokens: list[Token]) -> bool:
    """Return whether tokens begin with SELECT, or with parentheses and then SELECT."""
    first = next((token for token in tokens if token.token_type != TokenType.L_PAREN), None)
    return first is not None and keyword(source, first) == "SELECT"


def _end_of_statement(source: Source, tokens: list[Token]) -> int:
    """Return the index where a statement ends: at a semicolon, or where the next one begins."""
    for index, (token, depth) in enumerate(zip(tokens, depths(tokens), strict=True)):
        if token.token_type == TokenType.SEMICOLON:
            return index
        word = keyword(source, token)
        joined = word == "SELECT" and keyword(source, tokens[index - 1]) in _JOINING
        if depth == 0 and index and word in ("SELECT", "WITH", "CREATE") and not joined:
            return index
    return len(tokens)


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
    if advice is not None:
        return source.error(tokens[-1] if start is None else start, advice)
    if start is None:
        return source.error(tokens[-1], f"the query ends too early, after `{source.word(tokens[-1])}`")
    word = source.word(start)
    return source.error(start, _NEAR.get(word.upper(), f"syntax error near `{word}`"))
