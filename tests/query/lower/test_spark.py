"""How expressions are written in Spark SQL."""

from functools import reduce

import pytest

from recapture.model import AsaType
from recapture.query.lower.spark import _SPARK, render
from recapture.query.plan.expressions import (
    NULL,
    Expr,
    bigint,
    call,
    case_when,
    cast_as,
    column,
    double,
    failure,
    string,
    struct,
    user_call,
)
from recapture.query.plan.operations import Op

X, ONE = column("x"), bigint(1)
LONG = Expr(Op.CONCAT, [column("a" * 50), column("b" * 50), column("c" * 50)])
SCRIPT = user_call("udf_f", [X])
SCRIPT_OR_ERROR = (
    "transform(array(`udf_f`(`x`)), `@@result` -> CASE WHEN `@@result`.error IS NOT NULL"
    " THEN raise_error(`@@result`.error) ELSE `@@result`.value END)[0]"
)


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (column("odd ` name"), "`odd `` name`"),
        (column("ArrayValue", "@@e0"), "`@@e0`.`ArrayValue`"),
        (string("it's \\ {x}\n\t\x0b"), "'it\\'s \\\\ {x}\n\t\x0b'"),
        (double(1e300), "1e+300D"),
        (bigint(-(2**63)), "(-9223372036854775807L - 1L)"),
        (call(Op.COALESCE, X, ONE), "coalesce(`x`, 1L)"),
        (cast_as(X, AsaType.FLOAT), "CAST(`x` AS DOUBLE)"),
        (cast_as(X, AsaType.FLOAT, lenient=True), "try_cast(`x` AS DOUBLE)"),
        (call(Op.ADD, X, call(Op.INTEGER_DIVIDE, X, ONE)), "(`x` + (`x` DIV 1L))"),
        (call(Op.NOT_EQUAL, X, call(Op.NEGATE, ONE)), "(`x` <> (-1L))"),
        (call(Op.OR, call(Op.NOT, X), call(Op.IS_NULL, X)), "((NOT `x`) OR (`x` IS NULL))"),
        (call(Op.IN, X, ONE, ONE), "(`x` IN (1L, 1L))"),
        (case_when([(X, ONE), (X, string(""))], NULL), "(CASE WHEN `x` THEN 1L WHEN `x` THEN '' ELSE NULL END)"),
        (struct([("it's", ONE), ("k", X)]), r"named_struct('it\'s', 1L, 'k', `x`)"),
        (SCRIPT, SCRIPT_OR_ERROR),
    ],
)
def test_an_operation_is_written_as_spark_reads_it(expression: Expr, sql: str) -> None:
    assert render(expression) == sql


def test_spark_sql_has_every_operation() -> None:
    assert set(_SPARK) == set(Op)


def test_a_short_argument_is_repeated_and_a_long_one_is_bound_to_a_name() -> None:
    assert render(call(Op.CODE_POINT, X)) == "(CASE WHEN `x` <> '' THEN CAST(ascii(`x`) AS BIGINT) END)"
    bound = "(CASE WHEN `@@text` <> '' THEN CAST(ascii(`@@text`) AS BIGINT) END)"
    assert render(call(Op.CODE_POINT, LONG)) == f"transform(array({render(LONG)}), `@@text` -> {bound})[0]"


def test_a_python_function_is_called_before_a_value_is_bound_to_a_name() -> None:
    written = render(call(Op.REPEAT, SCRIPT, call(Op.LENGTH, LONG)))
    call_of_field = SCRIPT_OR_ERROR.replace("`udf_f`(`x`)", "`@@calls`.c0")
    assert written == (
        "transform(array(named_struct('c0', `udf_f`(`x`))), `@@calls` -> "
        f"transform(array({render(call(Op.LENGTH, LONG))}), `@@count` -> (CASE WHEN `@@count` >= 0L"
        f" THEN repeat({call_of_field}, CAST(least(`@@count`, 2147483647L) AS INT)) END))[0])[0]"
    )


def test_a_call_within_a_call_is_no_call_of_its_own() -> None:
    inner, outer = SCRIPT, user_call("udf_g", [SCRIPT])
    written = render(Expr(Op.FINITE, [LONG, call(Op.COALESCE, inner, outer)]))
    assert written.startswith(f"transform(array(named_struct('c0', `udf_f`(`x`), 'c1', `udf_g`({SCRIPT_OR_ERROR}))), ")
    assert written.count("udf_") == 3


def test_braces_of_strings_are_written_as_they_are() -> None:
    text = string("{0} {c[0]} {{")
    assert render(call(Op.STUFF, X, ONE, ONE, text, failure("{1}"))).count("'{0} {c[0]} {{'") == 1
    assert render(Expr(Op.MATCHES, [text], ["a{2}"])) == "('{0} {c[0]} {{' RLIKE 'a{2}')"


def test_a_long_chain_of_operators_is_written() -> None:
    links = [bigint(number) for number in range(5_000)]
    chain = render(reduce(lambda chained, link: call(Op.ADD, chained, link), links, X))
    assert chain.startswith("(" * 5_000 + "`x` + 0L) + 1L)")
    assert chain.endswith(" + 4999L)")
