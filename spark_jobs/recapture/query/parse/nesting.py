"""How deeply the expressions of a query may be nested."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from recapture.process.recursion import room_for
from recapture.query.parse.source import Source

MOST_LEVELS = 500
"""Largest number of operators, calls and parentheses within each other; a chain of AND or of OR is one operator.

In a + b + c, one operator is in the other.
"""
_FRAMES = 20_000
"""Room for the compiler at that depth, in calls of functions within each other."""
_ADVICE = "compute a part of it in a step of its own, in WITH"


@contextmanager
def compiler_room(source: Source) -> Iterator[None]:
    """Give the compiler room for the deepest query. Raise DefinitionError for one that is still too deep."""
    try:
        with room_for(_FRAMES):
            yield
    except RecursionError:
        raise source.error(0, f"the query is nested too deeply: {_ADVICE}") from None


def require_shallow(source: Source, root: exp.Expr) -> None:
    """Raise DefinitionError, which shows the place, if a part of a query is nested more than MOST_LEVELS deep."""
    todo = [(root, 1)]
    while todo:
        node, level = todo.pop()
        if level > MOST_LEVELS:
            message = f"this is nested too deeply, as {MOST_LEVELS} levels are supported: {_ADVICE}"
            raise source.error(node, message)
        for part in node.iter_expressions():
            # A chain of AND or OR is one condition, however long it is.
            is_chain = isinstance(node, exp.Connector) and type(part) is type(node)
            todo.append((part, level + (not is_chain)))
