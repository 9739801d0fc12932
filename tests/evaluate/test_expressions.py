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
from recapture.evaluate.refusal import NotEvaluatedError
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


def same(spark: SparkSession, table: pa.Table, *texts: str, where: str | None = None) -> None:
    """Raise AssertionError unless each expression has the values that it has in Spark."""
    expected, actual = in_spark(spark, table, texts, where), here(table, texts, where)
    assert actual.num_rows == expected.num_rows
    for index, text in enumerate(texts):
        one, other = expected.column(index), actual.column(index)
        assert one.type == other.type, text
        pairs = enumerate(zip(exact(one.to_pylist()), exact(other.to_pylist()), strict=True))
        wrong = [row for row, (in_spark_, value) in pairs if in_spark_ != value]
        if wrong:
            given = table.slice(wrong[0], 1).to_pylist() if where is None else where
            pytest.fail(f"{text}, {given}: Spark {one[wrong[0]]}, here {other[wrong[0]]}; {len(wrong)} rows differ")


def same_errors(spark: SparkSession, table: pa.Table, *texts: str) -> None:
    """Raise AssertionError unless each expression stops for the same rows, with the same condition."""
    for row, text in itertools.product(range(table.num_rows), texts):
        one = table.slice(row, 1)
        results = [result(partial(evaluate, one, [text])) for evaluate in (partial(in_spark, spark), here)]
        assert results[0] == results[1], (text, one.to_pylist())


def result(evaluate: Callable[[], pa.Table]) -> list[object]:
    """Return the values of the one column, or the name of the error."""
    try:
        return exact(evaluate().column(0).to_pylist())
    except (PySparkException, RecaptureError) as error:
        return [condition(error)]


def test_comparisons_and_conditions(spark: SparkSession) -> None:
    signs = ("=", "<>", "<", "<=", ">", ">=")
    same(spark, NUMBERS, *(f"(`i` {sign} `j`)" for sign in signs), "(`i` IN (1L, 7L))", "(`i` IN (`j`, NULL))")
    same(spark, DOUBLES, *(f"(`x` {sign} `y`)" for sign in signs), "`x` IN (`y`, 1D)", "`x` BETWEEN `y` AND 1D")
    same(spark, LOGIC, *(f"(`p` {sign} `q`)" for sign in ("=", "<>", "AND", "OR")), "NOT `p`", "`p` IS NOT NULL")


def test_arithmetic_of_floats(spark: SparkSession) -> None:
    same(spark, DOUBLES, "`x` + `y`", "`x` - `y`", "`x` * `y`", "(- `x`)", "abs(`x`)", "sign(`x`)", "sqrt(`x`)")
    same(spark, DOUBLES, "CASE WHEN `y` <> 0D THEN `x` / `y` END", "floor(`x`)", "ceil(`x`)")


def test_a_case_guards_its_branches(spark: SparkSession) -> None:
    # One by one, as Spark computes a part that several expressions share beforehand, even if AND guards it.
    for text in (
        "CASE WHEN `j` = 0L THEN NULL WHEN `j` IN (1L, -1L) THEN -5L ELSE `i` div `j` END",
        "CASE WHEN `j` <> 0L AND `i` % `j` = 1L THEN 'one' WHEN `j` IS NULL THEN 'none' END",
        "coalesce(CASE WHEN `j` = 0L THEN 1L END, `i` % `j`)",
        "(`j` = 0L OR `i` % `j` > 1L)",
    ):
        same(spark, NUMBERS, text)
    same(spark, NUMBERS, "`i` % `j`", where="`j` <> 0L AND (`i` % `j` >= 0L)")


@pytest.mark.parametrize("text", ["`i` + `j`", "`i` - `j`", "`i` * `j`", "`i` div `j`", "`i` % `j`", "(- `i`)"])
def test_arithmetic_of_bigints_stops_where_spark_does(spark: SparkSession, text: str) -> None:
    few = rows(i=([7, -(2**63), 2**63 - 1, None], pa.int64()), j=([0, -1, 3], pa.int64()))
    same_errors(spark, few, text)


def test_casts_of_numbers(spark: SparkSession) -> None:
    same(spark, DOUBLES, "try_cast(`x` AS BIGINT)", "CAST(`x` AS BOOLEAN)", "CAST(`x` AS DOUBLE)")
    same(spark, NUMBERS, "CAST(`i` AS DOUBLE)", "CAST(`i` AS BOOLEAN)", "CAST(CAST(`i` AS BOOLEAN) AS BIGINT)")
    same_errors(spark, rows(x=([1.5, -1.5, 2.0**63, 1e19, math.nan, None], pa.float64())), "CAST(`x` AS BIGINT)")


@pytest.mark.parametrize("text", ["hash(`i`)", "`i` + 1.5", "rand()", "`nowhere`", "`udf_f`(`i`)", "CAST(`i` AS DATE)"])
def test_what_is_not_known_is_refused_before_any_row_is_read(text: str) -> None:
    with pytest.raises(NotEvaluatedError):
        here(NUMBERS.slice(0, 0), [text])


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
    same(spark, numbers, "CAST(`x` AS STRING)", "round(`x`, 1)", "pow(`x`, 0.3D)", "exp(`x`)", "round(`x`, -2)")


def test_strings(spark: SparkSession) -> None:
    pairs = rows(s=(STRINGS, pa.string()), t=(["", "a", "é", "s", None], pa.string()))
    same(
        spark,
        pairs,
        *("upper(`s`)", "lower(`s`)", "reverse(`s`)", "length(`s`)", "concat_ws('-', `s`, `t`)", "concat(`s`, `t`)"),
        *(
            "locate(`t`, `s`, 1)",
            "replace(`s`, `t`, 'x')",
            "translate(`s`, 'a12', 'xy')",
            "`s` LIKE '%a%'",
            "`s` < `t`",
        ),
        *(
            "substring(`s`, 2, 1)",
            "right(`s`, 2)",
            "overlay(`s` PLACING `t` FROM 2 FOR 1)",
            "ascii(`s`)",
            "`s` RLIKE '^1.$'",
        ),
        *("try_cast(`s` AS BIGINT)", "try_cast(`s` AS DOUBLE)", "to_json(array(`s`))"),
    )


def test_documents(spark: SparkSession) -> None:
    properties = "from_json(`r`, 'MAP<STRING, STRING>')"
    similar = f"get(map_values(map_filter({properties}, (`@@key`, `@@value`) -> lower(`@@key`) = lower('a'))), 0)"
    same(
        spark,
        rows(r=(DOCUMENTS, pa.string())),
        *("get_json_object(`r`, '$[\\'a\\']')", similar, "json_array_length(`r`)", "json_object_keys(`r`) IS NOT NULL"),
        *(f"try_element_at({properties}, 'a')", "get(from_json(`r`, 'ARRAY<STRING>'), 2)"),
    )
