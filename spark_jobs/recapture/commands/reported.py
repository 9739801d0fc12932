"""Report a run that ended at a terminal: write its report, and print its summary."""

from collections.abc import Sequence
from typing import Any

from recapture import printing
from recapture.errors import RecaptureError, RunError, UnfinishedError
from recapture.run.cost import cost_of
from recapture.run.needs import longest_wait
from recapture.run.summary import summary
from recapture.run_files.computed import Computed
from recapture.run_files.contents import Audited, Outcome
from recapture.run_files.marks import STAGED_RUNS
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval
from recapture.time_model import ticks
from recapture.tools.reports.write import write_run_report


def reported(
    run: PlannedRun,
    computed: Computed,
    audited: Audited,
    outcome: Outcome | None,
    warnings: Sequence[str],
    approval: Approval | None = None,
    *,
    json: bool,
) -> dict[str, Any]:
    """Write the report of a run, print its summary unless `json`, and return it; `outcome` is None if it is staged.

    Raise UnfinishedError if that fails after the run was published, and RunError if it is staged.
    """
    try:
        result = summary(run, computed, audited, outcome, approval)
        result["warnings"] += warnings
        result["report"] = write_run_report(run, computed, audited, result["warnings"])
        result["cost"] = cost_of(run.files, run.pipeline.prices)
        result["staged_until"] = _expiry(run) if outcome is None else None
        if not json:
            out = printing.console()
            printing.print_staged_rows(out, run, computed, result)
            printing.print_run(out, result)
            if result["cost"] is not None:
                printing.print_cost(out, result["cost"])
            if outcome is None:
                printing.print_staged(out, result, run.pipeline.file.name)
    except Exception as error:
        said = str(error) if isinstance(error, RecaptureError) else f"{type(error).__name__}: {error}"
        if outcome is None:
            raise RunError(f"run {run.id} is staged, but its report failed: {said}") from error
        raise UnfinishedError(f"run {run.id} is published, but its report failed: {said}") from error
    return result


def _expiry(run: PlannedRun) -> str:
    """Return the time at which a staged run expires, ISO 8601."""
    return ticks.whole_seconds(
        STAGED_RUNS.blobs(run.files.container)[run.id].last_modified + longest_wait(run.pipeline)
    )
