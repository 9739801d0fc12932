"""The first task of a run, and the task that ends its lease if it fails."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.sdk import BaseOperator, Context, TriggerRule, task
from airflow.utils.state import DagRunState

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError, RunError
from recapture.printable import one_line
from recapture.run.stages import Stage
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture_airflow.airflow_metrics import sends_figures
from recapture_airflow.dag_forms import AT, STAGE, dag_ids_of, parameters_of
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.lineage import Lineage, WithLineage, stage_task
from recapture_airflow.neighbour_runs import computes_neighbours, run_of_neighbours
from recapture_airflow.neighbour_trigger import DELETED, DagRunEnded
from recapture_airflow.run_later import request_later
from recapture_airflow.run_notifications import notifiers_of
from recapture_airflow.run_range import BACKFILL, range_of_dag_run
from recapture_airflow.task_results import Due, Stopped

POLL_SECONDS = 20
"""Time between two looks of the triggerer at a run of neighbours."""
_LOG = logging.getLogger(__name__)


class Plan(WithLineage, BaseOperator):
    """Operator that plans a run by hand, or of Airflow's backfill, and returns the run's id.

    If slices next to that of a backfill's run are due and have active runs as well, one more DAG run computes all of
    them, and the task waits for it without a slot. If that run fails, halves of its slices are computed together, so
    that only the run of the slice at fault fails in the end. A staged run is about its own slice.
    """

    lineage = Lineage.READS_ARCHIVE

    def __init__(self, *, file: str, **kwargs: Any) -> None:
        self.file = file
        super().__init__(**kwargs)

    @fail_at_once()
    def execute(self, context: Context) -> str:
        """Plan the run.

        Raise AirflowSkipException if the slice of Airflow's backfill is up to date, or if the trigger form has a time
        for later, after the range was requested. Raise RunError if Capture has not written the range yet, and
        DefinitionError if the range is too long for one run.
        Fail at once as `plan_range` does.
        """
        return self._plan(context, None)

    @fail_at_once()
    def resume(self, context: Context, event: dict[str, str], block: Sequence[int]) -> str:
        """Go on after a run that computed slices of a block, given by its bounds in ticks: see `execute`.

        `event` is that of DagRunEnded. After a run that succeeded, the slice may have been left by its budget. After
        one that was deleted, the slices that it left are computed together again.
        """
        if event["state"] == DELETED:
            _LOG.warning("the DAG run %s was deleted before it ended: its slices are planned again", event["run_id"])
        return self._plan(context, tuple(block) if event["state"] == DagRunState.FAILED else None)

    def _plan(self, context: Context, failed: tuple[int, ...] | None) -> str:
        from recapture.keep.claims import hold
        from recapture.keep.holding import present
        from recapture.keep.up_to_date import is_up_to_date
        from recapture.run.plan import require_one_run
        from recapture.run.progress import completeness
        from recapture.run.slices import require_whole_slices
        from recapture.run_files.work import WORK

        dag_run: Any = context["dag_run"]
        pipeline, params, is_backfill = load(Path(self.file)), dict(context["params"]), dag_run.run_type == BACKFILL
        interval = dag_run.data_interval_start, dag_run.data_interval_end
        start, end = range_of_dag_run(params, *interval, is_backfill=is_backfill)
        require_whole_slices(pipeline, start, end)
        if params.get(AT):
            if is_backfill:
                raise DefinitionError(
                    f"`{AT}` contradicts Airflow's backfill: create the backfill again without `{AT}`"
                )
            request = request_later(pipeline, start, end, params, dag_run)
            raise AirflowSkipException(
                f"request {request['id']} is made: an update computes the range at {request['at']} or later. The page "
                "Coverage lists it, and can cancel it until an update has started it"
            )
        if is_backfill and is_up_to_date(pipeline, start, end):
            raise AirflowSkipException(
                f"slice {start.isoformat()} is up to date: it is published, and neither its blobs nor the definition "
                "have changed. Trigger the DAG with `from` and `to` to compute it anyway"
            )
        require_one_run(pipeline, start, end)
        is_provisional = pipeline.schedule is not None and pipeline.schedule.provisional
        waiting = () if is_provisional else completeness(pipeline, start, end, datetime.now(UTC)).waiting
        if waiting:
            raise RunError(
                f"Capture has not written the range yet: {'; '.join(waiting)}. Choose an earlier `to`, or wait: the "
                f"DAG {dag_ids_of(pipeline)['update']} computes slices when they are complete"
            )
        if is_backfill and not params.get(STAGE):
            neighbours = run_of_neighbours(context, pipeline, start, failed)
            if neighbours is not None:
                self._defer(pipeline.name, *neighbours)
        run = _planned(pipeline, start, end, parameters_of(params), dag_run)
        first, last = map(ticks.from_datetime, (start, end))
        run_files = open_container(pipeline.outputs[0].table)
        WORK.change(run_files, lambda work: hold(work, dag_run.run_id, first, last, present()))
        return run

    def _defer(self, dag_id: str, run_id: str, block: tuple[int, int]) -> None:
        """Let the task go on when a DAG run has ended: this raises TaskDeferred."""
        _LOG.info("waiting for the DAG run %s, which computes the slice together with its neighbours", run_id)
        self.defer(
            trigger=DagRunEnded(dag_id, run_id, POLL_SECONDS),
            method_name="resume",
            kwargs={"block": list(block)},
        )


@stage_task(Lineage.READS_ARCHIVE, task_id=Stage.PLAN)
@fail_at_once()
def plan_range(file: str, newest: dict[str, Any], *, dag_run: Any = None) -> str:
    """Plan a run of the range that is due, `newest`, and return the run's id.

    Fail at once for a mistake in the pipeline file or the range, and if a notifier cannot be used.
    """
    due = Due.read(newest)
    return _planned(load(Path(file)), due.start, due.end, {}, dag_run)


def _planned(pipeline: Pipeline, start: datetime, end: datetime, parameters: dict[str, Any], dag_run: Any) -> str:
    """Plan a run, remove what an interrupted run of these slices left, and return the run's id."""
    from recapture.run.leftovers import remove_leftovers
    from recapture.run.plan import plan_run
    from recapture.run_files.contents import PLANNED_BY, PlannedBy

    notifiers_of(pipeline)
    run = plan_run(pipeline, start, end, parameters)
    run.files.write(PLANNED_BY, PlannedBy(dag_run.dag_id, dag_run.run_id))
    for leftover in remove_leftovers(pipeline, run.id):
        _LOG.info("removed a leftover of an interrupted run of these slices: %s", one_line(leftover))
    return run.id


@task(task_id="record", trigger_rule=TriggerRule.ONE_FAILED)
@fail_at_once()
@sends_figures
def record_failure(file: str, *, dag_run: Any = None, ti: Any = None) -> None:
    """Let updates compute the range of a run that failed.

    Of a run that computed neighbours, write down that it failed, so that its halves are computed next.
    """
    from recapture.keep.claims import release
    from recapture.keep.job import record_error
    from recapture.keep.sources import sources_of
    from recapture.run_files.planned import readable_manifest
    from recapture.run_files.work import WORK

    pipeline, run = load(Path(file)), ti.xcom_pull(task_ids=Stage.PLAN)
    manifest = None if run is None else readable_manifest(pipeline, run)
    is_stopped = Stopped.pull(ti) is not None
    if computes_neighbours(dag_run.run_id) and manifest is not None and not is_stopped:
        error = f"a task of the DAG run {dag_run.run_id} failed: see its log"
        record_error(sources_of(pipeline), manifest, ticks.from_datetime(datetime.now(UTC)), error)
    run_files = open_container(pipeline.outputs[0].table)
    WORK.change(run_files, lambda work: release(work, dag_run.run_id))
