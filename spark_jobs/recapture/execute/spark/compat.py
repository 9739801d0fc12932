"""What older versions of Spark and pyspark-client do not have, with what does the same there."""

from pyspark.sql import DataFrame

try:
    from py4j.protocol import Py4JError as Py4JError
    from py4j.protocol import Py4JJavaError as Py4JJavaError
except ImportError:  # pyspark-client starts no Java, so nothing raises these

    class Py4JError(Exception):  # type: ignore[no-redef]
        """An error of a call to Java."""

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef]
        """An exception in Java."""


def partitioned_by_id(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return rows with those of one id in one partition.

    From Spark 4.1 on, id n is in partition n, modulo their number. Spark 4.0 distributes the ids by their hashes, so
    that some partitions may have several ids and others none.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, column)
    return rows.repartition(partitions, column)
