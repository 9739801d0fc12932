"""Expressions: which are equal, and how they pass to another process."""

import pickle
import subprocess
import sys
from functools import partial, reduce

import pytest

from recapture.model import AsaType
from recapture.query.plan.expressions import (
    FALSE,
    TRUE,
    Expr,
    bigint,
    call,
    case_when,
    cast_as,
    column,
    columns_of,
    double,
    replaced,
    string,
    walk,
)
from recapture.query.plan.operations import Op

X, ONE = column("x"), bigint(1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (column("x"), column("X")),
        (column("x", "t"), column("x", "T")),
        (column("x"), column("x", "t")),
        (column("x"), string("x")),
        (string("a"), string("A")),
        (string("a"), string("a ")),
        (string("1"), bigint(1)),
        (bigint(1), double(1)),
        (Expr(Op.MATCHES, [X], ["a"]), Expr(Op.MATCHES, [X], ["A"])),
        (call(Op.COALESCE, X, ONE), call(Op.COALESCE, ONE, X)),
        (call(Op.SUBTRACT, X, ONE), call(Op.SUBTRACT, ONE, X)),
        (call(Op.GREATER, X, ONE), call(Op.GREATER_OR_EQUAL, X, ONE)),
        (TRUE, FALSE),
        (cast_as(X, AsaType.FLOAT), cast_as(X, AsaType.FLOAT, lenient=True)),
        (case_when([(X, string("a"))], X), case_when([(X, string("A"))], X)),
    ],
)
def test_expressions_that_mean_something_else_differ(one: Expr, other: Expr) -> None:
    assert one != other
    assert one == Expr(one.op, one.arguments, one.constants)
    assert call(Op.EQUAL, one, X) != call(Op.EQUAL, other, X)


def test_an_expression_is_equal_in_another_process_whose_strings_hash_otherwise() -> None:
    expression = call(Op.ADD, column("x"), ONE)
    receive = (
        "import pickle, sys; from recapture.query.plan.expressions import *; from recapture.query.plan.operations"
        " import Op; print({pickle.load(sys.stdin.buffer): 'found'}[call(Op.ADD, column('x'), bigint(1))])"
    )
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    received = subprocess.run(
        [sys.executable, "-c", receive],
        input=pickle.dumps(expression),
        capture_output=True,
        check=True,
        env=environment,
    )
    assert received.stdout == b"found\n"


def test_a_long_chain_of_operators_is_compared_and_pickled() -> None:
    def chain(last: int) -> Expr:
        links = [bigint(number) for number in range(5_000)]
        return call(Op.ADD, reduce(partial(call, Op.ADD), links), bigint(last))

    assert chain(1) == chain(1)
    assert chain(1) != chain(2)
    assert pickle.loads(pickle.dumps(chain(1))) == chain(1)


def test_a_part_is_replaced_wherever_it_is_and_no_other() -> None:
    expression = call(Op.ADD, column("x"), column("x", "element"))
    replacement = {column("x"): call(Op.NEGATE, X)}
    assert replaced(expression, replacement) == call(Op.ADD, call(Op.NEGATE, X), column("x", "element"))


def test_the_columns_that_an_expression_reads_are_in_order_and_a_field_is_of_its_struct() -> None:
    expression = call(Op.ADD, call(Op.ADD, column("b"), column("x", "a")), column("b"))
    assert list(columns_of(expression)) == ["b", "a"]


def test_an_expression_comes_before_its_parts() -> None:
    inner = call(Op.NEGATE, X)
    assert [*walk(call(Op.ADD, inner, ONE))] == [call(Op.ADD, inner, ONE), inner, X, ONE]


def test_every_operation_says_what_it_gives_unless_its_name_does() -> None:
    assert str(call(Op.ADD, X, Expr(Op.ROUND, [column("y", "t")], [2]))) == "add(x, round[2](t.y))"
    assert [str(string("it's")), str(double(1.5)), str(TRUE)] == ['"it\'s"', "1.5", "true"]
