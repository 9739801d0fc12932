"""Run Airflow's scheduler on a simulated clock: python simulated_schedule.py, with scenarios on standard input.

A scenario is a line of JSON, and so is its answer. Airflow's own code reads the DAG, creates its runs and lets them
start; only the tasks are simulated: a run waits until its slice is complete, then for the only slot of Spark.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from airflow import settings
from airflow._shared.timezones import timezone
from airflow.dag_processing.collection import update_dag_parsing_results_in_db
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.backfill import Backfill, BackfillDagRun, ReprocessBehavior, _create_backfill
from airflow.models.base import Base
from airflow.models.dag import DagModel
from airflow.models.dag_version import DagVersion
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.pool import Pool
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.timetables import interval
from airflow.utils.db import synchronize_log_template
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import delete, event, select

from dag_activity import activity_of
from recapture.definition.pipeline import load
from recapture.time_model import ticks

DAG = "telemetry"
ORIGIN = datetime(2026, 3, 1, tzinfo=UTC)
"""Hour 0 of every scenario. It lies in the past, as the database compares with its own clock."""
BUNDLE = "dags-folder"


@dataclass
class Scenario:
    """What happens, in hours from ORIGIN."""

    folder: str
    """Folder of the DAGs."""
    begin: float
    end: float
    wait: float
    """Time after the end of a slice at which it is complete."""
    slot: float = 0.1
    """Time for which a run has the slot."""
    step: float = 0.25
    parse: float = 1
    """Time after which the DAG processor parses the file again."""
    down: list[list[float]] = field(default_factory=list)
    """When neither the scheduler nor the DAG processor runs."""
    paused: list[list[float]] = field(default_factory=list)
    backfills: list[list[float]] = field(default_factory=list)
    """Time at which each backfill is created, and the starts of its first and its last slice."""


class Clock:
    """Simulated clock of Airflow."""

    def __init__(self) -> None:
        self.hour = 0.0
        timezone.utcnow = interval.utcnow = self.now

    def now(self) -> Any:
        return timezone.coerce_datetime(ORIGIN + timedelta(hours=self.hour))


def hour_of(instant: datetime) -> float:
    return (instant - ORIGIN) / timedelta(hours=1)


def simulate(scenario: Scenario, clock: Clock, dags: list[Any], scheduler: SchedulerJobRunner) -> dict[str, Any]:
    """Return the slices that ran, in the order in which they got the slot, and the runs without a slot."""
    slots: list[tuple[float, float, str]] = []
    free_at = scenario.begin
    backfills = sorted(scenario.backfills)
    steps = round((scenario.end - scenario.begin) / scenario.step)
    for number in range(steps):
        clock.hour = scenario.begin + number * scenario.step
        down, paused = (
            any(start <= clock.hour < end for start, end in spans) for spans in (scenario.down, scenario.paused)
        )
        with create_session() as session:
            if not number or (not down and clock.hour % scenario.parse < scenario.step):
                parsed(dags, session)
            session.scalar(select(DagModel).where(DagModel.dag_id == DAG)).is_paused = paused
        while backfills and backfills[0][0] <= clock.hour:
            _, *bounds = backfills.pop(0)
            first, last = (timezone.coerce_datetime(ORIGIN + timedelta(hours=hour)) for hour in bounds)
            _create_backfill(
                dag_id=DAG,
                from_date=first,
                to_date=last,
                max_active_runs=2,
                reverse=False,
                dag_run_conf={},
                triggering_user_name=None,
                reprocess_behavior=ReprocessBehavior.NONE,
            )
        while not down:
            with create_session() as session:
                if schedule(scheduler, session):
                    continue
                run = next_for_slot(scenario, clock, session) if free_at <= clock.hour else None
                if run is None:
                    break
                slots.append((hour_of(run.data_interval_start), clock.hour, run.run_id.partition("__")[0]))
                free_at = max(free_at, clock.hour - scenario.step) + scenario.slot
                finish(run, scheduler, session)
    with create_session() as session:
        left = session.scalars(select(DagRun).where(DagRun.state != DagRunState.SUCCESS))
        waiting = sorted(hour_of(run.data_interval_start) for run in left)
        activity = activity_of(session, load(Path(scenario.folder) / "pipelines" / "telemetry.yaml"))
    first = activity.schedule_start
    return {
        "slots": slots,
        "waiting": waiting,
        "first": None if first is None else hour_of(ticks.to_datetime(first)),
        "paused": activity.is_paused,
        "runs": [[hour_of(ticks.to_datetime(run.start)), run.state] for run in activity.runs],
    }


def parsed(dags: list[Any], session: Any) -> None:
    """Record the DAG as the DAG processor does after it has parsed the file."""
    update_dag_parsing_results_in_db(BUNDLE, None, dags, {}, None, set(), session)


def schedule(scheduler: SchedulerJobRunner, session: Any) -> bool:
    """Create the runs that are due, and let queued runs start; return whether a run was created."""
    dag = session.scalar(select(DagModel).where(DagModel.dag_id == DAG))
    due = dag.next_dagrun_create_after is not None and dag.next_dagrun_create_after <= timezone.utcnow()
    creates = due and not dag.is_paused and not dag.exceeds_max_non_backfill
    if creates:
        scheduler._create_dag_runs([dag], session)
        session.flush()
    scheduler._start_queued_dagruns(session)
    return bool(creates)


def next_for_slot(scenario: Scenario, clock: Clock, session: Any) -> DagRun | None:
    """Return the running run, of those whose slices are complete, that Airflow gives the slot."""
    complete_until = ORIGIN + timedelta(hours=clock.hour - scenario.wait)
    query = (
        select(DagRun)
        .join(TaskInstance, (TaskInstance.run_id == DagRun.run_id) & (TaskInstance.dag_id == DagRun.dag_id))
        .where(DagRun.state == DagRunState.RUNNING, TaskInstance.task_id == "order_and_aggregate")
        .where(DagRun.data_interval_end <= complete_until)
        .order_by(-TaskInstance.priority_weight, DagRun.logical_date)
        .limit(1)
    )
    run: DagRun | None = session.scalar(query)
    return run


def finish(run: DagRun, scheduler: SchedulerJobRunner, session: Any) -> None:
    """Let a run succeed, as the scheduler does when its last task has ended."""
    run.state = DagRunState.SUCCESS
    session.flush()
    dag = session.scalar(select(DagModel).where(DagModel.dag_id == DAG))
    scheduler._set_exceeds_max_active_runs(dag_model=dag, session=session)
    scheduler._start_queued_dagruns(session)


def order_of_slots(
    runs: list[tuple[str, int]], dags: list[Any], clock: Clock, scheduler: SchedulerJobRunner
) -> list[str]:
    """Return the ids of runs (type, hour) in the order in which the scheduler gives them the slot of `spark`."""
    clock.hour = 100.5
    with create_session() as session:
        parsed(dags, session)
        session.scalar(select(DagModel).where(DagModel.dag_id == DAG)).is_paused = False
    with create_session() as session:
        dag = scheduler._get_current_dag(dag_id=DAG, session=session)
        for kind, hour in runs:
            start, end = (timezone.coerce_datetime(ORIGIN + timedelta(hours=bound)) for bound in (hour, hour + 1))
            dag.create_dagrun(
                run_id=f"{kind}__{end.isoformat()}",
                logical_date=start,
                data_interval=(start, end),
                run_after=end,
                run_type=DagRunType(kind),
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.RUNNING,
                session=session,
            )
        session.flush()
        for task in session.scalars(select(TaskInstance)):
            ready = task.task_id == "order_and_aggregate"
            task.state = TaskInstanceState.SCHEDULED if ready else TaskInstanceState.SUCCESS
    order: list[str] = []
    while True:
        with create_session() as session:
            chosen = scheduler._executable_task_instances_to_queued(16, session)
            if not chosen:
                return order
            (task,) = chosen
            order.append(task.run_id)
            task.state = TaskInstanceState.SUCCESS
            session.merge(task)


def dags_in(folder: Path) -> list[Any]:
    """Return the DAG as the DAG processor parses it."""
    request = DagFileParseRequest(file=str(folder / "backfill.py"), bundle_path=folder, bundle_name=BUNDLE)
    return [dag for dag in _parse_file(request, structlog.get_logger()).serialized_dags if dag.dag_id == DAG]


def forget() -> None:
    """Remove what an earlier scenario left in the database."""
    with create_session() as session:
        for table in (TaskInstance, BackfillDagRun, DagRun, Backfill, SerializedDagModel, DagVersion, DagModel):
            session.execute(delete(table))


def main() -> None:
    """Answer every scenario. One with the key `slots` has the runs that ask for the slot at the same time."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    clock = Clock()
    event.listen(settings.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
    Base.metadata.create_all(settings.engine)
    synchronize_log_template()
    with create_session() as session:
        session.add(DagBundleModel(name=BUNDLE))
        pools = ("spark", "processes", "default_pool")
        session.add_all([Pool(pool=name, slots=1, include_deferred=False) for name in pools])
    for line in sys.stdin:
        forget()
        written = json.loads(line)
        dags, scheduler = dags_in(Path(written["folder"])), SchedulerJobRunner(Job(), num_runs=0)
        answer: Any = (
            order_of_slots(written["slots"], dags, clock, scheduler)
            if "slots" in written
            else simulate(Scenario(**written), clock, dags, scheduler)
        )
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
