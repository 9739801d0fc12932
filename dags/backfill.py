"""The DAGs of every file in dags/pipelines: they update its tables, compute slices by hand, roll back and check."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

import backfill_tasks as tasks
import dag_docs
import dag_forms
from pipeline_files import load_all
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Schedule
from slice_schedule import OLDEST, NewestFirst, SliceTimetable, every
from stage_tasks import approval_tasks, backfill_tasks, update_tasks

PIPELINES = Path(__file__).parent / "pipelines"
APPLICATION = Path(__file__).resolve().parents[1] / "spark_jobs" / "backfill.py"
"""What Spark runs. It is in the same checkout as the DAGs, which the plugins need not be."""
LONGEST_UPDATE = timedelta(days=1)
"""Time after which an update fails, for example because a pool is missing, so that the next one begins."""
MOST_QUESTIONS = 100
"""Number of runs of a DAG that may be active at once: runs that wait for a person keep no others from starting."""


def dag_of(pipeline: Pipeline, action: str, schedule: Any, description: str, **settings: Any) -> DAG:
    """Return a DAG of a pipeline without its tasks, with the settings that all DAGs share."""
    return DAG(
        dag_forms.dag_ids_of(pipeline)[action],
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


def update(pipeline: Pipeline) -> DAG:
    """Return the DAG that keeps the tables up to date, one run at a time: see `recapture update`."""
    with dag_of(
        pipeline,
        "update",
        every((pipeline.schedule or Schedule()).every_minutes),
        f"Keep the tables of {pipeline.name} up to date",
        max_active_runs=1,
        dagrun_timeout=LONGEST_UPDATE,
        doc_md=dag_docs.UPDATE,
    ) as dag:
        update_tasks(pipeline, APPLICATION)
    return dag


def approval(pipeline: Pipeline) -> DAG:
    """Return the DAG that asks a person about runs of updates that their audits stopped."""
    with dag_of(
        pipeline,
        "approval",
        None,
        f"Ask whether to publish runs of {pipeline.name} that their audits stopped",
        max_active_runs=MOST_QUESTIONS,
        params=dag_forms.run_param(),
        doc_md=dag_docs.APPROVAL,
        is_paused_upon_creation=False,
    ) as dag:
        approval_tasks(pipeline)
    return dag


def backfill(pipeline: Pipeline) -> DAG:
    """Return the DAG that computes slices by hand and in Airflow's backfills. Its tasks are the stages of a run."""
    with dag_of(
        pipeline,
        "backfill",
        SliceTimetable(pipeline.slice_hours),
        f"{', '.join(section.source for section in pipeline.inputs)} to {', '.join(dag_forms.assets_of(pipeline))}",
        max_active_runs=MOST_QUESTIONS,
        params=dag_forms.range_params(
            "Empty: the run computes the slice of its data interval, the last one that has ended."
        )
        | dag_forms.later_param()
        | dag_forms.loss_param()
        | dag_forms.stage_param()
        | dag_forms.suite_params(pipeline),
        doc_md=dag_docs.BACKFILL,
        is_paused_upon_creation=False,
    ) as dag:
        backfill_tasks(pipeline, APPLICATION)
    return dag


def rollback(pipeline: Pipeline) -> DAG:
    """Return the DAG that takes back the last publication of slices. It runs only when it is triggered."""
    with dag_of(
        pipeline,
        "rollback",
        None,
        f"Take back the last publication of slices of {pipeline.name}",
        params=dag_forms.range_params(),
        doc_md=dag_docs.ROLLBACK,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.rollback.override(outlets=list(dag_forms.assets_of(pipeline).values()))(str(pipeline.file))
    return dag


def check(pipeline: Pipeline) -> DAG:
    """Return the DAG that finds published slices whose blobs have changed. One run at a time writes their record."""
    with dag_of(
        pipeline,
        "check",
        "@daily",
        f"Find published slices of {pipeline.name} whose blobs have changed",
        max_active_runs=1,
        params=dag_forms.range_params("Empty: the last seven days."),
        doc_md=dag_docs.CHECK,
        is_paused_upon_creation=False,
    ) as dag:
        tasks.check(str(pipeline.file))
    return dag


DAGS = {"update": update, "backfill": backfill, "approval": approval, "rollback": rollback, "check": check}
"""Functions that return a DAG, by what it does."""
# pipeline_errors.py raises the errors. Raising them here would keep this module from loading any pipeline.
pipelines, _ = load_all(PIPELINES)
dags = [DAGS[action](pipeline) for pipeline in pipelines for action in dag_forms.dag_ids_of(pipeline)]
globals().update({dag.dag_id: dag for dag in dags})
