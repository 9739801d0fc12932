"""One DAG for every file in dags/pipelines: wait for Capture, plan, order and aggregate, audit, publish, report."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

import backfill_tasks as tasks
from capture_complete import CaptureCompleteSensor
from pipeline_files import load_all
from recapture.definition.pipeline import Pipeline
from storage_connection import take_credentials

PIPELINES = Path(__file__).parent / "pipelines"
APPLICATION = Path(__file__).resolve().parents[1] / "spark_jobs" / "backfill.py"


def backfill(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline. Its tasks are the stages of `recapture backfill`."""
    file, assets = str(pipeline.file), tasks.assets_of(pipeline)
    with DAG(
        pipeline.name,
        description=f"{', '.join(section.source for section in pipeline.inputs)} to {', '.join(assets)}",
        schedule=CronDataIntervalTimetable(tasks.cron(pipeline.slice_hours), timezone="UTC"),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=2,
        params=tasks.range_params(),
        default_args={
            "owner": "recapture",
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "retry_policy": tasks.RETRY_POLICY,
            "pre_execute": take_credentials,
        },
        tags=list(dict.fromkeys(["recapture", *(tag for section in pipeline.inputs for tag in section.tags)])),
        doc_md=tasks.DOCUMENTATION,
    ) as dag:
        wait_for_capture = CaptureCompleteSensor(task_id="wait_for_capture", file=file, timeout=timedelta(days=1))
        run = tasks.plan(file, wait_for_capture.output)
        order_and_aggregate = SparkSubmitOperator(
            task_id="order_and_aggregate",
            conn_id=tasks.SPARK,
            pool="spark",
            application=str(APPLICATION),
            application_args=[file, run],
            name=f"{pipeline.name} {{{{ ti.xcom_pull('plan') }}}}",
            conf={"spark.log.level": "WARN"},
            env_vars={"PYSPARK_PYTHON": sys.executable},
            pre_execute=tasks.prepare_for_spark,
        )
        audited = tasks.audit(file, run)
        published = tasks.publish.override(outlets=list(assets.values()))(file, run, audited)
        order_and_aggregate >> audited
        published >> tasks.report(file, run)
    return dag


# pipeline_errors.py raises the errors. Raising them here would keep this module from loading any pipeline.
pipelines, _ = load_all(PIPELINES)
globals().update({pipeline.name: backfill(pipeline) for pipeline in pipelines})
