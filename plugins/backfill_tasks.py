"""The tasks of a backfill DAG. Each is one stage of a run, in a process of its own."""

import logging
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, BaseHook, Context, ExceptionRetryPolicy, Param, RetryAction, RetryRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from recapture.definition.pipeline import Pipeline, load
from storage_connection import take_credentials

SPARK = "spark_default"
"""Connection to the Spark master."""
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
DOCUMENTATION = """
Recomputes slices of the pipeline from its archive and publishes them when they pass their audit.

**When to use it.** On its schedule: each run computes the slice of its data interval, once Capture has written it. By
hand with `from` and `to`: to compute a range again after the query, the policies or the suite changed, after Capture
was late, or for hours from before the pipeline existed. For a long past, a native backfill of this DAG computes slice
by slice.

**When not to.** Not for the running hour: a slice is computed when it has ended and its late arrivals are in. Not to
take back a publication: `recapture rollback` does that. Not to repair a run that its audit stopped by triggering it
again: the same input gives the same verdict; correct the query, the policies or the suite first.

A range is `(from, to]`: whole slices, UTC. A run of the same blobs and the same query publishes nothing new.
"""


@task
def plan(file: str, chosen: dict[str, str]) -> str:
    """Plan the range and return the run's id."""
    from recapture.run.leftovers import remove_leftovers
    from recapture.run.plan import plan_run

    pipeline = load(Path(file))
    start, end = (datetime.fromisoformat(chosen[name]) for name in ("from", "to"))
    run = plan_run(pipeline, start, end)
    for leftover in remove_leftovers(pipeline, run.id):
        logging.getLogger(__name__).info("removed leftovers of an interrupted run of these slices: %s", leftover)
    return run.id


@task
def audit(file: str, run: str) -> dict[str, Any]:
    """Audit the run and return its verdict."""
    from recapture.run import audit, planned

    return audit.audit(planned.load_run(load(Path(file)), run))


@task
def publish(file: str, run: str, verdict: dict[str, Any], *, outlet_events: Any = None) -> dict[str, Any]:
    """Publish the run and tell Airflow which slices of which assets changed."""
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
            "audit": verdict["verdict"],
        }
    return published


@task
def report(file: str, run: str) -> dict[str, Any]:
    """Report the run."""
    from recapture.run import planned, report

    return report.report(planned.load_run(load(Path(file)), run))


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Return the published tables by alias. If there are several, the name of each ends with its alias."""
    several = len(pipeline.outputs) > 1
    return {
        output.alias: Asset(name=f"{pipeline.name}.{output.alias}" if several else pipeline.name, uri=output.table)
        for output in pipeline.outputs
    }


def range_params() -> dict[str, Param]:
    """Return the fields of the trigger form: both empty, or two whole hours."""
    descriptions = {
        "from": "Start of the range, exclusive: a whole hour, UTC. Empty: the run's data interval.",
        "to": "End of the range, inclusive: a whole hour, UTC, not in the future.",
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


def require_spark(context: Context) -> None:
    """Take the credentials. Fail the task if there is no connection to Spark: Airflow would use YARN without a word."""
    take_credentials(context)
    try:
        BaseHook.get_connection(SPARK)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"the connection {SPARK} is missing: create it with type spark and the master as host, such as local[*]"
        ) from None


def cron(hours: int) -> str:
    """Return the cron expression whose intervals are slices of this length."""
    return "@hourly" if hours == 1 else f"0 */{hours} * * *" if hours < 24 else "@daily"
