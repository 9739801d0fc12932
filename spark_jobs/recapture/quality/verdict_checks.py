"""The built-in check on the table of verdicts: it has as many events of each verdict as the metrics count."""

from collections.abc import Sequence
from dataclasses import dataclass

from recapture.process.wording import counted
from recapture.quality.audit import TITLES, Result, slice_result
from recapture.quality.suites import Check, Severity


@dataclass(frozen=True)
class NotedVerdicts:
    """How many events of a verdict a partition has in a slice: in the table of verdicts, and by the metrics."""

    slice_start: str
    partition: str
    verdict: str
    noted: int
    """Number of rows for the table."""
    counted: int
    """Value of the metric."""


def verdicts_result(verdicts: Sequence[NotedVerdicts], severity: Severity | None) -> Result:
    """Return whether every verdict was noted as often as it was counted; the check is critical by default."""
    check: Check = "verdicts_equal_the_metrics"
    wrong = [verdict for verdict in verdicts if verdict.noted != verdict.counted]
    said = TITLES[check]
    if wrong:
        first = wrong[0]
        said = (
            f"the table of verdicts differs from the metrics: {first.verdict} in partition {first.partition} of slice "
            f"{first.slice_start} has {counted(first.noted, 'row')}, and the metrics count {first.counted:,}; in all "
            f"{counted(len(wrong), 'count differs', 'counts differ')}; the run files are damaged: plan the run again"
        )
    starts = sorted({verdict.slice_start for verdict in wrong})
    return slice_result(check, severity or "critical", starts, said, judged="verdicts")
