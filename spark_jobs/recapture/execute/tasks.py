"""What workers do, those of Spark and those of `processes`: run the tasks, which order and aggregate events.

A worker imports this module when it starts, so it imports neither the compiler of queries nor Spark.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from recapture.execute import profiles
from recapture.formats.event_keys import Index
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order
from recapture.ordering.quarantine import QUARANTINE_SCHEMA
from recapture.ordering.task import Task
from recapture.ordering.verdict_rows import verdicts_table
from recapture.process import log
from recapture.process.wording import counted
from recapture.query.model import CompiledInput
from recapture.run_files import blob_index
from recapture.run_files.files import RunFiles
from recapture.storage import Address, in_parallel, open_container
from recapture.table.files import parquet
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskContext:
    """Settings that all tasks of an input share. They are sent to the executors, so they hold no credentials."""

    reading: Reading
    container_url: Address
    run_files_url: str
    """Address of the container of the run files: the first output's table."""
    run_id: str
    logs: bool
    verdicts: bool = False
    """Whether the pipeline has a table of verdicts."""
    index: Index | None = None
    """Index of the input; None if it has none."""

    @property
    def input(self) -> CompiledInput:
        return self.reading.compiled


def run_task(context: TaskContext, task: Task) -> Iterator[pa.RecordBatch]:
    if context.logs:
        log.enable()
    files = RunFiles(open_container(context.run_files_url), context.run_id)
    container = open_container(context.container_url)
    batches, counters_by_slice = order(
        *(task, container, context.reading),
        aggregate=bool(context.input.aggregations),
        verdicts=context.verdicts,
        index=() if context.index is None else context.index.keys,
    )
    with log.logged(_LOG, f"run {context.run_id}: {_description(task)}") as results:
        yield from batches
        in_parallel(partial(_write_rows, files), counters_by_slice.items())
        counts = tuple(counters.metrics(context.reading.policies) for counters in counters_by_slice.values())
        files.write(files.counters_file(task.input, task.partition, task.slices[0].slice), counts)
        profiles.write(files, task, counters_by_slice)
        if context.index is not None:
            blob_index.write(files, context.index.digest, task.slices[0].slice, [*counters_by_slice.values()])
        results.append(counted(sum(counters.events for counters in counters_by_slice.values()), "event"))


def _description(task: Task) -> str:
    first, last = (ticks.to_text(instant) for instant in (task.slices[0].slice.start, task.slices[-1].slice.end))
    size = sum(pinned.blob.size for pinned in task.blobs)
    blobs = f"{counted(len(task.blobs), 'blob')} ({size:,} bytes)"
    return f"input {task.input}, partition {task.partition}, slices {first} to {last}, {blobs}"


def _write_rows(files: RunFiles, counted_slice: tuple[Slice, Counters]) -> None:
    """Write what a task quarantined and judged in a slice. A retry overwrites the same files."""
    slice_, counters = counted_slice
    if counters.not_on_time:
        files.container.write(
            files.verdicts_name(counters.input, counters.partition, slice_),
            parquet(verdicts_table(counters.input, counters.partition, counters.not_on_time)),
        )
    if counters.quarantine:
        files.container.write(
            files.quarantine_name(counters.input, counters.partition, slice_),
            parquet(pa.Table.from_batches(counters.quarantine, QUARANTINE_SCHEMA)),
        )
