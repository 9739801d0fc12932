"""What Airflow's database says of the slices of a pipeline: the DAG runs that compute them, and its updates."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun as AirflowRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, PermanentError
from recapture.run.stages import Stage
from recapture.run_files.files import range_of_run
from recapture.time_model import ticks
from recapture.tools.coverage.activity import Activity, DagRun, RunState
from recapture_airflow.airflow_versions import ASKING
from recapture_airflow.dag_forms import RUN, dag_ids_of
from recapture_airflow.run_range import BACKFILL, DUE, range_of_dag_run
from recapture_airflow.task_results import Due


def activity_of(session: Session, pipeline: Pipeline) -> Activity:
    """Return the DAG runs of a pipeline, and what its updates keep. Airflow must have loaded their DAG."""
    dag_ids = dag_ids_of(pipeline)
    dags = {action: session.get(DagModel, dag_id) for action, dag_id in dag_ids.items()}
    update, since = dags["update"], None if pipeline.schedule is None else pipeline.schedule.since
    readers = {"backfill": _runs_by_hand, "update": _updates, "approval": _questions}
    runs = (
        run
        for action, ranges in readers.items()
        if action in dag_ids
        for run in _runs(session, dag_ids[action], ranges(session, dag_ids[action]), _is_paused(dags[action]))
    )
    return Activity(
        tuple(runs),
        update is not None and not update.is_stale,
        None if since is None else ticks.from_datetime(since),
        _is_paused(update),
    )


def _is_paused(dag: DagModel | None) -> bool:
    return dag is not None and dag.is_paused


def _runs(session: Session, dag_id: str, ranges: Mapping[str, tuple[int, int]], is_paused: bool) -> Iterator[DagRun]:
    """Yield the runs of a DAG that have a range. `ranges` are in ticks, by the id of the run."""
    states = TaskInstanceState.FAILED, ASKING
    tasks = select(TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state).where(
        TaskInstance.dag_id == dag_id, TaskInstance.state.in_(states)
    )
    failed: dict[str, list[str]] = defaultdict(list)
    asking = set()
    for run_id, task_id, state in session.execute(tasks):
        if state == TaskInstanceState.FAILED:
            failed[run_id].append(task_id)
        elif task_id == Stage.APPROVAL:
            asking.add(run_id)
    columns = AirflowRun.run_id, AirflowRun.state, AirflowRun.start_date, AirflowRun.queued_at, AirflowRun.run_after
    for run in session.execute(select(*columns).where(AirflowRun.dag_id == dag_id)):
        if run.run_id in ranges:
            yield DagRun(
                dag_id,
                run.run_id,
                RunState(run.state),
                *ranges[run.run_id],
                ticks.from_datetime(run.start_date or run.queued_at or run.run_after),
                tuple(failed.get(run.run_id, ())),
                run.run_id in asking,
                is_paused,
            )


def _runs_by_hand(session: Session, dag_id: str) -> dict[str, tuple[int, int]]:
    """Return the range of each run by hand and of Airflow's backfills, without those that the first task refuses."""
    columns = (
        AirflowRun.run_id,
        AirflowRun.run_type,
        AirflowRun.conf,
        AirflowRun.data_interval_start,
        AirflowRun.data_interval_end,
    )
    ranges = {}
    for run in session.execute(select(*columns).where(AirflowRun.dag_id == dag_id)):
        bounds = _range(run.conf or {}, run.data_interval_start, run.data_interval_end, run.run_type == BACKFILL)
        if bounds is not None:
            ranges[run.run_id] = ticks.from_datetime(bounds[0]), ticks.from_datetime(bounds[1])
    return ranges


def _updates(session: Session, dag_id: str) -> dict[str, tuple[int, int]]:
    """Return the range of each update that had something to do."""
    returned = XComModel.dag_id == dag_id, XComModel.task_id == DUE, XComModel.key == XCOM_RETURN_KEY
    ranges = {}
    for run_id, value in session.execute(select(XComModel.run_id, XComModel.value).where(*returned)):
        with suppress(PermanentError):  # an update of another version, which does not go on
            due = Due.read(json.loads(value) if isinstance(value, str) else value)
            ranges[run_id] = ticks.from_datetime(due.start), ticks.from_datetime(due.end)
    return ranges


def _questions(session: Session, dag_id: str) -> dict[str, tuple[int, int]]:
    """Return the range of each run that a person is, or was, asked about."""
    runs = session.execute(select(AirflowRun.run_id, AirflowRun.conf).where(AirflowRun.dag_id == dag_id))
    asked = ((run_id, range_of_run(str((conf or {}).get(RUN)))) for run_id, conf in runs)
    return {run_id: bounds for run_id, bounds in asked if bounds is not None}


def _range(
    params: Mapping[str, Any], start: datetime | None, end: datetime | None, is_backfill: bool
) -> tuple[datetime, datetime] | None:
    """Return the range of a run; None for a run that its first task refuses."""
    try:
        return range_of_dag_run(params, start, end, is_backfill=is_backfill)
    except DefinitionError:
        return None
