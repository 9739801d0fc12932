"""The tasks of a backfill DAG. Each task is one stage of a run and has its own process."""

import logging
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, BaseHook, Context, ExceptionRetryPolicy, Param, RetryAction, RetryRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from recapture.definition.pipeline import Pipeline, load
from storage_connection import take_credentials

SPARK = "spark_default"
"""Id of the connection to the Spark master."""
WHOLE_HOUR = r"^\d{4}-\d\d-\d\dT\d\d:00(:00(\.0+)?)?(Z|[+-]\d\d:00)$"
"""Regular expression of a whole hour in ISO 8601, with its zone."""
RETRY_POLICY = ExceptionRetryPolicy(
    [
        RetryRule(
            ["recapture.errors.AuditError", "recapture.errors.DefinitionError"],
            RetryAction.FAIL,
            reason="a retry would fail in the same way",
        )
    ]
)
"""Retry policy of the tasks: these two errors fail a task at once."""

DOCUMENTATION = """
Recomputes slices of the pipeline from its archive and publishes them if they pass their audit.

**When to use it.** On its schedule, each run computes the slice of its data interval as soon as Capture has written it.
Trigger it by hand, with `from` and `to`, to recompute a range: after the query, the policies or the suite changed,
after Capture was late, or for hours before the pipeline existed. For a long range, use Airflow's own backfill of this
DAG, which computes one slice per DAG run.

**When not to use it.** Do not use it for the current hour: a slice is computed after it has ended and its late events
have arrived. Do not use it to undo a publication: use `recapture rollback`. Do not trigger it again after the audit
stopped a run: the same input gives the same verdict. Correct the query, the policies or the suite first.

A range is `(from, to]`, in whole slices and UTC. A run of the same blobs and the same query publishes nothing new.
"""


@task
def plan(file: str, range_: dict[str, str]) -> str:
    """Plan a run of the range, remove what an interrupted run of these slices left, and return the run's id."""
    from recapture.run.leftovers import remove_leftovers
    from recapture.run.plan import plan_run

    pipeline = load(Path(file))
    start, end = (datetime.fromisoformat(range_[name]) for name in ("from", "to"))
    run = plan_run(pipeline, start, end)
    for leftover in remove_leftovers(pipeline, run.id):
        logging.getLogger(__name__).info("removed a leftover of an interrupted run of these slices: %s", leftover)
    return run.id


@task
def audit(file: str, run: str) -> dict[str, Any]:
    """Audit the run, and return its verdict and the lines of its results. If the audit stops it, write its report."""
    from recapture.errors import AuditError
    from recapture.reports.write import with_report
    from recapture.run import audit, planned

    planned_run = planned.load_run(load(Path(file)), run)
    try:
        return audit.audit(planned_run)
    except AuditError as error:
        raise with_report(error, planned_run) from None


@task
def publish(file: str, run: str, audited: dict[str, Any], *, outlet_events: Any = None) -> dict[str, Any]:
    """Publish the run, add its slices to the asset events, and return what was published."""
    from recapture.run import planned, publish

    pipeline = load(Path(file))
    published = publish.publish(planned.load_run(pipeline, run))
    assets = assets_of(pipeline)
    for output in published["outputs"]:
        event = outlet_events[assets[output["alias"]]]
        event.add_partitions(published["slices"])
        event.extra = {
            "run": run,
            "slices": published["slices"],
            "version": output["version"],
            "audit": audited["verdict"],
        }
    return published


@task
def report(file: str, run: str) -> dict[str, Any]:
    """Write the page of the run's report, and return the report with the address of the page under `report`."""
    from recapture.reports.write import write_run_report
    from recapture.run import planned, report

    planned_run = planned.load_run(load(Path(file)), run)
    return report.report(planned_run) | {"report": write_run_report(planned_run)}


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Return the asset of each published table, by alias. If there are several, their names end with the alias."""
    several = len(pipeline.outputs) > 1
    return {
        output.alias: Asset(name=f"{pipeline.name}.{output.alias}" if several else pipeline.name, uri=output.table)
        for output in pipeline.outputs
    }


def range_params() -> dict[str, Param]:
    """Return the fields of the trigger form. Both are empty, or both are whole hours."""
    descriptions = {
        "from": "Start of the range, exclusive: a whole hour at which a slice starts, such as 2026-03-01T06:00:00Z. "
        "Empty: the run's data interval.",
        "to": "End of the range, inclusive: a whole hour at which a slice ends, not in the future.",
    }
    return {
        name: Param(
            None,
            type=["null", "string"],
            format="date-time",
            pattern=WHOLE_HOUR,
            title=name.capitalize(),
            description=description,
            section="Range",
        )
        for name, description in descriptions.items()
    }


def prepare_for_spark(context: Context) -> None:
    """Take the credentials. Raise AirflowFailException if there is no connection to Spark.

    Without the connection, Airflow would silently use YARN.
    """
    take_credentials(context)
    try:
        BaseHook.get_connection(SPARK)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"the connection {SPARK} is missing: create it with type spark and the master as host, such as local[*]"
        ) from None


def cron(hours: int) -> str:
    """Return the cron expression for intervals of this many hours."""
    return "@hourly" if hours == 1 else f"0 */{hours} * * *" if hours < 24 else "@daily"
