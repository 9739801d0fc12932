"""The views that a compiled query reads, from events at their System.Timestamp, and the same rows without Spark."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from recapture.execute.merging import GROUP_HASH, merge_to_groups
from recapture.ordering import groups, order, panes
from recapture.ordering.panes import SlicePanes
from recapture.query.lower.spark_text import quoted_name
from recapture.query.model import CompiledInput, CompiledQuery
from recapture.time_model.slices import Slice

Row = dict[str, Any]

EVENTS_IN_BATCH = 7


def create(spark: SparkSession, query: CompiledQuery, events: Mapping[str, Iterable[Row]]) -> None:
    """Create the views of a query: those of events, with one Spark partition for each of an input's, and of groups.

    The events of each input, by its alias, are those that each slice needs, as rows of the view. Those of a slice in a
    partition come in arrival order. A column that an event lacks is NULL.
    """
    panes_by_view: dict[str, pa.Table] = {}
    for read in query.inputs:
        tables = _by_slice(read, events[read.alias])
        if read.aggregations:
            computed = [_panes(read, *place, table) for place, table in tables.items()]
            panes_by_view[read.view] = pa.concat_tables([panes.schema(read.aggregations).empty_table(), *computed])
        else:
            _create_event_view(spark, read, tables)
    create_groups_views(spark, query, panes_by_view)


def _create_event_view(spark: SparkSession, read: CompiledInput, tables: Mapping[tuple[str, Slice], pa.Table]) -> None:
    partitions: dict[str, list[pa.Table]] = {}
    for (partition, _), table in tables.items():
        partitions.setdefault(partition, []).append(table)
    nothing = order.schema(read).empty_table()
    # Spark makes each chunk of a table a partition of its own, and stops at a table without chunks.
    whole = [pa.concat_tables([nothing, *tables]).combine_chunks() for tables in partitions.values()] or [nothing]
    frames = [spark.createDataFrame(table).coalesce(1) for table in whole]
    reduce(DataFrame.unionAll, frames).createOrReplaceTempView(quoted_name(read.view))


def create_groups_views(spark: SparkSession, query: CompiledQuery, panes_by_view: Mapping[str, pa.Table]) -> None:
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


def require_same_without_spark(
    query: CompiledQuery, events: Mapping[str, Sequence[Row]], computed: Sequence[pa.Table]
) -> None:
    """Raise AssertionError unless the outputs of a query are the same, to the last bit, if Spark is not used.

    `events` are those that `create` took, by the alias of the input; `computed` are the rows of each output, which
    Spark computed.
    """
    assert not query.needs_spark
    tables: dict[str, list[tuple[Slice, pa.Table]]] = {}
    for read in query.inputs:
        for (partition, slice_), table in _by_slice(read, events[read.alias]).items():
            tables.setdefault(read.view, []).append((slice_, _panes(read, partition, slice_, table)))
    slices = {slice_ for read in tables.values() for slice_, _ in read}
    for output, spark_rows in zip(query.outputs, computed, strict=True):
        rows = [
            row
            for slice_ in slices
            for row in groups.rows_of_slice(output, slice_, partial(_of_slice, tables, slice_)).to_pylist()
        ]
        names = [column.name for column in output.columns]
        assert sorted(map(repr, rows)) == sorted(map(repr, spark_rows.select(names).to_pylist()))


def _of_slice(
    tables: Mapping[str, Sequence[tuple[Slice, pa.Table]]], slice_: Slice, view: str, number: int
) -> list[pa.RecordBatch]:
    batches = (batch for of, table in tables[view] if of == slice_ for batch in table.to_batches())
    columns = (batch.column(number) for batch in batches)
    return [pa.RecordBatch.from_struct_array(column.drop_null()) for column in columns]


def _by_slice(read: CompiledInput, events: Iterable[Row]) -> dict[tuple[str, Slice], pa.Table]:
    """Return the events of each partition and slice."""
    schema = order.schema(read)
    events_by_slice: dict[tuple[str, Slice], list[Row]] = {}
    for event in events:
        slice_ = Slice(event["_slice_start"], event["_slice_end"])
        events_by_slice.setdefault((event["_partition"], slice_), []).append(
            {name: event.get(name) for name in schema.names}
        )
    return {place: pa.Table.from_pylist(rows, schema) for place, rows in events_by_slice.items()}


def _panes(read: CompiledInput, partition: str, slice_: Slice, events: pa.Table) -> pa.Table:
    slice_panes = SlicePanes(slice_, partition, read.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        slice_panes.add(batch)
    return pa.Table.from_batches(slice_panes.batches(), panes.schema(read.aggregations))
