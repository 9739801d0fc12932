"""A person's decision to publish a run that its audit stopped, in the run files."""

from collections.abc import Mapping

from recapture.run.tables import tables_of
from recapture.run_files.contents import APPROVAL, AUDIT, Approved, Audited
from recapture.run_files.files import RunFiles
from recapture.run_files.marks import STOPPED_RUNS, Marks
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval, Publications
from recapture.table.publish import require_none_newer

APPROVED = "approved"
"""Quality of slices that were published by a person's decision."""


def approve(run: PlannedRun, approval: Approval) -> None:
    """Write the approval of a run's audit to the run files. It covers audits of the run with the same result.

    Raise PermanentError if another run was published for one of its slices after its audit.
    """
    if (held := held_at_audit(run)) is not None:
        for start, entry in Publications(tables_of(run.pipeline).publications).entries(run.slices).items():
            require_none_newer(run.id, start, entry, held.get(start))
    run.files.write(APPROVAL, Approved(approval.by, approval.at, approval.reason, run.files.read(AUDIT).digest))


def held_at_audit(run: PlannedRun, marks: Marks = STOPPED_RUNS) -> Mapping[str, str | None] | None:
    """Return the run that each slice held when this one was audited; None if that is not known.

    `marks` are those of the runs that the audit stopped, or of those that were staged.
    """
    unpublished = marks.read(run.files.container, run.id)
    return None if unpublished is None else unpublished.held


def approval_of(files: RunFiles, audited: Audited) -> Approval | None:
    """Return the approval of a run; None if its audit passed, or if nobody approved it with this result."""
    approved = files.find(APPROVAL) if audited.verdict == "failed" else None
    if approved is None or approved.audit != audited.digest:
        return None
    return Approval(approved.by, approved.at, approved.reason)
