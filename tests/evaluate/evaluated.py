"""The rows of a query as the worker processes compute them, from events as rows of the views."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
from hypothesis import settings

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.execute.division import Bucket, rows_of_bucket
from recapture.execute.shared_keys import shared_keys
from recapture.execute.slice_rows import slice_query
from recapture.model import published_schema
from recapture.ordering import order, panes
from recapture.ordering.groups import groups_of_panes, rows_of_slice
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery
from recapture.query.plan.panes import GroupsView
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from tests.query import views

Row = dict[str, Any]
SLICE_START = pa.field("slice_start", pa.timestamp("us", tz="UTC"))
MOST_PIECES = 50
"""Number of pieces of a slice, about."""


def in_order(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return the rows as sorted texts that tell all floats apart."""
    return sorted(map(repr, zip(*(table[name].to_pylist() for name in names), strict=True)))


def evaluated(parts: Sequence["Part"], output: CompiledOutput, references: Mapping[str, pa.Table]) -> pa.Table:
    """Return the rows of an output, from all slices, with the columns of its SQL."""
    return pa.concat_tables([part.with_start(part.evaluation(references).rows(output)) for part in parts])


def merged(parts: Sequence["Part"], output: CompiledOutput) -> pa.Table:
    """Return the rows of an output that has `selects`, from panes alone."""
    schema = published_schema(output.columns).append(SLICE_START)
    rows = (part.with_start(rows_of_slice(output, part.slice, part.panes_of)) for part in parts)
    return pa.concat_tables([schema.empty_table(), *rows])


def require_same_in_parts(
    query: CompiledQuery, parts: Sequence["Part"], computed: Sequence[pa.Table], references: Mapping[str, pa.Table]
) -> None:
    """Raise AssertionError unless each slice has the same rows if it is computed in buckets and in pieces.

    Of many slices, each is computed in one of these ways, except in the profile `deep`.
    """
    keys = shared_keys(query)
    outputs = slice_query(query, [(output, "") for output in query.outputs])
    ways = ((1, 1), (1, 3), *([] if keys is None else [(3, 1000), (2, 2)]))
    is_deep = settings.get_current_profile_name() == "deep"
    for first in range(len(ways) if is_deep or len(parts) < len(ways) else 1):
        rows: list[list[pa.Table]] = [[table.slice(0, 0)] for table in computed]
        for turn, part in enumerate(parts, first):
            buckets, events_of_piece = ways[turn % len(ways)]
            source = _Source(part, references)
            most = max(events_of_piece, part.events // MOST_PIECES)
            for number in range(buckets):
                bucket = Bucket(keys or {}, number, buckets)
                for tables in rows_of_bucket(outputs, part.slice, source, bucket, most):
                    for output_rows, table in zip(rows, tables, strict=True):
                        output_rows.append(part.with_start(table))
        for whole, tables in zip(computed, rows, strict=True):
            names = whole.column_names
            assert in_order(pa.concat_tables(tables, promote_options="default"), names) == in_order(whole, names)


@dataclass(frozen=True)
class _Source:
    """What the tasks computed of a slice."""

    part: "Part"
    references: Mapping[str, pa.Table]

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        return self.part.panes_of(view, number)

    def events(self, compiled: CompiledInput) -> pa.Table:
        return self.part.views[compiled.view]

    def reference(self, view: str) -> pa.Table:
        return self.references[view]


@dataclass(frozen=True)
class Part:
    """What a worker has of one slice."""

    query: CompiledQuery
    slice: Slice
    views: Mapping[str, pa.Table]
    """Events, or structs of panes, by the name of the view."""

    @property
    def events(self) -> int:
        return sum(map(len, self.views.values()))

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


def parts_of(query: CompiledQuery, events: Mapping[str, Sequence[Row]]) -> list[Part]:
    """Return the slices that have events, or one without any."""
    tables: dict[Slice, dict[str, list[tuple[str, pa.Table]]]] = {}
    for read in query.inputs:
        for (partition, slice_), table in sorted(views.by_slice(read, events[read.alias]).items(), key=itemgetter(0)):
            tables.setdefault(slice_, {}).setdefault(read.view, []).append((partition, table))
    nothing = {Slice(UNIX_EPOCH, UNIX_EPOCH + 1): dict[str, list[tuple[str, pa.Table]]]()}
    return [Part(query, slice_, dict(_views(query, slice_, of))) for slice_, of in sorted((tables or nothing).items())]


def _views(
    query: CompiledQuery, slice_: Slice, tables: Mapping[str, Sequence[tuple[str, pa.Table]]]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield what a worker has of each input, from the events of its partitions."""
    for read in query.inputs:
        parts = tables.get(read.view, ())
        if read.aggregations:
            nothing = panes.schema(read.aggregations).empty_table()
            computed = (views.panes_of(read, partition, slice_, table) for partition, table in parts)
            yield read.view, pa.concat_tables([nothing, *computed])
        else:
            yield read.view, pa.concat_tables([order.schema(read).empty_table(), *(table for _, table in parts)])
