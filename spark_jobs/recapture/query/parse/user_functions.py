"""The calls of user-defined functions in a script: udf.NAME(…)."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from recapture.model import JavaScriptFunction
from recapture.query.parse.asaql import Script
from recapture.query.parse.source import Source

USER_FUNCTION = "user_function"
"""Key in the `meta` of a call of a user-defined function: its declaration."""


def bind_functions(script: Script, declared: Sequence[JavaScriptFunction]) -> tuple[JavaScriptFunction, ...]:
    """Mark the calls of user-defined functions with their declarations, and return the functions that are called.

    SELECT udf.F(x) … => the function `f`, in the `meta` of its call

    Raise DefinitionError for a function that is not declared.
    """
    by_name = {function.name.lower(): function for function in declared}
    called: dict[JavaScriptFunction, None] = {}
    for query in [*(step.query for step in script.steps), *script.statements]:
        for node in query.find_all(exp.Dot):
            if _prefix(node) in ("udf", "uda"):
                function = _declaration(script.source, node, by_name)
                node.meta[USER_FUNCTION] = function
                called[function] = None
    return tuple(sorted(called, key=lambda function: function.name.lower()))


def _prefix(node: exp.Dot) -> str:
    """Return what is before the dot of a call, in lower case: UDF.f(x) => udf; empty for anything else."""
    is_call = isinstance(node.this, exp.Identifier | exp.Column) and isinstance(node.expression, exp.Anonymous)
    return str(node.this.name).lower() if is_call else ""


def _declaration(source: Source, node: exp.Dot, declared: Mapping[str, JavaScriptFunction]) -> JavaScriptFunction:
    name = str(node.expression.this)
    if _prefix(node) == "uda":
        raise source.error(
            node,
            f"uda.{name} is a user-defined aggregate, which is not supported: give the values of the window to a "
            "function, as in udf.f(Collect(x)), or aggregate the published table",
        )
    function = declared.get(name.lower())
    if function is None:
        raise source.error(
            node,
            f"udf.{name} is not declared: add it to functions in the pipeline file, with its script and output_type. "
            "If it is not JavaScript, write it as an expression, or compute it after the backfill",
        )
    return function
