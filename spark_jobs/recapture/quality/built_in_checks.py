"""The built-in checks on the metrics of a run. Every audit makes them, whatever the suites of the outputs say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from recapture.errors import RunError
from recapture.quality import metrics_rules as rules
from recapture.quality.audit import Evidence, Result
from recapture.quality.finding import Finding
from recapture.quality.metrics import COLUMNS
from recapture.quality.metrics_rules import Rows
from recapture.quality.sentences import ITEMS, distinct_examples, failed_items
from recapture.quality.suites import BUILT_IN, Severity

COMPLETENESS = "expect_capture_to_be_complete"


def results(rows: Rows, slice_count: int, *, provisional: bool = False) -> list[Result]:
    """Return the result of every check; without rows, only their number is judged.

    `rows` are the metrics of a run, with the fields of `quality.metrics.COLUMNS`. If slices may be `provisional`, it is
    only a warning that Capture may not have written everything. Raise RunError if the rows lack a column.
    """
    missing = [column for column in COLUMNS if rows and not any(column in row for row in rows)]
    if missing:
        raise RunError(f"the run's metrics lack {', '.join(missing)}; run the slices again")
    checks = [replace(check, severity="warning") if _is_lenient(check, provisional) else check for check in CHECKS]
    return [*_slice_results(rows, slice_count), *(check.result(rows) for check in checks)]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Check of every row of the metrics."""

    expectation: str
    severity: Severity
    title: str
    judge: Callable[[Rows], Finding]
    mostly: float = 1.0
    """Share of the judged rows that must be as expected, 0 to 1."""
    evidence: Evidence = field(default_factory=Evidence)
    """Columns, what is expected, and what a failure may mean."""

    def result(self, rows: Rows) -> Result:
        """Return the result for the rows of a run."""
        if not rows:
            return _unjudged(self.expectation, self.severity, self.title)
        finding = self.judge(rows)
        success = finding.is_met(self.mostly)
        examples = distinct_examples(finding.examples)
        found = failed_items(finding.failed, finding.judged, ITEMS["metrics"], examples)
        sentence = f"{self.title} ({found})" if success else f"{finding.failure}: {found}"
        evidence = replace(self.evidence, judged=finding.judged, rows=tuple(finding.examples))
        shown = None if success else evidence
        place = (BUILT_IN, "metrics", self.expectation, self.severity)
        return Result(*place, success, examples, finding.failed, sentence, self.title, evidence=shown)


def _is_lenient(check: Check, provisional: bool) -> bool:
    return provisional and check.expectation == COMPLETENESS


def _always(
    severity: Severity, column: str, value: object, title: str, failure: str, notes: str | None = None
) -> Check:
    """Return the check that a column has one value in every row."""
    expected = f"{column}: {str(value).lower()}"
    return Check(
        expectation="expect_column_values_to_be_in_set",
        severity=severity,
        title=title,
        judge=lambda rows: rules.column_is_always(rows, column, value, f"{failure} ({expected} expected)"),
        evidence=Evidence((column,), expected, notes),
    )


CHECKS = (
    Check(
        expectation="expect_compound_columns_to_be_unique",
        severity="critical",
        title="no partition of a slice is counted twice",
        judge=rules.no_partition_is_counted_twice,
        evidence=Evidence(rules.PLACE),
    ),
    Check(
        expectation="expect_events_to_be_conserved",
        severity="critical",
        title="every event that arrived has exactly one verdict, and no count is missing",
        judge=rules.events_are_conserved,
    ),
    Check(
        expectation=COMPLETENESS,
        severity="critical",
        title="every partition of every slice is complete",
        judge=rules.capture_is_complete,
    ),
    Check(
        expectation="expect_share_of_late_events_to_be_at_most",
        severity="warning",
        title="in most partitions at most half of the events are late",
        judge=lambda rows: rules.share_is_at_most(rows, ["LateInputEvents"], "late", most=0.5, mostly=0.5),
        mostly=0.5,
        evidence=Evidence(
            expected="at most 0.5, in at least 50 % of the rows",
            notes="A late tolerance below the capture interval makes almost every event late.",
        ),
    ),
    _always("info", "malformed", 0, "no event is malformed", "events are malformed"),
    _always("info", "invalid_timestamp", 0, "every event has a valid timestamp", "events have no valid timestamp"),
    _always(
        "warning",
        "whole",
        True,
        "every blob that a slice reads is whole",
        "blobs that slices read are damaged",
        "The events of a damaged blob are in no row and no count. The blob is quarantined, as the pipeline file says.",
    ),
    Check(
        expectation="expect_sequence_gaps_to_be_at_most",
        severity="warning",
        title="no sequence number is missing",
        judge=lambda rows: rules.gaps_are_at_most(rows, 0),
        evidence=Evidence(
            notes="The hub numbers the events of a partition consecutively: a missing number is an event that is not "
            "in the archive."
        ),
    ),
    _always("info", "DuplicateEvents", 0, "no event arrived twice", "events arrived twice"),
)
"""Checks of every row, in the order of the audit. Before them, it judges whether the rows cover the slices."""


def _slice_results(rows: Rows, slice_count: int) -> Iterator[Result]:
    """Yield whether there are enough rows, and whether they cover the slices of the run."""
    at_least = f"at least {slice_count}"
    notes = "A run that read nothing, for example because of a wrong path, must not replace existing rows with nothing."
    yield _number_result(
        *("expect_table_row_count_to_be_between", "every slice was counted", "slices were not counted"),
        *(len(rows), len(rows) >= slice_count, Evidence(expected=at_least, notes=notes)),
    )
    expectation = "expect_column_unique_value_count_to_be_between"
    title = "the metrics cover all slices of the run, and no others"
    if not rows:
        yield _unjudged(expectation, "critical", title)
        return
    starts = len({row["slice_start"] for row in rows})
    yield _number_result(
        *(expectation, title, "the metrics do not cover the slices of the run", starts, starts == slice_count),
        Evidence(("slice_start",), f"slice_start: {at_least}, at most {slice_count}"),
    )


def _number_result(
    expectation: str, title: str, failure: str, observed: int, success: bool, evidence: Evidence
) -> Result:
    sentence = f"{title} (observed {observed})"
    if not success:
        sentence = f"{failure} ({evidence.expected} expected): observed {observed}"
    shown = None if success else evidence
    return Result(
        BUILT_IN, "metrics", expectation, "critical", success, observed, None, sentence, title, evidence=shown
    )


def _unjudged(expectation: str, severity: Severity, title: str) -> Result:
    sentence = f"{title} (no rows to judge)"
    return Result(BUILT_IN, "metrics", expectation, severity, True, None, None, sentence, title, proved=False)
