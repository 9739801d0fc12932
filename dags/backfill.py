"""Three DAGs for every file in dags/pipelines: one computes slices, one rolls them back, one finds changed blobs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, chain

import backfill_tasks as tasks
from pipeline_files import load_all
from recapture.definition.pipeline import Pipeline
from slice_schedule import OLDEST, NewestFirst, SliceTimetable, most_active_runs
from stage_tasks import stage_tasks

PIPELINES = Path(__file__).parent / "pipelines"
APPLICATION = Path(__file__).resolve().parents[1] / "spark_jobs" / "backfill.py"
"""What Spark runs. It is in the same checkout as the DAGs, which the plugins need not be."""


def dag_of(pipeline: Pipeline, action: str, schedule: Any, description: str, **settings: Any) -> DAG:
    """Return a DAG of a pipeline without its tasks, with the settings that all DAGs share."""
    return DAG(
        tasks.dag_ids_of(pipeline)[action],
        schedule=schedule,
        description=description,
        start_date=OLDEST,
        catchup=False,
        default_args={
            "owner": "recapture",
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "retry_policy": tasks.RETRY_POLICY,
            "weight_rule": NewestFirst(),
            "pre_execute": tasks.prepare,
        },
        tags=list(dict.fromkeys(["recapture", *(tag for section in pipeline.inputs for tag in section.tags)])),
        **settings,
    )


def backfill(pipeline: Pipeline) -> DAG:
    """Return the DAG that computes slices. Its tasks are the stages of `recapture backfill`."""
    start = None if pipeline.schedule is None else pipeline.schedule.start
    with dag_of(
        pipeline,
        "backfill",
        SliceTimetable(pipeline.slice_hours, start),
        f"{', '.join(section.source for section in pipeline.inputs)} to {', '.join(tasks.assets_of(pipeline))}",
        max_active_runs=most_active_runs(pipeline),
        params=tasks.range_params(
            "Empty: the run computes the slice of its data interval, the last one that has ended."
        )
        | tasks.loss_param()
        | tasks.suite_params(pipeline),
        doc_md=tasks.DOCUMENTATION,
    ) as dag:
        chain(*stage_tasks(pipeline, APPLICATION))
    return dag


def rollback(pipeline: Pipeline) -> DAG:
    """Return the DAG that takes back the last publication of slices. It runs only when it is triggered."""
    with dag_of(
        pipeline,
        "rollback",
        None,
        f"Take back the last publication of slices of {pipeline.name}",
        params=tasks.range_params(),
        doc_md=tasks.ROLLBACK_DOCUMENTATION,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.rollback.override(outlets=list(tasks.assets_of(pipeline).values()))(str(pipeline.file))
    return dag


def check(pipeline: Pipeline) -> DAG:
    """Return the DAG that finds published slices whose blobs have changed. One run at a time writes their record."""
    with dag_of(
        pipeline,
        "check",
        "@daily",
        f"Find published slices of {pipeline.name} whose blobs have changed",
        max_active_runs=1,
        params=tasks.range_params("Empty: the last seven days."),
        doc_md=tasks.CHECK_DOCUMENTATION,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.check(str(pipeline.file))
    return dag


# pipeline_errors.py raises the errors. Raising them here would keep this module from loading any pipeline.
pipelines, _ = load_all(PIPELINES)
dags = [dag_of_pipeline(pipeline) for pipeline in pipelines for dag_of_pipeline in (backfill, rollback, check)]
globals().update({dag.dag_id: dag for dag in dags})
