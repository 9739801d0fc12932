"""Order and aggregate a planned run in processes of this machine, without Spark, if its query needs none.

Tasks write their panes or their events, and reference data is read once. Then each slice is evaluated in one process.
"""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TypeVar

from recapture.execute.engine import Engine
from recapture.execute.processes.task_files import LESS_MEMORY, WrittenBatch, write_reference, write_rows, write_task
from recapture.execute.processes.workers import Workers
from recapture.execute.slice_rows import slice_query
from recapture.execute.stage import STAGE, InputTasks, joined_references, stage_rows
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.cost import computation
from recapture.run_files.planned import PlannedRun
from recapture.storage.took import Took, measured

T = TypeVar("T")


def compute(
    workers: Workers, run: PlannedRun, scratch: Path, watch: Callable[[int, int], None] = lambda done, of: None
) -> Computed:
    """Stage the rows of a planned run in these processes; see `stage_rows`.

    Temporary files are in `scratch`. `watch` is called whenever a process has done something, with the number of what
    is done and of all there is to do.
    """

    parts: list[Took] = []

    def staged(inputs: list[InputTasks]) -> list[StagedSlice]:
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
        work = slice_query(query, outputs)
        rows = results(
            submit(
                measured,
                partial(
                    write_rows,
                    work,
                    planned.slice,
                    planned.digest,
                    batches_by_slice[planned.slice.start],
                    references,
                ),
            )
            for planned in slices
        )
        return [file for files in rows for file in files]

    try:
        with computation(run, STAGE, Engine.PROCESSES, workers.count, parts):
            return stage_rows(run, workers.count, staged)
    except BrokenProcessPool:
        raise workers.broken(LESS_MEMORY) from None
    except BaseException:
        workers.kill()  # before its temporary files are removed
        raise
