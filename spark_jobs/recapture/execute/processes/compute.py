"""Order and aggregate a planned run in processes of this machine, without Spark, if its query needs none.

Tasks write their panes or their events, and reference data is read once. Then each slice is evaluated in one process; a
slice that would need too much memory, or that would leave cores idle, is evaluated in parts, whose rows are merged.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TypeVar

from recapture.archive.manifest import RunSlice
from recapture.execute.division import Bucket, buckets_of_slice
from recapture.execute.engine import Engine
from recapture.execute.memory import bytes_per_event, memory_warnings, share_of_worker
from recapture.execute.processes.slice_parts import merge_runs, write_bucket
from recapture.execute.processes.task_files import LESS_MEMORY, WrittenBatch, write_reference, write_rows, write_task
from recapture.execute.processes.workers import Workers
from recapture.execute.shared_keys import shared_keys
from recapture.execute.slice_rows import slice_query
from recapture.execute.sorted_runs import Run
from recapture.execute.stage import STAGE, InputTasks, joined_references, stage_rows
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.cost import computation
from recapture.run_files.planned import PlannedRun
from recapture.storage.took import Took, measured

SMALLEST_TASK = 32 * 1024 * 1024
"""Smallest size that tasks are planned for, in bytes; a task may still be smaller.

Every task has a start-up cost, and reads blobs that its neighbours read too.
"""
TASKS_PER_CORE = 2

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def compute(
    workers: Workers,
    run: PlannedRun,
    scratch: Path,
    watch: Callable[[int, int], None] = lambda done, of: None,
    share: int | None = None,
) -> Computed:
    """Stage the rows of a planned run in these processes; see `stage_rows`.

    Temporary files are in `scratch`. `watch` is called whenever a process has done something, with the number of what
    is done and of all there is to do. `share` is the memory that the events of a slice may take in one worker, in
    bytes; by default, that of this machine or container is divided among the workers.
    """

    parts: list[Took] = []

    def staged(inputs: list[InputTasks]) -> Iterator[StagedSlice]:
        tasks = [(input_tasks.context, task) for input_tasks in inputs for task in input_tasks.tasks]
        query, slices = run.pipeline.query, run.manifest.slices
        outputs = [(run.pipeline.compiled(output), output.table) for output in run.pipeline.outputs]
        references = {
            compiled.view: scratch / f"reference-{number}.arrow" for number, compiled in enumerate(query.references)
        }
        finished = itertools.count(1)
        all_work = len(tasks) + len(references) + len(slices)

        def results(futures: Iterable[Future[tuple[T, Took]]]) -> list[T]:
            waiting = list(futures)
            for future in as_completed(waiting):
                parts.append(future.result()[1])
                watch(next(finished), all_work)
            return [future.result()[0] for future in waiting]

        submit = workers.pool.submit
        written_references = [
            submit(measured, partial(write_reference, reference, references[reference.compiled.view]))
            for reference in joined_references(run)
        ]
        written = results(
            submit(measured, partial(write_task, *task, scratch / f"{number}.arrow"))
            for number, task in enumerate(tasks)
        )
        results(written_references)
        batches_by_slice: dict[int, list[WrittenBatch]] = {planned.slice.start: [] for planned in slices}
        for batch in itertools.chain.from_iterable(written):
            batches_by_slice[batch.slice_start].append(batch)
        events_by_slice = {
            planned.slice: sum(batch.rows for batch in batches_by_slice[planned.slice.start]) for planned in slices
        }
        for warning in memory_warnings(query, events_by_slice, workers.count):
            _LOG.warning("run %s: %s", run.id, warning)
        work, keys = slice_query(query, outputs), shared_keys(query)
        most = max(1, (share or share_of_worker(workers.count)) // bytes_per_event(query))
        # Rows that never meet are merged as slowly as they are computed.
        useful_workers = workers.count if keys is not None and any(keys.values()) else 1
        whole: list[Future[tuple[list[StagedSlice], Took]]] = []
        parts_of_slices: list[tuple[RunSlice, list[Future[tuple[list[list[Run]], Took]]]]] = []
        for planned in slices:
            batches = batches_by_slice[planned.slice.start]
            events = events_by_slice[planned.slice]
            buckets = 1 if keys is None else buckets_of_slice(events, most, useful_workers, len(slices))
            if buckets == 1 and events <= most:
                write = partial(write_rows, work, planned.slice, planned.digest, batches, references)
                whole.append(submit(measured, write))
                continue
            all_work += buckets
            futures = [
                submit(
                    measured,
                    partial(
                        write_bucket,
                        *(work, planned.slice, Bucket(keys or {}, bucket, buckets), most),
                        *(batches, references, scratch),
                    ),
                )
                for bucket in range(buckets)
            ]
            parts_of_slices.append((planned, futures))

        def written_rows() -> Iterator[StagedSlice]:
            for files in results(whole):
                yield from files
            merging = []
            for planned, futures in parts_of_slices:
                staged_outputs = zip(*results(futures), strict=True)
                runs = [[*itertools.chain.from_iterable(staged_buckets)] for staged_buckets in staged_outputs]
                merging.append(submit(measured, partial(merge_runs, work, planned.slice, planned.digest, runs)))
            for files in results(merging):
                yield from files

        return written_rows()

    try:
        task_bytes = max(SMALLEST_TASK, run.manifest.size // (TASKS_PER_CORE * workers.count))
        with computation(run, STAGE, Engine.PROCESSES, lambda: workers.count, parts):
            return stage_rows(run, task_bytes, staged)
    except BrokenProcessPool:
        raise workers.broken(LESS_MEMORY) from None
    except BaseException:
        workers.kill()  # before its temporary files are removed
        raise
