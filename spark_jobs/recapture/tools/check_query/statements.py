"""The statements of a query, each by itself in a text of the same length, so that places stay the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from recapture.query.parse.asaql import MAYBE_STRING, Script, parse
from recapture.query.parse.names import call_name
from recapture.tools.asa_job import query_text


@dataclass(frozen=True)
class Statement:
    """A SELECT that writes to an output, with all steps and declarations of the query."""

    text: str
    """Query with blanks in place of the other statements."""
    outputs: tuple[str, ...]
    """Names after INTO."""


@dataclass(frozen=True)
class Names:
    """What a query reads and calls."""

    inputs: tuple[str, ...]
    """Names after FROM and JOIN that are no steps, as first written."""
    references: frozenset[str]
    """Those of them, in lower case, that are reference data: only JOINs without time bounds name them."""
    functions: tuple[str, ...]
    """Scalar JavaScript functions that are called."""
    aggregates: tuple[str, ...]
    """JavaScript aggregates that are called."""
    strings: frozenset[str]
    """Strings in double quotes, in lower case, of which no event may have a field."""


def together(script: Script) -> Statement:
    """Return all statements of a query as one."""
    text = script.source.text
    return Statement(text, tuple(query_text.outputs(text)))


def statements_of(script: Script) -> Iterator[Statement]:
    """Yield the statements of a query; if they cannot be told apart, all of them as one."""
    text = script.source.text
    starts = [_start(script, statement) for statement in script.statements]
    for start in starts:
        others = [(begin, _end(script, begin, starts)) for begin in starts if begin != start]
        alone = text
        for begin, end in others:
            alone = alone[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + alone[end:]
        if len(parse(alone).statements) != 1:
            yield together(script)
            return
        yield Statement(alone, tuple(query_text.outputs(alone)))


def names_of(script: Script) -> Names:
    """Return what a query reads and calls."""
    steps = {step.key for step in script.steps}
    tables = [table for query in script.queries for table in query.find_all(exp.Table) if table.name]
    inputs: dict[str, str] = {}
    timed: set[str] = set()
    for table in tables:
        key = table.name.lower()
        if key in steps or table.find_ancestor(exp.Into) is not None:
            continue
        inputs.setdefault(key, table.name)
        if not isinstance(table.parent, exp.Join) or table.args.get("timestamp_by") or _bounds_time(table.parent):
            timed.add(key)
    calls = [node for query in script.queries for node in query.find_all(exp.Dot)]
    called: dict[str, dict[str, str]] = {"udf": {}, "uda": {}}
    for node in calls:
        prefix = str(getattr(node.this, "name", "")).lower()
        if prefix in called and isinstance(node.expression, exp.Anonymous):
            name = str(node.expression.this)
            called[prefix].setdefault(name.lower(), name)
    return Names(
        tuple(inputs.values()),
        frozenset(inputs) - timed,
        tuple(called["udf"].values()),
        tuple(called["uda"].values()),
        _strings(script),
    )


def _strings(script: Script) -> frozenset[str]:
    """Return each "…" that is nowhere a name."""
    identifiers = [name for query in script.queries for name in query.find_all(exp.Identifier)]
    quoted = {name.name.lower() for name in identifiers if name.meta.get(MAYBE_STRING) is False}
    return frozenset(quoted - {name.name.lower() for name in identifiers if name.meta.get(MAYBE_STRING) is not False})


def _bounds_time(join: exp.Join) -> bool:
    """Return whether ON has DATEDIFF of two sides."""
    calls = join.find_all(exp.Anonymous)
    return any(
        call_name(call) == "DATEDIFF"
        and all(isinstance(side, exp.Column) and not side.table for side in call.expressions[1:])
        for call in calls
    )


def _start(script: Script, statement: exp.Query) -> int:
    """Return where a statement begins: at the last SELECT outside parentheses before its first name."""
    first, depth, start = script.source.offset(statement), 0, 0
    for token in script.tokens:
        if token.start > first:
            break
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text.upper() == "SELECT":
            start = token.start
    return start


def _end(script: Script, begin: int, starts: list[int]) -> int:
    """Return where the statement that begins at a place ends: before a semicolon or the next statement."""
    depth = 0
    for token in script.tokens:
        if token.start > begin:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            ends = token.text == ";" or token.start in starts or token.text.upper() in ("WITH", "CREATE")
            if depth == 0 and ends:
                return token.start
    return len(script.source.text)
