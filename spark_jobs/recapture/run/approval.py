"""A person's decision to publish a run that its audit stopped, in the run files."""

from recapture.run_files.contents import APPROVAL, AUDIT, Approved, Audited
from recapture.run_files.files import RunFiles
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval

APPROVED = "approved"
"""Quality of slices that were published by a person's decision."""


def approve(run: PlannedRun, approval: Approval) -> None:
    """Write the approval of a run's audit to the run files. It covers audits of the run with the same result."""
    run.files.write(APPROVAL, Approved(approval.by, approval.at, approval.reason, run.files.read(AUDIT).digest))


def approval_of(files: RunFiles, audited: Audited) -> Approval | None:
    """Return the approval of a run; None if its audit passed, or if nobody approved it with this result."""
    approved = files.find(APPROVAL) if audited.verdict == "failed" else None
    if approved is None or approved.audit != audited.digest:
        return None
    return Approval(approved.by, approved.at, approved.reason)
