"""The result of an audit, and its text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from recapture.printable import one_line
from recapture.quality.suites import BUILT_IN, Check, ParameterValue, Severity

Verdict = Literal["passed", "passed with warnings", "failed"]
JsonResult = dict[str, Any]
"""Result of Great Expectations for one expectation, in JSON types."""
SHOWN_SLICES = 3
"""Number of failed slices that a result of a built-in check has."""


@dataclass(frozen=True)
class Evidence:
    """What the report shows of a failure, next to its sentence."""

    columns: tuple[str, ...] = ()
    """Columns that were judged; none if the name of the expectation or check says it."""
    expected: str = ""
    notes: str | list[str] | None = None
    """What a failure may mean."""
    judged: int | None = None
    """Number of rows that were judged; None unless each row is judged."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """The first rows that fail."""


@dataclass(frozen=True)
class Result:
    """Result of one expectation, or of one built-in check."""

    suite: str
    judged: str
    """Alias of the output whose rows were judged, or `metrics`, or `slices`."""
    expectation: str
    """Type of the expectation, such as expect_column_values_to_not_be_null, or name of the built-in check."""
    severity: Severity
    """Severity as declared, or `critical` if the expectation could not be evaluated."""
    success: bool
    observed: Any
    """Observed value, or up to three unexpected values. JSON can hold it."""
    unexpected_count: int | None
    """Number of rows that fail; None for an expectation that does not judge row by row."""
    sentence: str
    """Line of the audit's text: what was expected and observed, or what is wrong."""
    title: str = ""
    """What is expected; empty in an audit of an earlier version."""
    proved: bool = True
    """Whether there was something to judge. If not, for example without enough history, the expectation succeeds."""
    evidence: Evidence | None = None
    """None unless a built-in check on the metrics failed."""


TITLES: Mapping[Check, str] = {
    "events_can_be_used": "nearly all events can be used",
    "events_reach_the_query": "some events reach the query",
    "query_returns_rows": "the query returns rows for the events that it reads",
    "archive_has_no_holes": "nothing is missing from the archive",
    "no_published_event_is_lost": "no slice loses events that are published",
    "events_of_every_key_reach_the_query": "at least one event of every key reached the query",
    "verdicts_equal_the_metrics": "the table of verdicts has as many events of each verdict as the metrics count",
    "no_key_disappears": "every key of the three slices before still has rows",
}
"""What is so if a built-in check on slices holds."""


def slice_result(
    check: Check,
    severity: Severity,
    failed: Sequence[str],
    sentence: str,
    *,
    judged: str = "slices",
    proved: bool = True,
) -> Result:
    """Return the result of a built-in check on slices; `failed` are the starts of slices that fail, in order."""
    observed = list(failed[:SHOWN_SLICES])
    return Result(BUILT_IN, judged, check, severity, not failed, observed, None, sentence, TITLES[check], proved)


@dataclass(frozen=True)
class Validation:
    """What Great Expectations says about the expectations of a suite that could be judged.

    In an audit of an earlier version, this may be the suite of the built-in checks.
    """

    suite_name: str
    judged: str
    """As in `Result`."""
    results: list[JsonResult]


@dataclass(frozen=True)
class Audit:
    """Audit of a run.

    A failed critical expectation prevents publication. A failed warning marks what is published.
    """

    verdict: Verdict
    results: tuple[Result, ...]
    parameters: Mapping[str, Mapping[str, ParameterValue]] = field(default_factory=dict)
    """Values of the user's parameters, by the alias of the output whose suite has them."""
    history: Mapping[str, list[str]] = field(default_factory=dict)
    """Starts of the published slices that the run was compared with, by what was judged."""
    validations: tuple[Validation, ...] = field(default=(), repr=False)


_MARKS = {"critical": "FAILED", "warning": "WARNING", "info": "INFO"}
_ORDER = (*_MARKS.values(), "SKIPPED", "ok")
"""Marks of the lines, in order."""


def text_of(audit: Audit) -> str:
    """Return the verdict, the parameters of the suites, and a line for each expectation, first those that failed."""
    width = max(len(f"{result.suite} {result.judged}") for result in audit.results)
    parameters = (
        f"parameters of {alias}: {' '.join(f'{name}={value}' for name, value in values.items())}"
        for alias, values in audit.parameters.items()
    )
    results = sorted(audit.results, key=lambda result: _ORDER.index(_mark(result)))
    lines = (
        f"{_mark(result):<7}  {f'{result.suite} {result.judged}':<{width}}  {result.sentence}" for result in results
    )
    return "\n".join(map(one_line, (f"audit {audit.verdict}", *parameters, *lines)))


def reason_of(audit: Audit) -> str:
    """Return the sentences of all failed critical expectations in one line; empty if there are none."""
    blocking = [result for result in audit.results if not result.success and result.severity == "critical"]
    return one_line("; ".join(f"{result.suite}: {result.sentence}" for result in blocking))


def _mark(result: Result) -> str:
    return ("ok" if result.proved else "SKIPPED") if result.success else _MARKS[result.severity]
