"""Trees: how they are written, and which are equal."""

from functools import reduce

import pytest
from sqlglot import exp

from recapture.query.generate.trees import (
    bigint,
    case_when,
    cast_as,
    column,
    double,
    operation,
    render,
    spark_call,
    string,
    template,
)

X, ONE = column("x"), bigint(1)


@pytest.mark.parametrize(
    ("tree", "sql"),
    [
        (column("odd ` name"), "`odd `` name`"),
        (column("ArrayValue", "@@e0"), "`@@e0`.`ArrayValue`"),
        (string("it's \\ {x}\n\t\x0b"), "'it\\'s \\\\ {x}\n\t\x0b'"),
        (double(1e300), "1e+300D"),
        (spark_call("coalesce", X, ONE), "coalesce(`x`, 1L)"),
        (cast_as(X, "DOUBLE"), "CAST(`x` AS DOUBLE)"),
        (cast_as(X, "DOUBLE", lenient=True), "try_cast(`x` AS DOUBLE)"),
        (operation(exp.Add, X, operation(exp.IntDiv, X, ONE)), "(`x` + (`x` DIV 1L))"),
        (operation(exp.NEQ, X, exp.Paren(this=exp.Neg(this=ONE))), "(`x` <> (-1L))"),
        (operation(exp.Or, exp.Not(this=X), operation(exp.Is, X, exp.Null())), "(NOT `x` OR (`x` IS NULL))"),
        (exp.Paren(this=exp.In(this=X, expressions=[ONE, ONE])), "(`x` IN (1L, 1L))"),
        (case_when([(X, ONE), (X, string(""))], exp.Null()), "(CASE WHEN `x` THEN 1L WHEN `x` THEN '' ELSE NULL END)"),
    ],
)
def test_a_node_is_written_as_spark_reads_it(tree: exp.Expr, sql: str) -> None:
    assert render(tree) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "substr({x}, 1)",
        "cast({x} as timestamp) + interval 1 day",
        "get_json_object({x}, '$.a')",
        "date_add({x}, 1)",
        "transform({x}, i -> i.v)[0]",
        "{x}   ==   {x} -- as it is",
    ],
)
def test_a_template_is_written_as_it_is(sql: str) -> None:
    assert render(template(sql, x=X)) == sql.replace("{x}", "`x`")


def test_a_template_takes_trees_in_its_places_and_its_own_braces_twice() -> None:
    inner = template("upper({text})", text=string("{text} {0}"))
    assert render(template("concat('{{', {text}, '}}', {text})", text=inner)) == (
        "concat('{', upper('{text} {0}'), '}', upper('{text} {0}'))"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (column("x"), column("X")),
        (column("x", "t"), column("x", "T")),
        (column("x"), column("x", "t")),
        (column("x"), string("x")),
        (string("a"), string("A")),
        (string("a"), string("a ")),
        (string("1L"), bigint(1)),
        (bigint(1), double(1)),
        (template("`x`.a"), template("`x`.A")),
        (template("f({x})", x=string("a")), template("f({x})", x=string("A"))),
        (spark_call("get_json_object", X, string("$.a")), spark_call("get_json_object", X, string("$.A"))),
        (spark_call("coalesce", X, ONE), spark_call("coalesce", ONE, X)),
        (operation(exp.Sub, X, ONE), operation(exp.Sub, ONE, X)),
        (operation(exp.GT, X, ONE), operation(exp.GTE, X, ONE)),
        (exp.true(), exp.false()),
        (cast_as(X, "DOUBLE"), cast_as(X, "DOUBLE", lenient=True)),
        (case_when([(X, string("a"))], X), case_when([(X, string("A"))], X)),
    ],
)
def test_trees_that_mean_something_else_differ(one: exp.Expr, other: exp.Expr) -> None:
    assert one != other
    assert one == one.copy()
    assert operation(exp.EQ, one, X) != operation(exp.EQ, other, X)


def test_trees_share_parts() -> None:
    shared = operation(exp.Add, X, ONE)
    both = operation(exp.Mul, shared, shared)
    negative = exp.Neg(this=shared)
    assert render(both) == "((`x` + 1L) * (`x` + 1L))"
    assert render(negative) == "-(`x` + 1L)"
    assert both == operation(exp.Mul, shared.copy(), shared.copy())


def test_a_long_chain_of_operators_is_written() -> None:
    links = [bigint(number) for number in range(5_000)]
    first: exp.Expr = X
    chain = render(reduce(lambda chained, link: operation(exp.Add, chained, link), links, first))
    assert chain.startswith("(" * 5_000 + "`x` + 0L) + 1L)")
    assert chain.endswith(" + 4999L)")
