"""Floats are computed and written, and letters change case, as in Java's library, to which Spark gives access."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from recapture.model import AsaType
from recapture.query.plan.expressions import Expr, call, cast_as, column, double
from recapture.query.plan.operations import Op
from tests.evaluate.test_expressions import computed, exact

S, X = map(column, "sx")


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (cast_as(X, AsaType.STRING), "CAST(x AS STRING)"),
        (Expr(Op.ROUND, [X], [1]), "round(x, 1)"),
        (Expr(Op.ROUND, [X], [-2]), "round(x, -2)"),
        (call(Op.POWER, X, double(0.3)), "pow(x, 0.3D)"),
        (call(Op.EXPONENTIAL, X), "exp(x)"),
    ],
    ids=str,
)
def test_floats_are_computed_and_written_as_java_does(spark: SparkSession, expression: Expr, sql: str) -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, 20_000).view(np.float64)
    decimals = np.round(np.random.default_rng(2).normal(size=20_000) * 1_000, 2)
    numbers = pa.table({"x": np.concatenate([bits, decimals, [1e23, 2e-3, 2.0**-44, 5e-324, 1e7, 1e-3]])})
    spark.createDataFrame(numbers).coalesce(1).createOrReplaceTempView("java_floats")
    java = spark.sql(f"SELECT {sql} AS v FROM java_floats").toArrow()["v"].to_pylist()
    assert computed(expression, numbers) == [exact(given) for given in java]


def test_letters_change_case_as_in_java(spark: SparkSession) -> None:
    letters = pa.table({"s": [chr(code) for code in range(0x1_F000) if not 0xD800 <= code <= 0xDFFF]})
    spark.createDataFrame(letters).coalesce(1).createOrReplaceTempView("java_letters")
    for op, function in ((Op.UPPER, "upper"), (Op.LOWER, "lower")):
        java = spark.sql(f"SELECT {function}(s) AS v FROM java_letters").toArrow()["v"].to_pylist()
        assert computed(call(op, S), letters) == java
