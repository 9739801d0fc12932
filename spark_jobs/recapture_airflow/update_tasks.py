"""The tasks that only updates have: they take what is due, and write down what became of it."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context, task

from recapture.definition.pipeline import load
from recapture.errors import RunError
from recapture.printable import one_line
from recapture.run.stages import Stage
from recapture.time_model import ticks
from recapture_airflow.airflow_metrics import sends_figures
from recapture_airflow.dag_forms import RUN
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.run_range import DUE
from recapture_airflow.slice_schedule import CONTINUED
from recapture_airflow.task_results import Due, Stopped

WORKING = (Stage.PLAN, Stage.ORDER_AND_AGGREGATE, Stage.AUDIT, Stage.PUBLISH)
"""Stages after which the slices of an update are published."""
_LOG = logging.getLogger(__name__)


@task(task_id=DUE, multiple_outputs=False)
@fail_at_once()
@sends_figures
def due(file: str, *, dag_run: Any = None, ti: Any = None) -> dict[str, Any]:
    """Finish what was interrupted, and take the newest range that is due: return it as Due.

    Raise AirflowSkipException if nothing is due, or another run computes it. Raise RunError if the
    state cannot be read, or if nothing is due and something that was interrupted could not be finished.
    """
    from recapture.keep.due import tick
    from recapture.keep.job import give_back, newest_job, take
    from recapture.keep.sources import sources_of
    from recapture.keep.state import read_state
    from recapture.keep.summary import tick_summary
    from recapture.run.tables import tables_of
    from recapture.table.publish import bring_in_line

    pipeline = load(Path(file))
    sources = sources_of(pipeline)
    if ti.try_number > 1:
        give_back(sources, dag_run.run_id)
    reading = read_state(pipeline, sources, datetime.now(UTC))
    present = tick(reading.state)
    _log(tick_summary(pipeline.name, reading, present))
    reading.record(sources)
    unfinished = None
    if present.unfinished:
        try:
            bring_in_line(tables_of(pipeline), list(map(ticks.to_text, present.unfinished)))
        except RunError as error:  # the next update tries again, and one that has nothing else to do fails by it
            _LOG.error("a change that was interrupted could not be finished: %s", one_line(str(error)))
            unfinished = error
    job = newest_job(reading, present, sources, dag_run.run_id)
    if job is None:
        if unfinished is not None:
            raise unfinished
        raise AirflowSkipException("nothing is due")
    if not take(sources, job, reading.state.now):
        raise AirflowSkipException("another run computes the newest slices that are due")
    return Due(
        start=ticks.to_datetime(job.range.start),
        end=ticks.to_datetime(job.range.end),
        next=None if job.next is None else ticks.to_datetime(job.next),
        job=job.to_json(),
    ).to_json()


def _log(summary: dict[str, Any]) -> None:
    """Log what is due and why, what is left and what waits."""
    for slice_ in summary["due"]:
        _LOG.info("due: %s: %s", slice_["slice_start"], one_line("; ".join(slice_["reasons"])))
    for what in ("left", "waiting"):
        for range_ in summary[what]:
            said = [*range_["reasons"], *(f"waits for {reason}" for reason in range_["waits_for"])]
            _LOG.info("%s: %s to %s: %s", what, range_["from"], range_["to"], one_line("; ".join(said)))


@task(task_id="record")
@fail_at_once()
@sends_figures
def record_job(file: str, taken: dict[str, Any], *, dag_run: Any = None, ti: Any = None) -> None:
    """Write down what became of the range of an update, so that the next ones go on: see `keep.job.finish`."""
    from recapture.keep.job import finish, from_json
    from recapture.keep.sources import sources_of

    states = ti.get_task_states(dag_run.dag_id, run_ids=[dag_run.run_id], task_ids=list(WORKING))[dag_run.run_id]
    failed = [stage for stage in WORKING if states.get(stage) == "failed"]
    run, error = ti.xcom_pull(task_ids=Stage.PLAN), None
    if states.get(Stage.PUBLISH) != "success":
        where = f"the task {failed[0]}" if failed else "a task"
        run, error = None, f"{where} of the DAG run {dag_run.run_id} failed: see its log"
    is_stopped = Stopped.pull(ti) is not None
    now = ticks.from_datetime(datetime.now(UTC))
    finish(sources_of(load(Path(file))), from_json(Due.read(taken).job), now, run, error, is_stopped=is_stopped)


class NextUpdate(TriggerDagRunOperator):
    """Operator that lets the next update begin as soon as this one has ended, if it may have something to do.

    It runs before the slices are computed, so that it does not matter how this update ends.
    """

    template_fields = ("due",)

    def __init__(self, *, due: Any, **kwargs: Any) -> None:
        self.due = due
        super().__init__(logical_date=None, openlineage_inject_parent_info=False, **kwargs)

    def execute(self, context: Context) -> None:
        """Create the DAG run. Raise AirflowSkipException if nothing is left, or if a run is queued already."""
        newest = Due.read(self.due).next
        if newest is None:
            raise AirflowSkipException("nothing is left")
        task_instance = context["ti"]
        if task_instance.get_dr_count(self.trigger_dag_id, states=["queued"]):
            raise AirflowSkipException("an update is queued already")
        self.trigger_run_id = f"{CONTINUED}__{ticks.whole_seconds(newest)}__{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        super().execute(context)


class AskPerson(TriggerDagRunOperator):
    """Operator that starts the DAG which asks a person about a run that its audit stopped.

    The question has its own DAG run, so that the next updates do not wait for the answer.
    """

    template_fields = ("run",)

    def __init__(self, *, run: Any, **kwargs: Any) -> None:
        self.run = run
        super().__init__(
            logical_date=None, openlineage_inject_parent_info=False, skip_when_already_exists=True, **kwargs
        )

    def execute(self, context: Context) -> None:
        """Create the DAG run. Raise AirflowSkipException if there is nothing to ask."""
        stopped = Stopped.pull(context["ti"])
        if stopped is None or not stopped.asks:
            raise AirflowSkipException("the audit did not stop a run of a single slice")
        self.trigger_run_id = f"asked__{context['run_id']}"
        self.conf = {RUN: self.run}
        super().execute(context)
