"""Register the Python functions of a query in a Spark session: JavaScript, and the comparison of shapes."""

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.errors import DefinitionError, RunError
from recapture.model import TYPES, AsaType, JavaScriptFunction, ShapeComparison
from recapture.query.model import CompiledQuery


def register(spark: SparkSession, query: CompiledQuery) -> None:
    """Register the functions of a query, so that the Spark SQL of the session can call them."""
    for function in query.functions:
        _register(spark, function.spark_name, _javascript(function), function.output)
    for comparison in query.geography:
        _register(spark, comparison.spark_name, _geography(comparison), comparison.output)


def _register(spark: SparkSession, name: str, caller: Callable[..., pa.Array], output: AsaType) -> None:
    """Register a function that returns a struct of a value and an error."""
    result = from_arrow_schema(pa.schema([("value", TYPES[output].view), ("error", pa.string())]))
    # The stubs of arrow_udf leave out the form whose type hints say what the function is.
    spark.udf.register(name, arrow_udf(caller, returnType=result))  # type: ignore[call-overload]


def _javascript(function: JavaScriptFunction) -> Callable[..., pa.Array]:
    """Return a callable that computes a function for a batch of rows on an executor; only there it loads V8."""

    def call(*columns: pa.Array) -> pa.Array:
        from recapture.javascript.engine import engine

        try:
            values, errors = engine(function).call(columns, len(columns[0]))
        except DefinitionError as error:
            raise RunError(str(error)) from error
        except RunError:
            # A context that has reached a limit cannot be used again.
            engine.cache_clear()
            raise
        return pa.StructArray.from_arrays([values, errors], ["value", "error"])

    return call


def _geography(function: ShapeComparison) -> Callable[..., pa.Array]:
    """Return a callable that computes a function for a batch of rows on an executor; only there it loads shapely."""

    def call(one: pa.Array, other: pa.Array) -> pa.Array:
        from recapture.geography import comparisons

        return comparisons.call(function, one, other)

    return call
