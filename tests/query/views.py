"""The views that a compiled query reads, from events at their System.Timestamp."""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recapture.execute.merging import GROUP_HASH, merge_to_groups
from recapture.ordering import order, panes
from recapture.ordering.panes import SlicePanes
from recapture.query.lower.spark_text import quoted_name
from recapture.query.model import CompiledInput, CompiledQuery
from recapture.time_model.slices import Slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

EVENTS_IN_BATCH = 7


def create(spark: "SparkSession", query: CompiledQuery, events: Mapping[str, Iterable[Row]]) -> None:
    """Create the views of a query: those of events, with one Spark partition for each of an input's, and of groups.

    The events of each input, by its alias, are those that each slice needs, as rows of the view. Those of a slice in a
    partition come in arrival order. A column that an event lacks is NULL.
    """
    panes_by_view: dict[str, pa.Table] = {}
    for read in query.inputs:
        tables = by_slice(read, events[read.alias])
        if read.aggregations:
            computed = [panes_of(read, *place, table) for place, table in tables.items()]
            panes_by_view[read.view] = pa.concat_tables([panes.schema(read.aggregations).empty_table(), *computed])
        else:
            _create_event_view(spark, read, tables)
    create_groups_views(spark, query, panes_by_view)


def _create_event_view(
    spark: "SparkSession", read: CompiledInput, tables: Mapping[tuple[str, Slice], pa.Table]
) -> None:
    partitions: dict[str, list[pa.Table]] = {}
    for (partition, _), table in tables.items():
        partitions.setdefault(partition, []).append(table)
    nothing = order.schema(read).empty_table()
    # Spark makes each chunk of a table a partition of its own, and stops at a table without chunks.
    whole = [pa.concat_tables([nothing, *tables]).combine_chunks() for tables in partitions.values()] or [nothing]
    frames = [spark.createDataFrame(table).coalesce(1) for table in whole]
    reduce(lambda one, other: one.unionAll(other), frames).createOrReplaceTempView(quoted_name(read.view))


def create_groups_views(spark: "SparkSession", query: CompiledQuery, panes_by_view: Mapping[str, pa.Table]) -> None:
    """Create the views of groups of a query, which are merged in this process.

    The panes of each input are a table of `panes.schema`, by the view of the input.
    """
    for view in query.groups:
        batches: list[pa.RecordBatch] = []
        for window in view.groups.windows:
            structs = panes_by_view[window.view].column(window.number).combine_chunks().drop_null()
            table = pa.Table.from_struct_array(structs).sort_by("_slice_start")
            table = table.append_column(GROUP_HASH, pa.repeat(pa.scalar(0, pa.int64()), len(table)))
            batches += merge_to_groups(view.groups, window, table.to_batches())
        groups = pa.Table.from_batches(batches, view.groups.view_schema).combine_chunks()
        spark.createDataFrame(groups).coalesce(1).createOrReplaceTempView(quoted_name(view.name))


def by_slice(read: CompiledInput, events: Iterable[Row]) -> dict[tuple[str, Slice], pa.Table]:
    """Return the events of each partition and slice."""
    schema = order.schema(read)
    events_by_slice: dict[tuple[str, Slice], list[Row]] = {}
    for event in events:
        slice_ = Slice(event["_slice_start"], event["_slice_end"])
        events_by_slice.setdefault((event["_partition"], slice_), []).append(
            {name: event.get(name) for name in schema.names}
        )
    return {place: pa.Table.from_pylist(rows, schema) for place, rows in events_by_slice.items()}


def panes_of(read: CompiledInput, partition: str, slice_: Slice, events: pa.Table) -> pa.Table:
    slice_panes = SlicePanes(slice_, partition, read.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        slice_panes.add(batch)
    return pa.Table.from_batches(slice_panes.batches(), panes.schema(read.aggregations))
