"""Reference data of a run as the views that its query joins."""

import logging

import pyarrow as pa
from pyspark.sql import SparkSession

from recapture.archive.references import PlannedReference
from recapture.execute.references import rows
from recapture.formats.events import Reader
from recapture.process.wording import counted
from recapture.query.model import CompiledReference
from recapture.storage import Container

_LOG = logging.getLogger(__name__)
_ZEROS = {pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False, pa.string(): ""}
"""A value for each type. It is not NULL, because Spark drops NULL keys before it joins."""


def create_view(
    spark: SparkSession, reference: PlannedReference, compiled: CompiledReference, reader: Reader, container: Container
) -> None:
    """Create the view in which the Spark SQL of a session looks rows up. Errors are those of `rows`."""
    table = rows(reference, compiled, reader, container)
    view = pa.concat_tables([table, _never_in_force(table.schema)])
    _LOG.info(
        "reference data %s: %s, %s, %s bytes in the memory of every executor",
        *(reference.alias, counted(len(reference.versions), "version"), counted(table.num_rows, "row")),
        f"{table.nbytes:,}",
    )
    spark.createDataFrame(view).coalesce(1).createOrReplaceTempView(f"`{compiled.view}`")


def _never_in_force(schema: pa.Schema) -> pa.Table:
    """Return one row that is never in force: if there were no row to join, Spark would not count the events."""
    return pa.table([pa.array([_ZEROS[field.type]], field.type) for field in schema], schema=schema)
