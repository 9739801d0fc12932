"""The tasks of a backfill DAG: one for each stage of a run."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from processes_run import ProcessesRun

import backfill_tasks as tasks
from capture_complete import CaptureCompleteSensor
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import Engine, unattended_engine
from recapture.run.stages import Stage, stages_of
from run_approval import RunApproval
from spark_run import SparkRun


def stage_tasks(pipeline: Pipeline, application: Path) -> list[Any]:
    """Return the tasks of the stages of a run, in order. `application` is the script that spark-submit runs."""
    file = str(pipeline.file)
    timeout = run_definition(pipeline).longest_wait + timedelta(days=1)
    wait = CaptureCompleteSensor(task_id=Stage.WAIT_FOR_CAPTURE, file=file, timeout=timeout)
    run = tasks.plan(file, wait.output)
    computation = _order_and_aggregate(pipeline, application, run)
    audit: Any = tasks.audit(file, run)
    made = {Stage.WAIT_FOR_CAPTURE: wait, Stage.PLAN: run, Stage.ORDER_AND_AGGREGATE: computation, Stage.AUDIT: audit}
    if pipeline.approval is not None:
        longest = timedelta(hours=pipeline.approval.wait_hours)
        approval = RunApproval(task_id=Stage.APPROVAL, file=file, run=run, audited=audit, response_timeout=longest)
        made[Stage.APPROVAL], audit = approval, approval.output
    outlets = list(tasks.assets_of(pipeline).values())
    made[Stage.PUBLISH] = tasks.publish.override(outlets=outlets)(file, run, audit)
    made[Stage.REPORT] = tasks.report(file, run)
    return [made[stage] for stage in stages_of(pipeline, unattended=True)]


def _order_and_aggregate(pipeline: Pipeline, application: Path, run: Any) -> SparkRun | ProcessesRun:
    file = str(pipeline.file)
    if unattended_engine(pipeline.engine) is Engine.PROCESSES:
        return ProcessesRun(task_id=Stage.ORDER_AND_AGGREGATE, pool=tasks.PROCESSES, file=file, run=run)
    return SparkRun(
        task_id=Stage.ORDER_AND_AGGREGATE,
        conn_id=tasks.SPARK,
        pool="spark",
        application=str(application),
        application_args=[file, run],
        name=f"{pipeline.name} {{{{ ti.xcom_pull('{Stage.PLAN}') }}}}",
        conf={"spark.log.level": "WARN"},
        env_vars={"PYSPARK_PYTHON": sys.executable},
        pre_execute=tasks.prepare_for_spark,
    )
