"""The views that a compiled query reads, from events at their System.Timestamp."""

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from recapture.ordering import panes
from recapture.ordering.panes import SlicePanes
from recapture.query.model import CompiledInput
from recapture.run.spark import create_views
from recapture.time_model.slices import Slice

EVENTS_IN_BATCH = 7


def create(spark: SparkSession, of_input: CompiledInput, events: Iterable[pa.Table]) -> None:
    """Create the views of an input, with one Spark partition for each of its partitions.

    Each table has the events of one slice in one partition, in arrival order. They have the columns of the view.
    """
    partitions: dict[str, list[pa.Table]] = {}
    for table in events:
        partition = table["_partition"][0].as_py() if len(table) else "0"
        partitions.setdefault(partition, []).append(_aggregated(of_input, partition, table))
    # Spark makes each chunk of a table a partition of its own, and stops at an empty one.
    whole = (pa.concat_tables(tables).combine_chunks() for tables in partitions.values())
    frames = [spark.createDataFrame(table).coalesce(1) for table in whole]
    create_views(reduce(DataFrame.unionAll, frames), of_input)


def _aggregated(of_input: CompiledInput, partition: str, events: pa.Table) -> pa.Table:
    """Return the panes of events if tasks aggregate them, else the events."""
    if not of_input.aggregations:
        return events
    columns = panes.schema(of_input.aggregations)
    if not len(events):
        return columns.empty_table()
    slice_ = Slice(events["_slice_start"][0].as_py(), events["_slice_end"][0].as_py())
    of_slice = SlicePanes(slice_, partition, of_input.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        of_slice.add(batch)
    return pa.concat_tables([columns.empty_table(), pa.Table.from_batches(of_slice.batches(), columns)])
