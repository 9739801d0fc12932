"""The views that a compiled query reads, from events at their System.Timestamp."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from recapture.ordering import order, panes
from recapture.ordering.panes import SlicePanes
from recapture.query.model import CompiledInput
from recapture.run.spark import create_views
from recapture.time_model.slices import Slice

Row = dict[str, Any]

EVENTS_IN_BATCH = 7


def create(spark: SparkSession, of_input: CompiledInput, events: Iterable[Row]) -> None:
    """Create the views of an input, with one Spark partition for each of its partitions.

    The events are those that each slice needs, as rows of the view. Those of a slice in a partition come in arrival
    order. A column that an event lacks is NULL.
    """
    schema = order.schema(of_input)
    of_slices: dict[tuple[str, int, int], list[Row]] = {}
    for event in events:
        of_slice = of_slices.setdefault((event["_partition"], event["_slice_start"], event["_slice_end"]), [])
        of_slice.append({name: event.get(name) for name in schema.names})
    partitions: dict[str, list[pa.Table]] = {}
    for (partition, start, end), rows in of_slices.items():
        table = pa.Table.from_pylist(rows, schema)
        given = _panes(of_input, partition, Slice(start, end), table) if of_input.aggregations else table
        partitions.setdefault(partition, []).append(given)
    nothing = (panes.schema(of_input.aggregations) if of_input.aggregations else schema).empty_table()
    # Spark makes each chunk of a table a partition of its own, and stops at a table without chunks.
    whole = [pa.concat_tables([nothing, *tables]).combine_chunks() for tables in partitions.values()] or [nothing]
    frames = [spark.createDataFrame(table).coalesce(1) for table in whole]
    create_views(reduce(DataFrame.unionAll, frames), of_input)


def _panes(of_input: CompiledInput, partition: str, slice_: Slice, events: pa.Table) -> pa.Table:
    of_slice = SlicePanes(slice_, partition, of_input.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        of_slice.add(batch)
    return pa.Table.from_batches(of_slice.batches(), panes.schema(of_input.aggregations))
