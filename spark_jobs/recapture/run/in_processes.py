"""Compute a planned run in processes of this machine, for a process that also does other things, such as Airflow's."""

from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import available_cores
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import prepare, workers
from recapture.process.startup import stop_fork_server
from recapture.run.leftovers import scratch_name
from recapture.run_files.planned import load_run
from recapture.storage.scratch import remove_abandoned, scratch_folder


def compute_in_processes(pipeline: Pipeline, run_id: str) -> None:
    """Stage the rows of a planned run with all cores that this process may use. No process is left in the end.

    First remove the temporary files of an attempt that was killed.
    """
    try:
        prepare()
        run = load_run(pipeline, run_id)
        scratch_of_run = scratch_name(pipeline, run.id)
        remove_abandoned(scratch_of_run)
        with workers(available_cores()) as processes, scratch_folder(scratch_of_run) as scratch:
            compute(processes, run, scratch)
    finally:
        stop_fork_server()
