"""The tasks that are stages of a run, a rollback or a check. Each has its own process."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import Context

from recapture.definition.pipeline import load
from recapture.process.wording import named_slices
from recapture_airflow.airflow_metrics import sends_figures
from recapture_airflow.airflow_versions import add_partitions
from recapture_airflow.dag_forms import ACCEPT_LOSS, STAGE, assets_of, parameters_of
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.lineage import Lineage, stage_task
from recapture_airflow.neighbour_runs import computes_neighbours
from recapture_airflow.run_notifications import notify
from recapture_airflow.run_range import range_of_dag_run
from recapture_airflow.storage_connection import take_credentials
from recapture_airflow.task_results import AuditResult, Stopped

CHECK_RANGE = timedelta(days=7)
"""Length of the range that is checked for changed blobs by default."""
CHATTY_LIBRARIES = ("azure", "great_expectations")
"""Loggers that would write hundreds of lines into the log of a task at INFO."""


@stage_task(Lineage.AUDITS)
@fail_at_once()
def audit(
    file: str,
    run: str,
    *,
    in_update: bool = False,
    params: dict[str, Any] | None = None,
    run_id: str | None = None,
    ti: Any = None,
) -> dict[str, Any]:
    """Audit the run, and return an AuditResult.

    If the audit stops the run, write its report and notify. Then fail at once, unless the DAG run waits until a
    person has decided. An update does not wait: if its run has one slice, it says that a person is to be asked. If it
    has several, nobody is notified, because the next updates compute its halves. The same goes for a run that computes
    the slices of several runs of Airflow's backfill. A staged run that passes waits for a person, too: write its
    report.
    """
    from recapture.run.audit import audit, stopped
    from recapture.run.summary import warnings_of
    from recapture.run_files.computed import read_computed
    from recapture.run_files.planned import load_run
    from recapture.tools.reports.write import with_report, write_run_report

    planned_run = load_run(load(Path(file)), run)
    computed, parameters = read_computed(planned_run.files), parameters_of(params)
    accept_loss, is_staged = (bool((params or {}).get(name)) for name in (ACCEPT_LOSS, STAGE))
    audited = audit(planned_run, computed, parameters, accept_loss=accept_loss, is_staged=is_staged)
    error = stopped(planned_run, computed, audited)
    if error is None:
        if is_staged:
            write_run_report(planned_run, computed, audited, warnings_of(planned_run, computed, None))
        return AuditResult(verdict=audited.verdict, text=audited.text, staged=is_staged).to_json()
    error = with_report(error, planned_run, computed, audited)
    is_divided = in_update or computes_neighbours(run_id)
    is_asked, is_final = planned_run.pipeline.approval is not None, not is_divided or len(planned_run.slices) == 1
    if is_final:
        notify(planned_run.pipeline, "blocked", run, str(error))
    if is_divided:
        ti.xcom_push(key=Stopped.KEY, value=Stopped(asks=is_asked and is_final).to_json())
    elif is_asked:
        return AuditResult(verdict="failed", reason=str(error)).to_json()
    raise error


@stage_task(Lineage.PUBLISHES)
@fail_at_once()
@sends_figures
def publish(
    file: str,
    run: str,
    audited: dict[str, Any],
    *,
    in_update: bool = False,
    run_id: str | None = None,
    outlet_events: Any = None,
) -> dict[str, Any]:
    """Publish the run, add its slices to the asset events, and return what was published.

    `audited` is an AuditResult. Notify if the run passed its audit and some of its slices were blocked until now. Fail
    at once if the run waited for a person and cannot be published any more: see `keep.waiting`.
    """
    from recapture.keep.claims import release
    from recapture.keep.waiting import Waiting
    from recapture.run.approval import APPROVED, approval_of
    from recapture.run.publish import publish
    from recapture.run.slice_changes import entries_of, slice_changes
    from recapture.run.slice_state import blocked_slices_of
    from recapture.run_files.computed import read_computed
    from recapture.run_files.contents import AUDIT, OUTCOME
    from recapture.run_files.marks import STAGED_RUNS
    from recapture.run_files.planned import load_run
    from recapture.run_files.work import WORK

    pipeline, result = load(Path(file)), AuditResult.read(audited)
    if result.staged or result.verdict == APPROVED:
        Waiting(pipeline).require_publishable(run)
    planned_run = load_run(pipeline, run)
    files = planned_run.files
    blocked = blocked_slices_of(planned_run) if pipeline.notifications else []
    own_audit, before = files.read(AUDIT), entries_of(pipeline, planned_run.slices)
    approval = approval_of(files, own_audit)
    outcome = publish(planned_run, read_computed(files), own_audit, approval, is_staged=result.staged)
    if result.staged:
        STAGED_RUNS.remove(files.container, run)
    published: dict[str, Any] = OUTCOME.json_types(outcome)
    after = entries_of(pipeline, planned_run.slices)
    for output in outcome.outputs:
        changes = slice_changes(before, after, run, output.alias)
        event = outlet_events[assets_of(pipeline)[output.alias]]
        by_change = {"new": changes.new, "revised": changes.revised, "completed": changes.completed}
        slices = sorted({start for starts in by_change.values() for start in starts})
        by_change["provisional"] = changes.provisional
        _add_to_event(event, slices, run=run, audit=result.verdict, version=output.version, **by_change)
    if blocked and outcome.quality != APPROVED:
        message = f"{named_slices(blocked)}: run {run} is published, and its audit {outcome.quality}"
        notify(pipeline, "recovered", run, message)
    if not in_update:
        WORK.change(files.container, lambda work: release(work, str(run_id)))
    return published


@stage_task(Lineage.READS_TABLES)
@fail_at_once()
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


@stage_task(Lineage.CHANGES_TABLES)
@fail_at_once()
@sends_figures
def rollback(file: str, *, params: dict[str, Any] | None = None, outlet_events: Any = None) -> dict[str, Any]:
    """Roll back the range of the trigger form, add its slices to the asset events, and return what was restored."""
    from recapture.run.rollback import rollback

    pipeline = load(Path(file))
    result = rollback(pipeline, *range_of_dag_run(params or {}, None, None))
    slices = [slice_["slice_start"] for slice_ in result["rolled_back"]]
    for output in result["outputs"]:
        event = outlet_events[assets_of(pipeline)[output["alias"]]]
        _add_to_event(event, slices, version=output["version"], rolled_back=slices)
    return result


@stage_task(Lineage.READS_ARCHIVE)
@fail_at_once()
@sends_figures
def check(file: str, *, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Look for changed blobs in the range of the trigger form, or else in the last seven days; return what changed."""
    from recapture.keep.check import check

    pipeline, hours = load(Path(file)), timedelta(hours=1)
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    end -= hours * (end.hour % pipeline.slice_hours)
    return check(pipeline, *range_of_dag_run(params or {}, end - CHECK_RANGE, end))


def _add_to_event(event: Any, slices: list[str], **extra: Any) -> None:
    """Give an asset event a partition for each slice whose rows readers have to read again, and more."""
    add_partitions(event, slices)
    event.extra = {"new": [], "revised": [], "completed": [], "provisional": [], "rolled_back": [], **extra}


@fail_at_once()
def prepare(context: Context) -> None:
    """Prepare the process of a task: its log has no requests and registrations of libraries, and it has credentials.

    The process runs this task only, so these levels are those of no other DAG.
    """
    for library in CHATTY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    take_credentials(context)
