"""A person's decision to publish a run that its audit stopped, in the run files."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from recapture.errors import RunError
from recapture.run_files.files import RunFiles
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval

APPROVED = "approved"
"""Quality of slices that were published by a person's decision."""


@dataclass(frozen=True)
class _Written:
    """Content of the file."""

    audit: str
    """Digest of the audit that was approved."""
    by: str
    at: datetime
    reason: str


def approve(run: PlannedRun, approval: Approval) -> None:
    """Write the approval of a run's audit to `approval.json`. It covers audits of the run with the same result."""
    run.files.write("approval.json", approval.to_dict() | {"audit": _audit_digest(run.files)})


def approval_of(files: RunFiles) -> Approval | None:
    """Return the approval of a run's audit; None if nobody approved it, or only one with another result."""
    if not files.exists("approval.json"):
        return None
    written = files.read_as(_Written, "approval.json")
    return Approval(written.by, written.at, written.reason) if written.audit == _audit_digest(files) else None


def _audit_digest(files: RunFiles) -> str:
    content = files.container.read_current(files.name("audit.json"))
    if content is None:
        raise RunError(f"run {files.id} has no audit.json under {files.container.url}: audit it first")
    return hashlib.sha256(content).hexdigest()
