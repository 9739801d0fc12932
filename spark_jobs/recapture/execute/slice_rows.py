"""The second step in a worker: the rows of a slice, from what the tasks computed of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from recapture.evaluate.faults import naming
from recapture.model import JavaScriptFunction, ShapeComparison
from recapture.ordering.groups import groups_of_panes, rows_of_slice
from recapture.ordering.row_order import sorted_rows
from recapture.query.model import UNANCHORED_COLUMN, CompiledInput, CompiledOutput, CompiledQuery
from recapture.query.plan.panes import GroupsView
from recapture.run_files.computed import StagedSlice
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

if TYPE_CHECKING:
    from recapture.evaluate.statement import SliceEvaluation


class SliceSource(Protocol):
    """What the tasks computed of a slice, and the reference data."""

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        """Return the panes of an aggregation of an input."""

    def events(self, compiled: CompiledInput) -> pa.Table:
        """Return the ordered events of an input, one partition after another."""

    def reference(self, view: str) -> pa.Table:
        """Return the rows of reference data."""


@dataclass(frozen=True)
class SliceQuery:
    """What a worker needs of a query to compute the rows of a slice. A query that only merges panes has no trees."""

    inputs: tuple[CompiledInput, ...]
    groups: tuple[GroupsView, ...]
    functions: tuple[JavaScriptFunction | ShapeComparison, ...]
    outputs: tuple[tuple[CompiledOutput, str], ...]
    """Outputs, each with the address of its table."""


def slice_query(query: CompiledQuery, outputs: Sequence[tuple[CompiledOutput, str]]) -> SliceQuery:
    """Return what the workers need of a query."""
    return SliceQuery(query.inputs, query.groups, query.python_functions, tuple(outputs))


def rows_of_outputs(query: SliceQuery, slice_: Slice, source: SliceSource) -> Iterator[pa.Table]:
    """Yield the rows of each output in a slice, in no particular order.

    They have the published columns, and `_unanchored` if the query has sessions. Raise RunError if the query fails for
    a value.
    """
    evaluation: SliceEvaluation | None = None
    for output, _ in query.outputs:
        with naming(f"output {output.alias}"):
            if output.selects:
                rows = rows_of_slice(output, slice_, source.panes)
            else:
                evaluation = evaluation or _evaluation(query, slice_, source)
                rows = evaluation.rows(output)
        yield rows


def stage_output(output: CompiledOutput, url: str, start: int, digest: str, rows: pa.Table) -> Iterator[StagedSlice]:
    """Write the rows of an output in a slice to one sorted file, and yield it; nothing if there are no rows.

    `url` is the address of the output's table. `start` and `digest` are those of the slice.
    """
    rows, unanchored = without_marks(rows)
    if len(rows):
        path, size = write_slice_file(open_container(url), start, digest, sorted_rows(rows))
        yield StagedSlice(output.alias, ticks.to_text(start), path, size, len(rows), unanchored)


def without_marks(rows: pa.Table) -> tuple[pa.Table, int]:
    """Return the published columns of rows, and how many belong to sessions cut by the rule for sparse streams."""
    if UNANCHORED_COLUMN not in rows.column_names:
        return rows, 0
    return rows.drop_columns(UNANCHORED_COLUMN), pc.sum(rows[UNANCHORED_COLUMN]).as_py() or 0


def _evaluation(query: SliceQuery, slice_: Slice, source: SliceSource) -> "SliceEvaluation":
    from recapture.evaluate.bounds import SliceBounds
    from recapture.evaluate.statement import SliceEvaluation

    inputs = {read.view: read for read in query.inputs}
    views = {view.name: view for view in query.groups}

    def rows(name: str) -> pa.Table:
        return source.events(inputs[name]) if name in inputs else source.reference(name)

    def groups(view: GroupsView) -> pa.Table:
        return merged_groups(views[view.name], slice_, source)

    return SliceEvaluation(SliceBounds(slice_.start, slice_.end, query.functions), rows, groups)


def merged_groups(view: GroupsView, slice_: Slice, source: SliceSource) -> pa.Table:
    """Return the groups of a view in a slice, merged from panes."""
    batches: list[pa.RecordBatch] = []
    for window in view.groups.windows:
        table = pa.Table.from_batches(source.panes(window.view, window.number), window.aggregation.schema)
        batches += groups_of_panes(view.groups, window, slice_, table)
    return pa.Table.from_batches(batches, view.groups.schema)
