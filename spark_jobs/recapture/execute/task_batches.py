"""What a task computes, in batches of one slice: its events, or the panes of one aggregation."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from recapture.execute.tasks import TaskContext, run_task
from recapture.ordering import order, panes
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput

_BOUNDS = ("_slice_start", "_slice_end")


@dataclass(frozen=True)
class TaskBatch:
    """A batch that a task computes."""

    slice_start: int
    """Start of the slice, in ticks."""
    number: int | None
    """Number of the aggregation; None for events."""
    columns: pa.RecordBatch
    """Columns of `batch_schema`."""

    @property
    def rows(self) -> pa.RecordBatch:
        """The panes, or the events without the bounds of their slice."""
        if self.number is None:
            return self.columns
        return pa.RecordBatch.from_struct_array(self.columns.column(self.number))


def task_batches(context: TaskContext, task: Task) -> Iterator[TaskBatch]:
    """Run a task, and yield what it computes. Errors are those of `run_task`."""
    for batch in run_task(context, task):
        if context.input.aggregations:
            (number,) = (number for number, column in enumerate(batch.columns) if not column.null_count)
            yield TaskBatch(batch.column(number).field("_slice_start")[0].as_py(), number, batch)
        else:
            yield TaskBatch(batch["_slice_start"][0].as_py(), None, batch.drop_columns(list(_BOUNDS)))


def batch_schema(compiled: CompiledInput) -> pa.Schema:
    """Return the columns of the batches of an input."""
    return panes.schema(compiled.aggregations) if compiled.aggregations else event_schema(compiled)


def event_schema(compiled: CompiledInput) -> pa.Schema:
    """Return the columns of the events of an input: those of `order.schema` without the bounds of the slice."""
    return pa.schema([column for column in order.schema(compiled) if column.name not in _BOUNDS])
