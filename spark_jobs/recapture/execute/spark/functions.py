"""Register the Python functions of a query in a Spark session: JavaScript, and the comparison of shapes."""

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.evaluate.user_functions import geography, javascript
from recapture.model import TYPES, AsaType
from recapture.query.model import CompiledQuery


def register(spark: SparkSession, query: CompiledQuery) -> None:
    """Register the functions of a query, so that the Spark SQL of the session can call them."""
    for function in query.functions:
        _register(spark, function.spark_name, javascript(function), function.output)
    for comparison in query.geography:
        _register(spark, comparison.spark_name, geography(comparison), comparison.output)


def _register(spark: SparkSession, name: str, caller: Callable[..., pa.Array], output: AsaType) -> None:
    """Register a function that returns a struct of a value and an error."""
    result = from_arrow_schema(pa.schema([("value", TYPES[output].view), ("error", pa.string())]))
    # The stubs of arrow_udf leave out the form whose type hints say what the function is.
    spark.udf.register(name, arrow_udf(caller, returnType=result))  # type: ignore[call-overload]
