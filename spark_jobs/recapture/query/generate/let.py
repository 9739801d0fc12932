"""Spark SQL that uses a value more than once, and the error that a row's value raises."""

from collections.abc import Callable

from sqlglot import exp

from recapture.query.generate.select_items import SelectItem, struct
from recapture.query.generate.trees import BOUND, column, render, replaced, spark_call, string, template, user_calls

_SHORT = 120
"""SQL of up to this many characters is repeated: Spark computes equal expressions once. Longer SQL is bound to a name,
since calls within calls would grow without bound; that costs about a microsecond a row."""


def let(value: exp.Expr, name: str, use: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return what `use` makes of a value that is bound to a name; `name` is unique within one expression.

    f(`x`), "y", lambda y: y + y => transform(array(f(`x`)), `@@y` -> `@@y` + `@@y`)[0]
    """
    bound = column(BOUND + name)
    used = use(bound)
    # Spark allows no Python function in a lambda.
    calls = user_calls(used)
    if calls:
        calls = list(dict.fromkeys([*user_calls(value), *calls]))
        fields = [template(f"`{BOUND}calls`.c{index}") for index in range(len(calls))]
        all_calls = struct(SelectItem(f"c{index}", call) for index, call in enumerate(calls))
        inner = let(replaced(value, calls, fields), name, lambda _: replaced(used, calls, fields))
        return let(all_calls, "calls", lambda _: inner)
    return template("transform(array({value}), {bound} -> {used})[0]", value=value, bound=bound, used=used)


def once(value: exp.Expr, name: str, use: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return what `use` makes of a value that is computed once a row; `name` is unique within one expression.

    `x`, "y", lambda y: y + y => `x` + `x`    a long value is bound to the name, as `let` does
    """
    return use(value) if len(render(value)) <= _SHORT else let(value, name, use)


def once_in(sql: str, name: str, it: exp.Expr, **places: exp.Expr) -> exp.Expr:
    """Return a template in which {it} stands for a value that is computed once a row; see `once`."""
    return once(it, name, lambda once_a_row: template(sql, it=once_a_row, **places))


def failure(message: str) -> exp.Expr:
    """Return the call that stops the run with a message; it fits any type: no => raise_error('no')"""
    return spark_call("raise_error", string(message))
