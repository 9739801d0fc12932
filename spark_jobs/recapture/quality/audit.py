"""The result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recapture.quality.suites import Severity

Verdict = Literal["passed", "passed with warnings", "failed"]


@dataclass(frozen=True)
class Result:
    """Result of one expectation, or of one built-in check on slices."""

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
    title: str
    """What is expected."""
    proved: bool = True
    """Whether there was something to judge. If not, for example without enough history, the expectation succeeds."""


@dataclass(frozen=True)
class Audit:
    """Audit of a run.

    A failed critical expectation prevents publication. A failed warning marks what is published.
    """

    verdict: Verdict
    results: tuple[Result, ...]
    json: dict[str, Any] = field(repr=False)
    """Content of the run files: what is above, the published slices that the run was compared with, and the results of
    Great Expectations; valid JSON."""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Values of the user's parameters, by the alias of the output whose suite has them."""
