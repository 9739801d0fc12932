"""The same expressions over the same rows, evaluated here and by Spark SQL."""

import re
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.errors import RecaptureError
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.query.lower.spark import render
from recapture.query.plan.expressions import Expr

BOUNDS = SliceBounds(1_000, 2_000)


def in_spark(spark: SparkSession, rows: pa.Table, expressions: Sequence[Expr], where: Expr | None = None) -> pa.Table:
    """Return the columns that Spark computes, one by one, of rows that it cannot compute beforehand."""
    frame = spark.createDataFrame(rows.to_pylist() or [], from_arrow_schema(rows.schema)).coalesce(1)
    frame.rdd.toDF(frame.schema).createOrReplaceTempView("expression_rows")
    items = ", ".join(f"{render(expression)} AS c{index}" for index, expression in enumerate(expressions))
    condition = "" if where is None else f" WHERE {render(where)}"
    return spark.sql(f"SELECT {items} FROM expression_rows{condition}").toArrow()


def here(rows: pa.Table, expressions: Sequence[Expr], where: Expr | None = None) -> pa.Table:
    """Return the columns that `project` gives."""
    return project(rows, [(f"c{index}", expression) for index, expression in enumerate(expressions)], where, BOUNDS)


def exact(column: Sequence[object]) -> list[object]:
    """Return values that are equal only if their bits are: NaN equals NaN, and -0.0 is not 0.0."""
    return [_bits(value) if isinstance(value, float) else value for value in column]


def _bits(number: float) -> str:
    return number.hex()


def condition(error: BaseException) -> str:
    """Return the name of the error that stops a query."""
    if isinstance(error, RecaptureError):
        return str(getattr(error, "condition", type(error).__name__))
    found = re.search(r"\[([A-Z_]+)(?:\.[A-Z_]+)*\]", str(error))
    assert found, str(error)[:500]
    return found[1]
