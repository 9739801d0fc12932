"""Compute the rows of a run with an engine, while its suites are checked."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from recapture.commands.progress import ProgressBar
from recapture.execute.engine import cores_of
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.execute.spark.installed import require_one_pyspark
from recapture.run.leftovers import scratch_name
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[], None]
"""Raises DefinitionError if the run could not be audited."""


def compute_in_processes(run: PlannedRun, master: str, check: Check, bar: ProgressBar) -> Computed:
    """Stage the rows of a run with as many processes as `master` has cores. Stop as soon as `check` raises an error."""
    cores = cores_of(master)
    assert cores is not None
    scratch_of_run = scratch_name(run.pipeline, run.id)
    with _meanwhile(check) as checked, workers(cores) as processes, scratch_folder(scratch_of_run) as scratch:

        def watch(done: int, total: int) -> None:
            if checked.done():
                checked.result()
            bar.update(done, total)

        computed = compute(processes, run, scratch, watch)
        checked.result()
        return computed


def compute_with_spark(
    run: PlannedRun, master: str, check: Check, bar: ProgressBar, bundle: Path | None = None
) -> Computed:
    """Stage the rows of a run with Spark, unless `check` raises an error. Executors run Recapture from `bundle`."""
    require_one_pyspark()
    from recapture.execute.spark.compute import compute

    with (
        scratch_folder(scratch_name(run.pipeline, run.id)) as scratch,
        _meanwhile(check) as checked,
        _session(master, f"recapture {run.id}", scratch, bundle, bar) as spark,
    ):
        checked.result()
        return compute(spark, run)


@contextlib.contextmanager
def _session(master: str, name: str, scratch: Path, bundle: Path | None, bar: ProgressBar) -> "Iterator[SparkSession]":
    """Start a session, whose tasks the bar shows: on a server if the master is the address of Spark Connect."""
    from recapture.execute.spark import connect
    from recapture.execute.spark.session import spark_session

    if master.startswith(connect.SCHEME):
        with connect.connected_session(master, name, bundle) as spark, connect.reported_tasks(spark, bar.update):
            yield spark
        return
    with spark_session(master, name, scratch, bundle) as spark, _shown_tasks(spark, bar):
        yield spark


@contextlib.contextmanager
def _meanwhile(check: Check) -> Iterator[Future[None]]:
    """Yield the future of a call in another thread, and wait for it in the end."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(check)


@contextlib.contextmanager
def _shown_tasks(spark: "SparkSession", bar: ProgressBar) -> Iterator[None]:
    """Keep the progress bar at the number of tasks that Spark has finished."""
    from recapture.execute.spark.session import JAVA_ERRORS

    done = threading.Event()

    def watch() -> None:
        seen: set[int] = set()
        with contextlib.suppress(*JAVA_ERRORS):  # the thread that computes raises them
            tracker = spark.sparkContext.statusTracker()
            while not done.wait(0.5):
                seen.update(tracker.getActiveStageIds())
                stages_seen = [info for info in map(tracker.getStageInfo, seen) if info]
                total = sum(info.numTasks for info in stages_seen)
                if total:
                    bar.update(sum(info.numCompletedTasks for info in stages_seen), total)

    watcher = threading.Thread(target=watch, daemon=True)
    if bar.is_visible:
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher.is_alive():
            watcher.join()
