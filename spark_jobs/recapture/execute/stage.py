"""Order and aggregate a planned run: what Spark and this machine's processes have in common."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from recapture.definition.index import index_of
from recapture.errors import PermanentError
from recapture.execute import profiles
from recapture.execute.references import JoinedReference
from recapture.execute.tasks import TaskContext
from recapture.model import published_schema
from recapture.ordering.order import Reading
from recapture.ordering.task import Task, split
from recapture.process import log
from recapture.process.wording import counted
from recapture.query.model import CompiledInput
from recapture.run_files.computed import METRICS, Computed, StagedSlice, write_computed
from recapture.run_files.files import PROFILE
from recapture.run_files.metrics import metric_rows
from recapture.run_files.planned import PlannedRun
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model.partition_metrics import PartitionMetrics

STAGE = "order_and_aggregate"
"""Name of the stage in what a run took."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputTasks:
    """The tasks of an input."""

    context: TaskContext
    tasks: list[Task]


WriteRows = Callable[[list[InputTasks]], Iterable[StagedSlice]]
"""Runs the tasks. The files that are then iterated over may still be written."""


def stage_rows(run: PlannedRun, task_bytes: int, write_rows: WriteRows) -> Computed:
    """Stage the rows of a planned run and write what it counted to the run files, and return both. Publish nothing.

    A task reads blobs with about `task_bytes`. Raise RunError if a blob is damaged or has changed since it was planned,
    or if the computation fails.
    """
    inputs = [_input_tasks(run, compiled, task_bytes) for compiled in run.pipeline.query.inputs]
    tasks = [task for input_tasks in inputs for task in input_tasks.tasks]
    with log.logged(_LOG, f"run {run.id}: order and aggregate in {counted(len(tasks), 'task')}") as results:
        rows = write_rows(inputs) if tasks else []
        metrics = _collected(run, tasks)
        staged = tuple(_with_empty_slices(run, rows))
        computed = Computed(staged, metrics)
        write_computed(run.files, computed)
        run.files.remove("counters")
        run.files.remove("profiles")
        results.append(f"staged {counted(sum(file.rows for file in staged), 'row')}")
    return computed


def joined_references(run: PlannedRun) -> Iterator[JoinedReference]:
    """Yield the reference data that a run reads."""
    for compiled in run.pipeline.query.references:
        section = run.pipeline.reference(compiled.alias)
        reader = section.reader(compiled.body_columns)
        yield JoinedReference(run.manifest.reference(compiled.alias), compiled, reader, section.container)


def _collected(run: PlannedRun, tasks: Sequence[Task]) -> tuple[PartitionMetrics, ...]:
    """Return what the tasks counted, and collect their profiles in one run file.

    If another process computes the same run at the same time, it may have done so already, and removed their files.
    """
    try:
        metrics = tuple(metric_rows(run.files, run.manifest, tasks))
        profiles.collect(run.files, tasks, metrics)
        return metrics
    except PermanentError:
        collected = run.files.find(METRICS)
        if collected is None or not run.files.exists(PROFILE):
            raise
        return collected


def _input_tasks(run: PlannedRun, compiled: CompiledInput, task_bytes: int) -> InputTasks:
    planned, section = run.manifest.input(compiled.alias), run.pipeline.section(compiled.alias)
    context = TaskContext(
        reading=Reading(
            compiled,
            run.pipeline.policies(compiled),
            run.pipeline.reader(compiled),
            quarantine_damaged=section.on_damaged_blob == "quarantine",
        ),
        container_url=section.container,
        run_files_url=run.files.container.url,
        run_id=run.id,
        logs=log.enabled(),
        verdicts=run.pipeline.verdicts is not None,
        index=index_of(run.pipeline, compiled),
    )
    return InputTasks(context, list(split(planned.slices, planned.blobs, task_bytes)))


def _with_empty_slices(run: PlannedRun, written: Iterable[StagedSlice]) -> Iterator[StagedSlice]:
    """Yield the written files, and write and yield an empty file for each other slice of each output."""
    staged = {(file.output, file.slice_start): file for file in written}
    for output in run.pipeline.outputs:
        compiled, table = run.pipeline.compiled(output), open_container(output.table)
        nothing = pa.Table.from_batches([], published_schema(compiled.columns))
        for start, run_slice in run.slices.items():
            if (output.alias, start) in staged:
                yield staged[output.alias, start]
            else:
                written_file = write_slice_file(table, run_slice.slice.start, run_slice.digest, nothing)
                yield StagedSlice(output.alias, start, *written_file, 0, 0)
