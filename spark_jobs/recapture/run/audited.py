"""What the audit of a run said, as its run file has it."""

from dataclasses import dataclass

from recapture.quality.audit import Verdict
from recapture.run_files.files import RunFiles

AUDIT = "audit.json"
"""Name of the run file."""


@dataclass(frozen=True)
class Audited:
    """The part of the file that a person reads."""

    verdict: Verdict
    text: str
    """Checks that were made, each on a line of its own."""
    reason: str = ""
    """Why the run passed with warnings, or was stopped."""


def audited(files: RunFiles) -> Audited | None:
    """Return what the audit of a run said; None if it was not audited. Raise PermanentError if the file is damaged."""
    return files.read_as(Audited, AUDIT) if files.exists(AUDIT) else None
