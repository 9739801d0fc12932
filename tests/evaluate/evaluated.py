"""The rows of a query as the worker processes compute them, from events as rows of the views."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.execute.division import Bucket, rows_of_bucket
from recapture.execute.slice_rows import slice_query
from recapture.model import published_schema
from recapture.ordering import order, panes
from recapture.ordering.groups import groups_of_panes, rows_of_slice
from recapture.query.merges import GroupsView
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery
from recapture.query.plan.shared_keys import shared_keys
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from tests.query import views

Row = dict[str, Any]
SLICE_START = pa.field("slice_start", pa.timestamp("us", tz="UTC"))


def require_same(
    query: CompiledQuery,
    events: Mapping[str, Sequence[Row]],
    computed: Sequence[pa.Table],
    references: Mapping[str, pa.Table] | None = None,
) -> None:
    """Raise AssertionError unless the rows of each output are the same without Spark, to the last bit.

    `events` are those that `views.create` took, by the alias of the input, and `references` the rows of reference data,
    by their views. `computed` are the rows of each output from Spark.
    """
    for output, spark_rows in zip(query.outputs, computed, strict=True):
        names = [column.name for column in output.columns] + ["slice_start"]
        names += ["_unanchored"] if "_unanchored" in spark_rows.column_names else []
        theirs = in_order(spark_rows, names)
        if output.selects:
            assert in_order(merged(query, output, events), names) == theirs
        assert in_order(evaluated(query, output, events, references or {}), names) == theirs


def in_order(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return the rows as sorted texts that tell all floats apart."""
    return sorted(map(repr, zip(*(table[name].to_pylist() for name in names), strict=True)))


def evaluated(
    query: CompiledQuery,
    output: CompiledOutput,
    events: Mapping[str, Sequence[Row]],
    references: Mapping[str, pa.Table],
) -> pa.Table:
    """Return the rows of an output, from all slices with events, with the columns of its SQL."""
    parts = [
        part.with_start(part.evaluation(references).rows(output)) for part in _parts(query, events) or [_nothing(query)]
    ]
    return pa.concat_tables(parts)


def merged(query: CompiledQuery, output: CompiledOutput, events: Mapping[str, Sequence[Row]]) -> pa.Table:
    """Return the rows of an output that has `selects`, from panes alone."""
    schema = published_schema(output.columns).append(SLICE_START)
    parts = (part.with_start(rows_of_slice(output, part.slice, part.panes_of)) for part in _parts(query, events))
    return pa.concat_tables([schema.empty_table(), *parts])


def require_same_in_parts(
    query: CompiledQuery,
    events: Mapping[str, Sequence[Row]],
    computed: Sequence[pa.Table],
    references: Mapping[str, pa.Table],
) -> None:
    """Raise AssertionError unless each slice has the same rows if it is computed in buckets and in pieces."""
    keys = shared_keys(query)
    outputs = slice_query(query, [(output, "") for output in query.outputs])
    for buckets, most in ((1, 1), (1, 3), *([] if keys is None else [(3, 1000), (2, 2)])):
        rows: list[list[pa.Table]] = [[table.slice(0, 0)] for table in computed]
        for part in _parts(query, events) or [_nothing(query)]:
            source = _Source(part, references)
            for number in range(buckets):
                bucket = Bucket(keys or {}, number, buckets)
                for tables in rows_of_bucket(outputs, part.slice, source, bucket, most):
                    for of_output, table in zip(rows, tables, strict=True):
                        of_output.append(part.with_start(table))
        for whole, parts in zip(computed, rows, strict=True):
            names = whole.column_names
            assert in_order(pa.concat_tables(parts, promote_options="default"), names) == in_order(whole, names)


@dataclass(frozen=True)
class _Source:
    """What the tasks computed of a slice."""

    part: "_Part"
    references: Mapping[str, pa.Table]

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        return self.part.panes_of(view, number)

    def events(self, compiled: CompiledInput) -> pa.Table:
        return self.part.views[compiled.view]

    def reference(self, view: str) -> pa.Table:
        return self.references[view]


@dataclass(frozen=True)
class _Part:
    """What a worker has of one slice."""

    query: CompiledQuery
    slice: Slice
    views: Mapping[str, pa.Table]
    """Events, or structs of panes, by the name of the view."""

    def evaluation(self, references: Mapping[str, pa.Table]) -> SliceEvaluation:
        bounds = SliceBounds(self.slice.start, self.slice.end, self.query.python_functions)
        return SliceEvaluation(bounds, (dict(self.views) | dict(references)).__getitem__, self._groups)

    def panes_of(self, view: str, number: int) -> list[pa.RecordBatch]:
        structs = self.views[view].column(number).combine_chunks().drop_null()
        return [pa.RecordBatch.from_struct_array(structs)] if len(structs) else []

    def with_start(self, rows: pa.Table) -> pa.Table:
        start = (self.slice.start - UNIX_EPOCH) // TICKS_PER_MICROSECOND
        starts = pa.repeat(pa.scalar(start, pa.int64()), len(rows)).cast(SLICE_START.type)
        return rows.append_column(SLICE_START, starts)

    def _groups(self, read: GroupsView) -> pa.Table:
        (view,) = (view for view in self.query.groups if view.name == read.name)
        batches: list[pa.RecordBatch] = []
        for window in view.groups.windows:
            table = pa.Table.from_batches(self.panes_of(window.view, window.number), window.aggregation.schema)
            batches += groups_of_panes(view.groups, window, self.slice, table)
        return pa.Table.from_batches(batches, view.groups.schema)


def _parts(query: CompiledQuery, events: Mapping[str, Sequence[Row]]) -> list[_Part]:
    """Return the slices that have events."""
    tables = {read.view: views.by_slice(read, events[read.alias]) for read in query.inputs}
    slices = sorted({slice_ for places in tables.values() for _, slice_ in places})
    return [_Part(query, slice_, dict(_views(query, slice_, tables))) for slice_ in slices]


def _nothing(query: CompiledQuery) -> _Part:
    slice_ = Slice(UNIX_EPOCH, UNIX_EPOCH + 1)
    return _Part(query, slice_, dict(_views(query, slice_, {read.view: {} for read in query.inputs})))


def _views(
    query: CompiledQuery, slice_: Slice, tables: Mapping[str, Mapping[tuple[str, Slice], pa.Table]]
) -> Iterator[tuple[str, pa.Table]]:
    for read in query.inputs:
        parts = {partition: table for (partition, of), table in sorted(tables[read.view].items()) if of == slice_}
        if read.aggregations:
            nothing = panes.schema(read.aggregations).empty_table()
            computed = (views.panes_of(read, partition, slice_, table) for partition, table in parts.items())
            yield read.view, pa.concat_tables([nothing, *computed])
        else:
            yield read.view, pa.concat_tables([order.schema(read).empty_table(), *parts.values()])
