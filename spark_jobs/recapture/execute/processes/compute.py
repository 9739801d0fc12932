"""Order and aggregate a planned run in processes of this machine, without Spark, if its query needs none."""

import itertools
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

from recapture.execute import stage
from recapture.execute.processes.panes_files import PanesBatch, write_panes, write_rows
from recapture.execute.processes.workers import Workers
from recapture.execute.stage import InputTasks
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.run_files.staged import StagedSlice

T = TypeVar("T")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File in which Linux keeps the limit of a container: microseconds of CPU and of time, or `max`."""


def cores_of(master: str) -> int | None:
    """Return the number of cores that a Spark master stands for; None if it is not on this machine: local[4] => 4"""
    local = re.fullmatch(r"local(?:\[(\*|[1-9]\d*)(?:,\d+)?\])?", master)
    if local is None:
        return None
    return _cores() if local[1] == "*" else int(local[1] or 1)


def _cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        return min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # without a limit, or not on Linux
        return cores


def compute(
    workers: Workers,
    run: PlannedRun,
    scratch: Path,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> Computed:
    """Stage the rows of a planned run in these processes; see `stage.compute`.

    Temporary files are in `scratch`. `watch` is called whenever a process has done something, with the number of what
    is done and of all there is to do.
    """

    def staged(inputs: list[InputTasks]) -> list[StagedSlice]:
        tasks = [(of_input.context, task) for of_input in inputs for task in of_input.tasks]
        outputs = [(run.pipeline.compiled(output), output.table) for output in run.pipeline.outputs]
        slices = run.manifest.slices
        finished = itertools.count(1)

        def results(futures: Iterable[Future[T]]) -> list[T]:
            waiting = list(futures)
            for future in as_completed(waiting):
                future.result()
                watch(next(finished), len(tasks) + len(slices))
            return [future.result() for future in waiting]

        submit = workers.pool.submit
        panes = results(submit(write_panes, *task, scratch / f"{number}.arrow") for number, task in enumerate(tasks))
        of_slices: dict[int, list[PanesBatch]] = {planned.slice.start: [] for planned in slices}
        for batch in itertools.chain.from_iterable(panes):
            of_slices[batch.slice_start].append(batch)
        rows = results(
            submit(write_rows, outputs, planned.slice, planned.digest, of_slices[planned.slice.start])
            for planned in slices
        )
        return [file for of_slice in rows for file in of_slice]

    try:
        return stage.compute(run, workers.count, staged)
    except BrokenProcessPool:
        raise workers.broken("backfill fewer hours at once") from None
    except BaseException:
        workers.kill()  # before its temporary files are removed
        raise
