"""The stages after the computation, each with what the stages before it left in the run files, as in Airflow."""

from collections.abc import Sequence
from typing import Any

from recapture.definition.sections import Output
from recapture.errors import AuditError
from recapture.run import approval
from recapture.run import audit as audit_stage
from recapture.run import publish as publish_stage
from recapture.run import staged as staged_files
from recapture.run import summary as summary_stage
from recapture.run.suites import NONE_GIVEN, Parameters
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT, OUTCOME, Audited, Outcome
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval
from recapture.tools.reports import write


def audit(
    run: PlannedRun, parameters: Parameters = NONE_GIVEN, *, accept_loss: bool = False, is_staged: bool = False
) -> Audited:
    """Return the audit of a computed run. Raise AuditError if it stops the run."""
    computed = read_computed(run.files)
    audited = audit_stage.audit(run, computed, parameters, accept_loss=accept_loss, is_staged=is_staged)
    if error := audit_stage.stopped(run, computed, audited):
        raise error
    return audited


def approval_of(run: PlannedRun) -> Approval | None:
    """Return the approval of an audited run."""
    return approval.approval_of(run.files, run.files.read(AUDIT))


def publish(run: PlannedRun) -> Outcome:
    """Publish an audited run, and return what was published."""
    return publish_stage.publish(run, read_computed(run.files), run.files.read(AUDIT), approval_of(run))


def summary(run: PlannedRun) -> dict[str, Any]:
    """Return the summary of an audited run, published or not."""
    audited = run.files.read(AUDIT)
    approved = approval_of(run)
    outcome = run.files.read(OUTCOME) if audited.verdict != "failed" or approved else None
    return summary_stage.summary(run, read_computed(run.files), audited, outcome, approved)


def write_run_report(run: PlannedRun) -> str:
    """Write the report of an audited run, published or not, and return the address of its page."""
    return write.write_run_report(run, read_computed(run.files), run.files.read(AUDIT), summary(run)["warnings"])


def with_report(error: AuditError, run: PlannedRun, warnings: Sequence[str] = ()) -> AuditError:
    """Write the report of a run that its audit stopped, and return the error with the address of the page."""
    return write.with_report(error, run, read_computed(run.files), run.files.read(AUDIT), warnings)


def staged_rows(run: PlannedRun, output: Output) -> Any:
    """Return the rows that a run computed for an output."""
    return staged_files.staged_rows(run.id, read_computed(run.files), output)
