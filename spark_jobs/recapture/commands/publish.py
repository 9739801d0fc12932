"""Publish a run that waits for a person."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture.commands.arguments import load_pipeline
from recapture.commands.reported import reported
from recapture.keep.waiting import Waiting
from recapture.run.approval import approval_of
from recapture.run.plan import require_packages
from recapture.run.publish import publish
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT
from recapture.run_files.marks import STAGED_RUNS
from recapture.run_files.planned import load_run


def run(stderr: Console, *, file: Path, run: str, json: bool) -> dict[str, Any]:
    """Publish a run as it was staged, and return its summary. Raise PermanentError if it cannot be published any more.

    Raise AuditError if its audit stopped it and nobody approved it.
    """
    pipeline = load_pipeline(file, stderr)
    require_packages()
    Waiting(pipeline).require_publishable(run)
    planned = load_run(pipeline, run)
    computed, audited = read_computed(planned.files), planned.files.read(AUDIT)
    approval = approval_of(planned.files, audited)
    outcome = publish(planned, computed, audited, approval, is_staged=approval is None)
    STAGED_RUNS.remove(planned.files.container, run)
    return reported(planned, computed, audited, outcome, [], approval, json=json)
