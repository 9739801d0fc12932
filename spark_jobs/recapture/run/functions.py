"""The JavaScript functions of a query in a Spark session."""

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.errors import DefinitionError, RunError
from recapture.javascript.engine import engine
from recapture.model import TYPES, JavaScriptFunction


def register(spark: SparkSession, functions: Iterable[JavaScriptFunction]) -> None:
    """Let the Spark SQL of a session call JavaScript functions."""
    for function in functions:
        fields = [("value", TYPES[function.output].view), ("error", pa.string())]
        result = from_arrow_schema(pa.schema(fields))
        # The stubs of arrow_udf leave out the form whose type hints say what the function is.
        caller = arrow_udf(_caller(function), returnType=result)  # type: ignore[call-overload]
        spark.udf.register(function.spark_name, caller)


def _caller(function: JavaScriptFunction) -> Callable[..., pa.Array]:
    """Return what calls a function for a batch of rows on an executor."""

    def call(*columns: pa.Array) -> pa.Array:
        try:
            values, errors = engine(function).call(columns, len(columns[0]))
        except DefinitionError as error:
            raise RunError(str(error)) from error
        except RunError:
            # A context that reached a limit is of no more use.
            engine.cache_clear()
            raise
        return pa.StructArray.from_arrays([values, errors], ["value", "error"])

    return call
