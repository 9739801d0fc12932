"""The rows of a query from the worker processes, and from Spark, if a test has its session."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recapture.query.model import CompiledQuery
from tests.evaluate.evaluated import evaluated, in_order, merged, require_same, require_same_in_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of_outputs(
    spark: "SparkSession | None",
    query: CompiledQuery,
    events: Mapping[str, Sequence[dict[str, Any]]],
    references: Mapping[str, pa.Table] | None = None,
) -> list[pa.Table]:
    """Return the rows of each output, with the columns of its SQL: without Spark, or from Spark if there is a session.

    `events` are those that `views.create` takes, and `references` the rows of reference data, by their views, which
    Spark has already. Raise AssertionError if two ways of computing the rows do not give the same.
    """
    if spark is not None:
        from recapture.execute.spark.functions import register
        from tests.query import views

        register(spark, query)
        views.create(spark, query, events)
        computed = [spark.sql(output.sql).toArrow() for output in query.outputs]
        require_same(query, events, computed, references)
        return computed
    tables = [evaluated(query, output, events, references or {}) for output in query.outputs]
    for output, table in zip(query.outputs, tables, strict=True):
        if output.selects:
            names = [*(column.name for column in output.columns), "slice_start"]
            assert in_order(merged(query, output, events), names) == in_order(table, names)
    require_same_in_parts(query, events, tables, references or {})
    return tables
