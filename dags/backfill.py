"""One DAG for every file in dags/pipelines: wait for Capture, plan, order and aggregate, audit, publish, report."""

import logging
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    DAG,
    Asset,
    BaseHook,
    Context,
    CronDataIntervalTimetable,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    task,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from capture_complete import CaptureCompleteSensor
from pipeline_files import load_all
from recapture.definition.pipeline import Pipeline, load
from recapture.definition.sections import Output
from storage_connection import take_credentials

PIPELINES = Path(__file__).parent / "pipelines"
APPLICATION = Path(__file__).resolve().parents[1] / "spark_jobs" / "backfill.py"
SPARK = "spark_default"
WHOLE_HOUR = r"^\d{4}-\d\d-\d\dT\d\d:00(:00(\.0+)?)?(Z|[+-]\d\d:00)$"

FINAL_ERRORS = ExceptionRetryPolicy(
    [
        RetryRule(
            ["recapture.errors.AuditError", "recapture.errors.DefinitionError"],
            RetryAction.FAIL,
            reason="another try would end the same",
        )
    ]
)


def instant(title: str, description: str) -> Param:
    """A time in the trigger form: empty, or a whole hour."""
    return Param(
        None,
        type=["null", "string"],
        format="date-time",
        pattern=WHOLE_HOUR,
        title=title,
        description=description,
        section="Range",
    )


def ready_for_spark(context: Context) -> None:
    """Take the credentials, and stop a run that has no Spark to go to: Airflow would quietly take YARN."""
    take_credentials(context)
    try:
        BaseHook.get_connection(SPARK)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"the connection {SPARK} is missing: create it with type spark and the master as host, such as local[*]"
        ) from None


def asset(pipeline: Pipeline, output: Output) -> Asset:
    """A published table; named as the pipeline is, and where that has several outputs, with the alias behind it."""
    name = pipeline.name if len(pipeline.outputs) == 1 else f"{pipeline.name}.{output.alias}"
    return Asset(name=name, uri=output.table)


def backfill(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline. Its tasks are the stages of `recapture backfill`."""
    definition = str(pipeline.file)
    tables = {output.alias: asset(pipeline, output) for output in pipeline.outputs}

    @task
    def plan(chosen: dict[str, str]) -> str:
        from recapture.run import stages

        pipeline = load(Path(definition))
        start, end = (datetime.fromisoformat(chosen[name]) for name in ("from", "to"))
        run = stages.plan(pipeline, start, end)
        for leftover in stages.remove_leftovers(pipeline, run):
            logging.getLogger(__name__).info("removed leftovers of an interrupted run of these slices: %s", leftover)
        return run

    @task
    def audit(run: str) -> dict[str, Any]:
        from recapture.run import stages

        return stages.audit(load(Path(definition)), run)

    @task(outlets=list(tables.values()))
    def publish(run: str, verdict: dict[str, Any], *, outlet_events: Any = None) -> dict[str, Any]:
        from recapture.run import stages

        published = stages.publish(load(Path(definition)), run)
        for output in published["outputs"]:
            event = outlet_events[tables[output["alias"]]]
            event.add_partitions(published["slices"])
            event.extra = {
                "run": run,
                "slices": published["slices"],
                "version": output["version"],
                "audit": verdict["verdict"],
            }
        return published

    @task
    def report(run: str) -> dict[str, Any]:
        from recapture.run import stages

        return stages.report(load(Path(definition)), run)

    with DAG(
        pipeline.name,
        description=f"{pipeline.input.source} to {', '.join(tables)}",
        schedule=CronDataIntervalTimetable(every(pipeline.slice_hours), timezone="UTC"),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=2,
        params={
            "from": instant("From", "Start of the range, outside it: a whole hour, UTC. Empty: the run's interval."),
            "to": instant("To", "End of the range, the last slice included: a whole hour, UTC, not in the future."),
        },
        default_args={
            "owner": "recapture",
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "retry_policy": FINAL_ERRORS,
            "pre_execute": take_credentials,
        },
        tags=["recapture", *pipeline.input.tags],
        doc_md=DOCUMENTATION,
    ) as dag:
        wait_for_capture = CaptureCompleteSensor(
            task_id="wait_for_capture", definition=definition, timeout=timedelta(days=1)
        )
        run = plan(wait_for_capture.output)
        order_and_aggregate = SparkSubmitOperator(
            task_id="order_and_aggregate",
            conn_id=SPARK,
            pool="spark",
            application=str(APPLICATION),
            application_args=[definition, run],
            name=f"{pipeline.name} {{{{ ti.xcom_pull('plan') }}}}",
            conf={"spark.log.level": "WARN"},
            env_vars={"PYSPARK_PYTHON": sys.executable},
            pre_execute=ready_for_spark,
        )
        verdict = audit(run)
        published = publish(run, verdict)
        order_and_aggregate >> verdict
        published >> report(run)
    return dag


def every(hours: int) -> str:
    """The cron expression whose intervals are slices of that many hours."""
    return "@hourly" if hours == 1 else f"0 */{hours} * * *" if hours < 24 else "@daily"


DOCUMENTATION = """
Recomputes slices of the pipeline from its archive and publishes them when they pass their audit.

**When to use it.** On its schedule: each run computes the slice that its data interval spans, once Capture has
written it. By hand with `from` and `to`: to compute a range again after the query, the policies or the suite changed,
after Capture was late, or for hours from before the pipeline existed. For a long past, a native backfill of this DAG
computes slice by slice.

**When not to.** Not for the running hour: a slice is computed when it has ended and its late arrivals are in. Not to
take back a publication: `recapture rollback` does that. Not to repair a run that its audit stopped by triggering it
again: the same input gives the same verdict; correct the query, the policies or the suite first.

A range is `(from, to]`: whole slices, UTC. A run of the same blobs and the same query publishes nothing new.
"""

# The errors are for pipeline_errors.py: an import error of this module would stop every pipeline.
pipelines, _ = load_all(PIPELINES)
globals().update({pipeline.name: backfill(pipeline) for pipeline in pipelines})
