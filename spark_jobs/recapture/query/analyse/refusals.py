"""The errors for expressions that are not supported."""

import difflib

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.query.functions import FUNCTIONS, UNSUPPORTED
from recapture.query.parse.names import call_name
from recapture.query.parse.source import Source
from recapture.query.parse.user_functions import USER_FUNCTION, is_user_aggregate
from recapture.query.parse.window_calls import is_window
from recapture.query.plan.aggregates import AGGREGATES

ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod
ONLY_COUNT_DISTINCT = (
    "DISTINCT is only for COUNT(DISTINCT x), as in ASA: to aggregate each value once, GROUP BY it in a step"
)
_OTHERS = (
    "docs/query-language.md lists the functions. If it is a machine learning function of the job, publish its "
    "arguments, and apply the model to the table"
)


def not_a_condition(source: Source, node: exp.Expr) -> DefinitionError:
    """Return the error for an expression that stands where a condition is expected."""
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return source.error(node, "a query inside a query is not supported: make it a step of WITH")
    if isinstance(node, exp.Anonymous) and call_name(node) not in {*FUNCTIONS, *AGGREGATES}:
        return unsupported(source, node)
    if isinstance(node, exp.Predicate | exp.Binary) and not isinstance(node, ARITHMETIC | exp.Dot):
        return _unsupported_node(source, node)
    return source.error(node, f"a condition is expected, such as x > 1, at `{source.word(node)}`")


def unsupported(source: Source, node: exp.Expr) -> DefinitionError:
    """Return the error for an expression that cannot be compiled: what it is, and what to write instead."""
    word = source.word(node)
    if isinstance(node, exp.Distinct):
        return source.error(node, ONLY_COUNT_DISTINCT)
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return source.error(node, "* is supported only as a column of SELECT, and in COUNT(*), LAG(*) and LAST(*)")
    if isinstance(node, exp.Window) and is_user_aggregate(node.this):
        name = node.this.meta[USER_FUNCTION].called_as
        return source.error(node, f"{name} takes no OVER: use the window of GROUP BY")
    if isinstance(node, exp.Window):
        name = call_name(node.this)
        return source.error(node, UNSUPPORTED.get(name) or f"{word}(…) OVER (…) is not supported")
    if isinstance(node, exp.Subquery | exp.Select):
        return source.error(node, "a query inside a query is not supported: make it a step of WITH")
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        return source.error(node, "a condition is not a value: write CASE WHEN … THEN 1 ELSE 0 END")
    if is_window(node):
        return source.error(node, f"{word} is supported only in GROUP BY")
    if isinstance(node, exp.Anonymous):
        name = call_name(node)
        if name in UNSUPPORTED:
            return source.error(node, UNSUPPORTED[name])
        near = difflib.get_close_matches(name, [*FUNCTIONS, *AGGREGATES], n=1)
        hint = f": did you mean {near[0]}?" if near else f": {_OTHERS}"
        return source.error(node, f"there is no function {word}{hint}")
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        name = f"{word}.{node.expression.name}"
        return source.error(node, f"there is no function {name}: a JavaScript function is called as udf.name(…)")
    return _unsupported_node(source, node)


def _unsupported_node(source: Source, node: exp.Expr) -> DefinitionError:
    word = source.word(node)
    if isinstance(node, exp.WithinGroup):
        advice = "put ORDER BY into OVER, such as PERCENTILE_CONT(0.95) OVER (ORDER BY x)"
        return source.error(node, f"WITHIN GROUP is not supported: {advice}")
    if isinstance(node, exp.DPipe):
        return source.error(
            node, "|| is not supported: concatenate strings with + or CONCAT, and combine conditions with OR"
        )
    return source.error(node, f"not supported in an expression: {type(node).__name__} near `{word}`")
