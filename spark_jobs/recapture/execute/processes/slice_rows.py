"""The second step in a worker: the rows of a slice, from what the tasks wrote."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from recapture.execute.processes.task_files import TaskFiles, WrittenBatch, one_error
from recapture.model import JavaScriptFunction, ShapeComparison
from recapture.ordering.groups import groups_of_panes, rows_of_slice, sorted_rows
from recapture.query.merges import GroupsView
from recapture.query.model import UNANCHORED_COLUMN, CompiledInput, CompiledOutput, CompiledQuery
from recapture.run_files.computed import StagedSlice
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

if TYPE_CHECKING:
    from recapture.evaluate.statement import SliceEvaluation


@dataclass(frozen=True)
class SliceQuery:
    """What a worker needs of a query to compute the rows of a slice. A query that only merges panes has no trees."""

    inputs: tuple[CompiledInput, ...]
    groups: tuple[GroupsView, ...]
    functions: tuple[JavaScriptFunction | ShapeComparison, ...]
    references: Mapping[str, Path]
    """Files of reference data, by the name of the view."""
    outputs: tuple[tuple[CompiledOutput, str], ...]
    """Outputs, each with the address of its table."""


def slice_query(
    query: CompiledQuery, outputs: Sequence[tuple[CompiledOutput, str]], references: Mapping[str, Path]
) -> SliceQuery:
    """Return what the workers need of a query."""
    return SliceQuery(query.inputs, query.groups, query.python_functions, references, tuple(outputs))


def write_rows(query: SliceQuery, slice_: Slice, digest: str, batches: Sequence[WrittenBatch]) -> list[StagedSlice]:
    """Write the rows of each output in a slice, if it has any, from what the tasks wrote of the slice.

    Raise RunError if the query fails for a value, or if a file cannot be written.
    """
    with one_error(), closing(TaskFiles(batches, query.references)) as files:
        return list(_staged(query, slice_, digest, files))


def _staged(query: SliceQuery, slice_: Slice, digest: str, files: TaskFiles) -> Iterator[StagedSlice]:
    evaluation: SliceEvaluation | None = None
    for output, url in query.outputs:
        unanchored = 0
        if output.selects:
            rows = rows_of_slice(output, slice_, files.panes)
        else:
            evaluation = evaluation or _evaluation(query, slice_, files)
            rows = evaluation.rows(output)
            if UNANCHORED_COLUMN in rows.column_names:
                unanchored = pc.sum(rows[UNANCHORED_COLUMN]).as_py() or 0
                rows = rows.drop_columns(UNANCHORED_COLUMN)
            rows = sorted_rows(rows)
        if len(rows):
            path, size = write_slice_file(open_container(url), slice_.start, digest, rows)
            yield StagedSlice(output.alias, ticks.to_text(slice_.start), path, size, len(rows), unanchored)


def _evaluation(query: SliceQuery, slice_: Slice, files: TaskFiles) -> "SliceEvaluation":
    from recapture.evaluate.bounds import SliceBounds
    from recapture.evaluate.statement import SliceEvaluation

    inputs = {read.view: read for read in query.inputs}
    views = {view.name: view for view in query.groups}

    def rows(name: str) -> pa.Table:
        return files.events(inputs[name]) if name in inputs else files.reference(name)

    def groups(view: GroupsView) -> pa.Table:
        return merged_groups(views[view.name], slice_, files)

    return SliceEvaluation(SliceBounds(slice_.start, slice_.end, query.functions), rows, groups)


def merged_groups(view: GroupsView, slice_: Slice, files: TaskFiles) -> pa.Table:
    """Return the groups of a view in a slice, merged from panes."""
    batches: list[pa.RecordBatch] = []
    for window in view.groups.windows:
        table = pa.Table.from_batches(files.panes(window.view, window.number), window.aggregation.schema)
        batches += groups_of_panes(view.groups, window, slice_, table)
    return pa.Table.from_batches(batches, view.groups.schema)
