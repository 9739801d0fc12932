"""What Airflow's database says of the slices of a pipeline: the DAG runs that compute them, and the schedule."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun as AirflowRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from capture_complete import BACKFILL, range_of_dag_run
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.time_model import ticks
from recapture.tools.coverage.activity import Activity, DagRun, RunState
from slice_schedule import first_slice


def activity_of(session: Session, pipeline: Pipeline) -> Activity:
    """Return the DAG runs of a pipeline and its schedule. A DAG that Airflow has not loaded schedules nothing."""
    dag = session.get(DagModel, pipeline.name)
    start = None if pipeline.schedule is None else pipeline.schedule.start
    first = None if dag is None or dag.is_stale else first_slice(session, pipeline.name, start)
    return Activity(
        tuple(_runs(session, pipeline.name)),
        None if first is None else ticks.from_datetime(first),
        dag is not None and dag.is_paused,
    )


def _runs(session: Session, dag_id: str) -> list[DagRun]:
    """Return the runs of a DAG that have a range."""
    states = TaskInstanceState.FAILED, TaskInstanceState.AWAITING_INPUT
    tasks = select(TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state).where(
        TaskInstance.dag_id == dag_id, TaskInstance.state.in_(states)
    )
    failed: dict[str, list[str]] = defaultdict(list)
    asking = set()
    for run_id, task_id, state in session.execute(tasks):
        if state == TaskInstanceState.FAILED:
            failed[run_id].append(task_id)
        else:
            asking.add(run_id)
    columns = (
        AirflowRun.run_id,
        AirflowRun.state,
        AirflowRun.run_type,
        AirflowRun.conf,
        AirflowRun.data_interval_start,
        AirflowRun.data_interval_end,
        AirflowRun.start_date,
        AirflowRun.queued_at,
        AirflowRun.run_after,
    )
    runs = []
    for run in session.execute(select(*columns).where(AirflowRun.dag_id == dag_id)):
        bounds = _range(run.conf or {}, run.data_interval_start, run.data_interval_end, run.run_type == BACKFILL)
        if bounds is not None:
            start, end = map(ticks.from_datetime, bounds)
            began = ticks.from_datetime(run.start_date or run.queued_at or run.run_after)
            failed_tasks = tuple(failed.get(run.run_id, ()))
            runs.append(DagRun(run.run_id, RunState(run.state), start, end, began, failed_tasks, run.run_id in asking))
    return runs


def _range(
    params: Mapping[str, Any], start: datetime | None, end: datetime | None, is_backfill: bool
) -> tuple[datetime, datetime] | None:
    """Return the range of a run; None for a run that its first task refuses."""
    try:
        return range_of_dag_run(params, start, end, is_backfill=is_backfill)
    except DefinitionError:
        return None
