"""Expressions are evaluated as Spark SQL evaluates them: values, NULL, NaN, and the errors of ANSI mode."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from recapture.errors import RecaptureError
from recapture.model import AsaType
from recapture.query.plan.expressions import NULL, Expr, bigint, call, case_when, cast_as, column, double, string
from recapture.query.plan.operations import Op
from tests.evaluate.spark_oracle import condition, exact, here, in_spark

BIGINTS = [0, 1, -1, 2, 7, -7, 10, 2**31, -(2**31) - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), None]
FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e-5, 9.999e-6, 123456.789, 1e15, 1e16, 2.0**53, 2.0**63),
    *(-(2.0**63), 9.3e18, 1e300, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, None),
]
BITS = [True, False, None]


def rows(**columns: tuple[Sequence[object], pa.DataType]) -> pa.Table:
    """Return a row for each combination of values."""
    combinations = list(itertools.product(*(values for values, _ in columns.values())))
    turned = list(zip(*combinations, strict=True))
    return pa.table(
        {name: pa.array(values, type_) for (name, (_, type_)), values in zip(columns.items(), turned, strict=True)}
    )


NUMBERS = rows(i=(BIGINTS, pa.int64()), j=(BIGINTS, pa.int64()))
DOUBLES = rows(x=(FLOATS, pa.float64()), y=(FLOATS, pa.float64()))
LOGIC = rows(p=(BITS, pa.bool_()), q=(BITS, pa.bool_()))


def same(spark: SparkSession, table: pa.Table, *expressions: Expr, where: Expr | None = None) -> None:
    """Raise AssertionError unless each expression has the values that it has in Spark."""
    expected, actual = in_spark(spark, table, expressions, where), here(table, expressions, where)
    assert actual.num_rows == expected.num_rows
    for index, expression in enumerate(expressions):
        one, other = expected.column(index), actual.column(index)
        assert one.type == other.type, expression
        pairs = enumerate(zip(exact(one.to_pylist()), exact(other.to_pylist()), strict=True))
        wrong = [row for row, (in_spark_, value) in pairs if in_spark_ != value]
        if wrong:
            given = table.slice(wrong[0], 1).to_pylist() if where is None else where
            pytest.fail(
                f"{expression}, {given}: Spark {one[wrong[0]]}, here {other[wrong[0]]}; {len(wrong)} rows differ"
            )


def same_errors(spark: SparkSession, table: pa.Table, *expressions: Expr) -> None:
    """Raise AssertionError unless each expression stops for the same rows, with the same condition."""
    for row, expression in itertools.product(range(table.num_rows), expressions):
        one = table.slice(row, 1)
        results = [result(partial(evaluate, one, [expression])) for evaluate in (partial(in_spark, spark), here)]
        assert results[0] == results[1], (expression, one.to_pylist())


def result(evaluate: Callable[[], pa.Table]) -> list[object]:
    """Return the values of the one column, or the name of the error."""
    try:
        return exact(evaluate().column(0).to_pylist())
    except (PySparkException, RecaptureError) as error:
        return [condition(error)]


N, M, X, Y, P, Q, S, T, R = map(column, "ijxypqstr")
COMPARISONS = (Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_OR_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL)


def test_comparisons_and_conditions(spark: SparkSession) -> None:
    numbers = (call(Op.IN, N, bigint(1), bigint(7)), call(Op.IN, N, M, NULL))
    same(spark, NUMBERS, *(call(op, N, M) for op in COMPARISONS), *numbers)
    same(spark, DOUBLES, *(call(op, X, Y) for op in COMPARISONS), call(Op.IN, X, Y, double(1.0)))
    logic = (call(Op.NOT, P), call(Op.IS_NOT_NULL, P), call(Op.IS_ANY_NULL, P, Q))
    same(spark, LOGIC, *(call(op, P, Q) for op in (Op.EQUAL, Op.NOT_EQUAL, Op.AND, Op.OR)), *logic)


def test_arithmetic_of_floats(spark: SparkSession) -> None:
    same(spark, DOUBLES, *(call(op, X, Y) for op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)))
    same(spark, DOUBLES, *(call(op, X) for op in (Op.NEGATE, Op.ABSOLUTE, Op.SIGN, Op.SQUARE_ROOT, Op.SQUARE)))
    guarded = case_when([(call(Op.NOT_EQUAL, Y, double(0.0)), call(Op.DIVIDE, X, Y))], NULL)
    same(spark, DOUBLES, guarded, call(Op.FLOOR, X), call(Op.CEILING, X), call(Op.FINITE, X, NULL))


def test_a_case_guards_its_branches(spark: SparkSession) -> None:
    # One by one, as Spark computes a part that several expressions share beforehand, even if AND guards it.
    zero, one = bigint(0), bigint(1)
    is_zero, remainder = call(Op.EQUAL, M, zero), call(Op.MODULO, N, M)
    near = call(Op.IN, M, one, bigint(-1))
    for expression in (
        case_when([(is_zero, NULL), (near, bigint(-5))], call(Op.INTEGER_DIVIDE, N, M)),
        case_when([(call(Op.AND, call(Op.NOT, is_zero), call(Op.EQUAL, remainder, one)), string("one"))], NULL),
        call(Op.COALESCE, case_when([(is_zero, one)], NULL), remainder),
        call(Op.OR, is_zero, call(Op.GREATER, remainder, one)),
    ):
        same(spark, NUMBERS, expression)
    positive = call(Op.GREATER_OR_EQUAL, remainder, zero)
    same(spark, NUMBERS, remainder, where=call(Op.AND, call(Op.NOT, is_zero), positive))


@pytest.mark.parametrize("op", [Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.INTEGER_DIVIDE, Op.MODULO])
def test_arithmetic_of_bigints_stops_where_spark_does(spark: SparkSession, op: Op) -> None:
    few = rows(i=([7, -(2**63), 2**63 - 1, None], pa.int64()), j=([0, -1, 3], pa.int64()))
    same_errors(spark, few, call(op, N, M))


def test_casts_of_numbers(spark: SparkSession) -> None:
    bit = cast_as(N, AsaType.BIT)
    same(spark, DOUBLES, cast_as(X, AsaType.BIGINT, lenient=True), cast_as(X, AsaType.BIT), cast_as(X, AsaType.FLOAT))
    same(spark, NUMBERS, cast_as(N, AsaType.FLOAT), bit, cast_as(bit, AsaType.BIGINT))
    same_errors(spark, rows(x=([1.5, -1.5, 2.0**63, 1e19, math.nan, None], pa.float64())), cast_as(X, AsaType.BIGINT))


STRINGS = [
    "",
    "a",
    " Ab ",
    "ß",
    "İstanbul",
    "ΑΣ",
    "😀茶",
    'q"\\\n',
    "12",
    " -7\x7f",
    "1e5",
    "1d",
    "0x1p3",
    "NaN",
    "12\n",
    None,
]
DOCUMENTS = [
    *(
        '{"a":1.50,"A":2}',
        '{"a":null,"a":"x"}',
        '{"a":[1, 2.0, "😀", {"b":null}]}',
        '{"a":1} x',
        '{"a":1',
        '{"A":1e400}',
    ),
    *("{'a':'it\\'s'}", '{"a":NaN}', '{"a":-0}', '{"a":"x\ty"}', '{"a":"\\ud800"}', "[1.50, null, [2]]", "[", "", None),
]


def test_floats_are_written_as_java_writes_them(spark: SparkSession) -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, 20_000).view(np.float64)
    decimals = np.round(np.random.default_rng(2).normal(size=20_000) * 1_000, 2)
    numbers = pa.table({"x": np.concatenate([bits, decimals, [1e23, 2e-3, 2.0**-44, 5e-324, 1e7, 1e-3]])})
    rounded = (Expr(Op.ROUND, [X], [places]) for places in (1, -2))
    powers = (call(Op.POWER, X, double(0.3)), call(Op.EXPONENTIAL, X))
    same(spark, numbers, cast_as(X, AsaType.STRING), *rounded, *powers)


def test_strings(spark: SparkSession) -> None:
    pairs = rows(s=(STRINGS, pa.string()), t=(["", "a", "é", "s", None], pa.string()))
    one, two = bigint(1), bigint(2)
    same(spark, pairs, *(call(op, S) for op in (Op.UPPER, Op.LOWER, Op.REVERSE, Op.LENGTH, Op.CODE_POINT)))
    same(spark, pairs, call(Op.JOIN_STRINGS, string("-"), S, T), call(Op.CONCAT, S, T), call(Op.LESS, S, T))
    same(
        spark,
        pairs,
        Expr(Op.POSITION, [T, S, one], [False, True]),
        call(Op.REPLACE, S, T, string("x")),
        call(Op.TRANSLATE, S, string("a12"), string("xyz"), NULL),
        Expr(Op.LIKE, [S], ["%a%"]),
        call(Op.SUBSTRING, S, two, one),
        call(Op.RIGHT, S, two),
        call(Op.STUFF, S, two, one, call(Op.COALESCE, T, string(""))),
        Expr(Op.MATCHES, [S], ["^1.$"]),
        *(cast_as(S, number, lenient=True) for number in (AsaType.BIGINT, AsaType.FLOAT)),
        call(Op.JSON_OF_ANY, S),
    )


def test_parts_of_strings_whose_places_each_row_computes(spark: SparkSession) -> None:
    places = ([-(2**63), -1, 0, 1, 3, 2**40, None], pa.int64())
    parts = rows(s=(["", "abcde", "é😀茶x", None], pa.string()), i=places, j=([0, 2, 2**40, None], pa.int64()))
    stuffed = call(Op.STUFF, S, N, call(Op.LEAST, M, bigint(9)), string("--"), NULL)
    same(
        spark, parts, *(call(op, S, M, NULL) for op in (Op.LEFT, Op.RIGHT)), call(Op.SUBSTRING, S, N, M, NULL), stuffed
    )


def test_documents(spark: SparkSession) -> None:
    names = (string(name) for name in ("a", "A", "it's", "[a]"))
    elements = (Expr(Op.ARRAY_ELEMENT_AT, [R], [2]), call(Op.ARRAY_ELEMENT, R, N), call(Op.ARRAY_LENGTH, R))
    documents = rows(r=(DOCUMENTS, pa.string()), i=([-1, 0, 1, None], pa.int64()))
    properties = (call(Op.JSON_PROPERTY, R, name) for name in names)
    same(spark, documents, *properties, *elements, call(Op.PARSED_RECORD, R), call(Op.STRING_TO_ARRAY, R, NULL))
