"""The tasks of the DAGs that compute slices: one for each stage of a run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import TriggerRule, chain

from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import Engine, unattended_engine
from recapture.execute.spark import java
from recapture.run.stages import Stage
from recapture_airflow import backfill_tasks as tasks
from recapture_airflow.dag_forms import RUN, assets_of, dag_ids_of
from recapture_airflow.plan_tasks import Plan, plan_range, record_failure
from recapture_airflow.pools import Pools
from recapture_airflow.processes_run import ProcessesRun
from recapture_airflow.run_approval import RunApproval
from recapture_airflow.task_results import AuditResult
from recapture_airflow.update_tasks import AskPerson, NextUpdate, due, record_job

if TYPE_CHECKING:
    from recapture_airflow.spark_run import SparkRun

LONGEST_QUESTION = timedelta(days=7)
"""Time for which a person is asked about a staged run, if the pipeline does not say how long a run waits."""


@dataclass(frozen=True)
class Cluster:
    """Where slices are computed, unless the pipeline says `engine: processes`."""

    connection: str = "spark_default"
    """Name of the connection, whose type says which kind of cluster it is."""
    job: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a job of Databricks or Livy."""


def backfill_tasks(pipeline: Pipeline, cluster: Cluster, pools: Pools) -> None:
    """Add the tasks of a run by hand."""
    file = str(pipeline.file)
    plan = Plan(task_id=Stage.PLAN, file=file)
    run = plan.output
    computation = _order_and_aggregate(pipeline, run, cluster, pools.of_history())
    audit = tasks.audit(file, run)
    decision = _approval(pipeline, run, audit)
    publish, report = _publish_and_report(pipeline, run, decision)
    chain(plan, computation, audit, decision.operator, publish, report)
    chain(publish, record_failure(file))


def update_tasks(pipeline: Pipeline, cluster: Cluster, pools: Pools) -> None:
    """Add the tasks of an update."""
    file = str(pipeline.file)
    newest = due(file)
    NextUpdate(task_id="next_update", trigger_dag_id=dag_ids_of(pipeline)["update"], due=newest)
    run = plan_range(file, newest)
    pool = pools.of_update(unattended_engine(pipeline.engine))
    computation = _order_and_aggregate(pipeline, run, cluster, pool)
    audit = tasks.audit(file, run, in_update=True)
    publish, report = _publish_and_report(pipeline, run, audit, in_update=True)
    chain(run, computation, audit, publish, report)
    chain(publish, record_job.override(trigger_rule=TriggerRule.NONE_SKIPPED)(file, newest))
    if pipeline.approval is not None:
        trigger = dag_ids_of(pipeline)["approval"]
        ask = AskPerson(task_id="ask", trigger_dag_id=trigger, run=run, trigger_rule=TriggerRule.ONE_FAILED)
        chain(audit, ask)


def approval_tasks(pipeline: Pipeline) -> None:
    """Add the tasks that ask a person about a run, and publish it."""
    run, asked = f"{{{{ params.{RUN} }}}}", AuditResult(verdict="failed").to_json()
    chain(approval := _approval(pipeline, run, asked), *_publish_and_report(pipeline, run, approval))


def _approval(pipeline: Pipeline, run: Any, audited: Any) -> Any:
    """Return the result of the audit after a person's decision, if the run needs one."""
    longest = LONGEST_QUESTION if pipeline.approval is None else timedelta(hours=pipeline.approval.wait_hours)
    file = str(pipeline.file)
    return RunApproval(task_id=Stage.APPROVAL, file=file, run=run, audited=audited, response_timeout=longest).output


def _publish_and_report(pipeline: Pipeline, run: Any, audited: Any, *, in_update: bool = False) -> tuple[Any, Any]:
    file, outlets = str(pipeline.file), list(assets_of(pipeline).values())
    publish = tasks.publish.override(outlets=outlets)(file, run, audited, in_update=in_update)
    return publish, tasks.report(file, run)


def _order_and_aggregate(
    pipeline: Pipeline, run: Any, cluster: Cluster, pool: Mapping[str, Any]
) -> "SparkRun | ProcessesRun":
    file = str(pipeline.file)
    if unattended_engine(pipeline.engine) is Engine.PROCESSES:
        return ProcessesRun(task_id=Stage.ORDER_AND_AGGREGATE, file=file, run=run, **pool)
    from recapture_airflow.spark_run import APPLICATION, SparkRun  # takes 0.7 s if OpenLineage is installed

    return SparkRun(
        task_id=Stage.ORDER_AND_AGGREGATE,
        file=file,
        job=cluster.job,
        conn_id=cluster.connection,
        application=str(APPLICATION),
        application_args=[run],
        name=f"{pipeline.name} {{{{ ti.xcom_pull('{Stage.PLAN}') }}}}",
        conf={"spark.log.level": "WARN", java.DRIVER: java.QUICK_START, java.EXECUTOR: java.QUICK_START},
        env_vars={"PYSPARK_PYTHON": sys.executable},
        **pool,
    )
