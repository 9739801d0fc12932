"""The views that a compiled query reads, from events at their System.Timestamp, and the same rows without Spark."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from recapture.execute.spark.compute import create_views
from recapture.ordering import groups, order, panes
from recapture.ordering.panes import SlicePanes
from recapture.query.model import CompiledInput, CompiledQuery
from recapture.time_model.slices import Slice

Row = dict[str, Any]

EVENTS_IN_BATCH = 7


def create(spark: SparkSession, of_input: CompiledInput, events: Iterable[Row]) -> None:
    """Create the views of an input, with one Spark partition for each of its partitions.

    The events are those that each slice needs, as rows of the view. Those of a slice in a partition come in arrival
    order. A column that an event lacks is NULL.
    """
    schema = order.schema(of_input)
    partitions: dict[str, list[pa.Table]] = {}
    for (partition, slice_), table in _by_slice(of_input, events).items():
        given = _panes(of_input, partition, slice_, table) if of_input.aggregations else table
        partitions.setdefault(partition, []).append(given)
    nothing = (panes.schema(of_input.aggregations) if of_input.aggregations else schema).empty_table()
    # Spark makes each chunk of a table a partition of its own, and stops at a table without chunks.
    whole = [pa.concat_tables([nothing, *tables]).combine_chunks() for tables in partitions.values()] or [nothing]
    frames = [spark.createDataFrame(table).coalesce(1) for table in whole]
    create_views(reduce(DataFrame.unionAll, frames), of_input)


def require_same_without_spark(
    query: CompiledQuery, events: Mapping[str, Sequence[Row]], computed: Sequence[pa.Table]
) -> None:
    """Raise AssertionError unless the outputs of a query are the same, to the last bit, if Spark is not used.

    `events` are those that `create` took, by the alias of the input; `computed` are the rows of each output, which
    Spark computed.
    """
    assert not query.needs_spark
    tables: dict[str, list[tuple[Slice, pa.Table]]] = {}
    for of_input in query.inputs:
        for (partition, slice_), table in _by_slice(of_input, events[of_input.alias]).items():
            tables.setdefault(of_input.view, []).append((slice_, _panes(of_input, partition, slice_, table)))
    slices = {slice_ for of_input in tables.values() for slice_, _ in of_input}
    for output, of_spark in zip(query.outputs, computed, strict=True):
        rows = [
            row
            for slice_ in slices
            for row in groups.rows_of_slice(output, slice_, partial(_of_slice, tables, slice_)).to_pylist()
        ]
        names = [column.name for column in output.columns]
        assert sorted(map(repr, rows)) == sorted(map(repr, of_spark.select(names).to_pylist()))


def _of_slice(
    tables: Mapping[str, Sequence[tuple[Slice, pa.Table]]], slice_: Slice, view: str, number: int
) -> list[pa.RecordBatch]:
    batches = (batch for of, table in tables[view] if of == slice_ for batch in table.to_batches())
    columns = (batch.column(number) for batch in batches)
    return [pa.RecordBatch.from_struct_array(column.drop_null()) for column in columns]


def _by_slice(of_input: CompiledInput, events: Iterable[Row]) -> dict[tuple[str, Slice], pa.Table]:
    """Return the events of each partition and slice."""
    schema = order.schema(of_input)
    of_slices: dict[tuple[str, Slice], list[Row]] = {}
    for event in events:
        slice_ = Slice(event["_slice_start"], event["_slice_end"])
        of_slice = of_slices.setdefault((event["_partition"], slice_), [])
        of_slice.append({name: event.get(name) for name in schema.names})
    return {place: pa.Table.from_pylist(rows, schema) for place, rows in of_slices.items()}


def _panes(of_input: CompiledInput, partition: str, slice_: Slice, events: pa.Table) -> pa.Table:
    of_slice = SlicePanes(slice_, partition, of_input.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        of_slice.add(batch)
    return pa.Table.from_batches(of_slice.batches(), panes.schema(of_input.aggregations))
