"""The calls in a script that become Python functions: udf.NAME(…), uda.NAME(…), and ST_… of two shapes."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from recapture.model import JavaScriptFunction, ShapeComparison
from recapture.query.parse.asaql import Script
from recapture.query.parse.names import call_name
from recapture.query.parse.source import Source

USER_FUNCTION = "user_function"
"""Key in the `meta` of a call of a user-defined function: its declaration."""


def bind_functions(script: Script, declared: Sequence[JavaScriptFunction]) -> tuple[JavaScriptFunction, ...]:
    """Mark the calls of user-defined functions with their declarations, and return the functions that are called.

    SELECT udf.F(x) … => the function `f`, in the `meta` of its call

    Raise DefinitionError for a function that is not declared, or is of the other kind.
    """
    by_name = {function.name.lower(): function for function in declared}
    called: dict[JavaScriptFunction, None] = {}
    for node in (node for query in script.queries for node in query.find_all(exp.Dot)):
        if _prefix(node) in ("udf", "uda"):
            function = _declaration(script.source, node, by_name)
            node.meta[USER_FUNCTION] = function
            called[function] = None
    return tuple(sorted(called, key=lambda function: function.name.lower()))


def geography_functions(script: Script) -> tuple[ShapeComparison, ...]:
    """Return the geospatial functions that compare shapes and are called: SELECT st_within(a, b) … => (WITHIN,)"""
    called = {call_name(node) for query in script.queries for node in query.find_all(exp.Anonymous)}
    return tuple(function for function in ShapeComparison if function in called)


def _prefix(node: exp.Dot) -> str:
    """Return what is before the dot of a call, in lower case: UDF.f(x) => udf; empty for anything else."""
    is_call = isinstance(node.this, exp.Identifier | exp.Column) and isinstance(node.expression, exp.Anonymous)
    return str(node.this.name).lower() if is_call else ""


def is_user_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is a call of a user-defined aggregate: uda.NAME(…)."""
    return USER_FUNCTION in node.meta and node.meta[USER_FUNCTION].is_aggregate


def _declaration(source: Source, node: exp.Dot, declared: Mapping[str, JavaScriptFunction]) -> JavaScriptFunction:
    prefix, name = _prefix(node), str(node.expression.this)
    function = declared.get(name.lower())
    if function is None:
        advice = f"{prefix}.{name} is not declared: add it to functions in the pipeline file, with"
        if prefix == "uda":
            raise source.error(node, f"{advice} kind: aggregate, its script and output_type")
        otherwise = "If it is C# or a machine learning model, write it in JavaScript, or apply it to the table"
        raise source.error(node, f"{advice} its script and output_type. {otherwise}")
    if function.is_aggregate != (prefix == "uda"):
        kind = "an aggregate" if function.is_aggregate else "not an aggregate"
        raise source.error(node, f"{name} is {kind}: call {function.called_as}(…), or correct its kind in functions")
    return function
