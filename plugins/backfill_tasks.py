"""The tasks of a backfill DAG. Each task is one stage of a run and has its own process."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, BaseHook, Context, ExceptionRetryPolicy, Param, RetryAction, RetryRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from capture_complete import range_of_dag_run
from recapture.definition.pipeline import Pipeline, load
from recapture.printable import one_line
from recapture.process.wording import named_slices
from run_notifications import notifiers_of, notify
from storage_connection import take_credentials

CHECK_RANGE = timedelta(days=7)
"""Length of the range that is checked for changed blobs by default."""
CHATTY_LIBRARIES = ("azure", "great_expectations")
"""Loggers that would write hundreds of lines into the log of a task at INFO."""
PROCESSES = "processes"
"""Name of the pool of the tasks that compute rows without Spark."""
SPARK = "spark_default"
WHOLE_HOUR = r"^\d{4}-\d\d-\d\dT\d\d:00(:00(\.0+)?)?(Z|[+-]\d\d:00)$"
"""Regular expression of a whole hour in ISO 8601, with its zone."""
RETRY_POLICY = ExceptionRetryPolicy(
    [
        RetryRule(
            ["recapture.errors.AuditError", "recapture.errors.DefinitionError", "recapture.errors.PermanentError"],
            RetryAction.FAIL,
            reason="a retry would fail in the same way",
        )
    ]
)
"""Retry policy of the tasks: these errors fail a task at once."""

DOCUMENTATION = """
Recomputes slices of the pipeline from its archive and publishes them if they pass their audit.

**Where to look first.** The page Coverage shows which slices are published, blocked, missing or still waiting for
Capture, and leads to their reports. The tab Recapture of a DAG run has the report of its run.

**When to use it.** On its schedule, each run computes the slice of its data interval as soon as Capture has written it.
Trigger it by hand, with `from` and `to`, to recompute a range: after the query, the policies or the suite changed,
after Capture was late, or for hours before the pipeline existed. For a long range, use Airflow's own backfill of this
DAG, which computes one slice per DAG run: its date range gives the starts of the first and the last slice, and `from`
and `to` stay empty. The page Coverage starts runs too.

**When not to use it.** Do not use it for the current hour: a slice is computed after it has ended and its late events
have arrived. Do not use it to undo a publication: use the DAG whose name ends with `.rollback`. Do not trigger it again
after the audit stopped a run: the same input gives the same verdict. Correct the query, the policies or the suite
first, or let a person decide: the page Coverage says how.

A range is `(from, to]`, in whole slices and UTC. A run of the same blobs and the same query publishes nothing new.
"""
ROLLBACK_DOCUMENTATION = """
Takes back the last publication of each slice of a range: every table holds again what it held before.

**When to use it.** Trigger it by hand, with `from` and `to`, when a publication was wrong. If it fails or is run again,
it goes back only once.

**When not to use it.** Do not use it to correct rows: backfill the range instead, which replaces them.
"""
CHECK_DOCUMENTATION = """
Compares the archive with what the published slices of a range read of it. The page Coverage then shows as stale the
slices whose blobs were added, modified or deleted since. It changes no table.

**When to use it.** On its schedule, it checks the last seven days. Trigger it by hand, with `from` and `to`, to check
another range, for example after blobs were restored.

**When not to use it.** Do not use it to recompute stale slices: backfill them.
"""
PARAMETERS = "parameters"
"""Name of the field with the parameters of the suites."""
ACCEPT_LOSS = "accept_loss"
"""Name of the field that lets slices lose events that are published."""


@task
def plan(file: str, range_: dict[str, str], *, params: dict[str, Any] | None = None, dag_run: Any = None) -> str:
    """Plan a run of the range, remove what an interrupted run of these slices left, and return the run's id.

    Raise DefinitionError for a mistake in the pipeline file or the range, and if a notifier cannot be used.
    """
    from recapture.run.leftovers import remove_leftovers
    from recapture.run.plan import plan_run
    from recapture.run_files.contents import PLANNED_BY, PlannedBy

    pipeline = load(Path(file))
    notifiers_of(pipeline)
    start, end = (datetime.fromisoformat(range_[name]) for name in ("from", "to"))
    run = plan_run(pipeline, start, end, parameters_of(params))
    run.files.write(PLANNED_BY, PlannedBy(dag_run.dag_id, dag_run.run_id))
    for leftover in remove_leftovers(pipeline, run.id):
        logging.getLogger(__name__).info(
            "removed a leftover of an interrupted run of these slices: %s", one_line(leftover)
        )
    return run.id


@task
def audit(file: str, run: str, *, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Audit the run, and return the verdict and the text of the audit.

    If the audit stops the run, write its report and notify. Then raise AuditError, unless a person may approve the run.
    """
    from recapture.run.audit import audit, stopped
    from recapture.run_files.computed import read_computed
    from recapture.run_files.planned import load_run
    from recapture.tools.reports.write import with_report

    planned_run = load_run(load(Path(file)), run)
    computed, accept_loss = read_computed(planned_run.files), bool((params or {}).get(ACCEPT_LOSS))
    audited = audit(planned_run, computed, parameters_of(params), accept_loss=accept_loss)
    error = stopped(planned_run, computed, audited)
    if error is None:
        return {"verdict": audited.verdict, "text": audited.text}
    error = with_report(error, planned_run, computed, audited)
    notify(planned_run.pipeline, "blocked", run, str(error))
    if planned_run.pipeline.approval is None:
        raise error
    return {"verdict": "failed", "reason": str(error)}


@task
def publish(file: str, run: str, audited: dict[str, Any], *, outlet_events: Any = None) -> dict[str, Any]:
    """Publish the run, add its slices to the asset events, and return what was published.

    Notify if the run passed its audit and some of its slices were blocked until now.
    """
    from recapture.run.approval import APPROVED, approval_of
    from recapture.run.publish import publish
    from recapture.run.slice_state import blocked_slices_of
    from recapture.run_files.computed import read_computed
    from recapture.run_files.contents import AUDIT, OUTCOME
    from recapture.run_files.planned import load_run

    pipeline = load(Path(file))
    planned_run = load_run(pipeline, run)
    files = planned_run.files
    blocked = blocked_slices_of(planned_run) if pipeline.notifications else []
    own_audit = files.read(AUDIT)
    outcome = publish(planned_run, read_computed(files), own_audit, approval_of(files, own_audit))
    published: dict[str, Any] = OUTCOME.json_types(outcome)
    outputs, slices = published["outputs"], published["slices"]
    _add_to_events(outlet_events, pipeline, outputs, slices, run=run, audit=audited["verdict"])
    if blocked and outcome.quality != APPROVED:
        message = f"{named_slices(blocked)}: run {run} is published, and its audit {outcome.quality}"
        notify(pipeline, "recovered", run, message)
    return published


@task
def report(file: str, run: str) -> dict[str, Any]:
    """Write the run's report, and return the summary of the run with the address of the page under `report`."""
    from recapture.run.approval import approval_of
    from recapture.run.summary import summary
    from recapture.run_files.computed import read_computed
    from recapture.run_files.contents import AUDIT, OUTCOME
    from recapture.run_files.planned import load_run
    from recapture.tools.reports.write import write_run_report

    planned_run = load_run(load(Path(file)), run)
    files = planned_run.files
    computed, audited, outcome = read_computed(files), files.read(AUDIT), files.read(OUTCOME)
    result = summary(planned_run, computed, audited, outcome, approval_of(files, audited))
    return result | {"report": write_run_report(planned_run, computed, audited, result["warnings"])}


@task
def rollback(file: str, *, params: dict[str, Any] | None = None, outlet_events: Any = None) -> dict[str, Any]:
    """Roll back the range of the trigger form, add its slices to the asset events, and return what was restored."""
    from recapture.run.rollback import rollback

    pipeline = load(Path(file))
    result = rollback(pipeline, *range_of_dag_run(params or {}, None, None))
    slices = [slice_["slice_start"] for slice_ in result["rolled_back"]]
    _add_to_events(outlet_events, pipeline, result["outputs"], slices, rolled_back=True)
    return result


@task
def check(file: str, *, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Look for changed blobs in the range of the trigger form, or else in the last seven days; return what changed."""
    from recapture.keep.check import check

    pipeline, hours = load(Path(file)), timedelta(hours=1)
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    end -= hours * (end.hour % pipeline.slice_hours)
    return check(pipeline, *range_of_dag_run(params or {}, end - CHECK_RANGE, end))


def _add_to_events(
    outlet_events: Any, pipeline: Pipeline, outputs: list[dict[str, Any]], slices: list[str], **extra: Any
) -> None:
    """Add slices, and more, to the asset event of each output."""
    assets = assets_of(pipeline)
    for output in outputs:
        event = outlet_events[assets[output["alias"]]]
        event.add_partitions(slices)
        event.extra = {**extra, "slices": slices, "version": output["version"]}


def dag_ids_of(pipeline: Pipeline) -> dict[str, str]:
    """Return the id of each of the pipeline's DAGs, by what it does. No pipeline has a name with a full stop."""
    return {"backfill": pipeline.name, "rollback": f"{pipeline.name}.rollback", "check": f"{pipeline.name}.check"}


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Return the asset of each published table, by alias. If there are several, their names end with the alias."""
    several = len(pipeline.outputs) > 1
    return {
        output.alias: Asset(name=f"{pipeline.name}.{output.alias}" if several else pipeline.name, uri=output.table)
        for output in pipeline.outputs
    }


def range_params(without: str | None = None) -> dict[str, Param]:
    """Return the fields of the trigger form: whole hours. `without` says what a run without a range does.

    If it is None, both fields are required. A section of their own would be collapsed in the form.
    """
    descriptions = {
        "from": "Start of the range, exclusive: a whole hour at which a slice starts, such as 2026-03-01T06:00:00Z.",
        "to": "End of the range, inclusive: a whole hour at which a slice ends, not in the future.",
    }
    schema: dict[str, Any] = {"type": "string"} if without is None else {"type": ["null", "string"], "default": None}
    return {
        name: Param(
            **schema,
            format="date-time",
            pattern=WHOLE_HOUR,
            title=name.capitalize(),
            description=f"{description} {without}" if without else description,
        )
        for name, description in descriptions.items()
    }


def loss_param() -> dict[str, Param]:
    """Return the field of the trigger form that accepts the loss of events."""
    text = "Publish although the archive has holes, or fewer events than are published: the blobs are gone for good."
    return {ACCEPT_LOSS: Param(False, type="boolean", title="Accept loss", description=text)}


def suite_params(pipeline: Pipeline) -> dict[str, Param]:
    """Return the field of the trigger form with the parameters of the pipeline's suites; none if it declares none."""
    qualities = [quality for output in pipeline.outputs if (quality := pipeline.quality_of(output))]
    declared = {name: value for quality in qualities for name, value in quality.parameters.items()}
    if not declared:
        return {}
    types = {name: {"type": "string" if isinstance(value, str) else "number"} for name, value in declared.items()}
    return {
        PARAMETERS: Param(
            declared,
            type="object",
            properties=types,
            additionalProperties=False,
            title="Parameters of the suites",
            description="Values for this run. The defaults are those of the pipeline file.",
        )
    }


def parameters_of(params: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of the suites that the trigger form gives."""
    parameters: dict[str, Any] = (params or {}).get(PARAMETERS) or {}
    return parameters


def prepare(context: Context) -> None:
    """Prepare the process of a task: its log has no requests and registrations of libraries, and it has credentials.

    The process runs this task only, so these levels are those of no other DAG.
    """
    for library in CHATTY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    take_credentials(context)


def prepare_for_spark(context: Context) -> None:
    """Prepare the process of a task. Raise AirflowFailException if there is no connection to Spark.

    Without the connection, Airflow would silently use YARN.
    """
    prepare(context)
    try:
        BaseHook.get_connection(SPARK)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"the connection {SPARK} is missing: create it with type spark and the master as host, such as local[*]"
        ) from None
