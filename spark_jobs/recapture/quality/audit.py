"""The result of an audit."""

from dataclasses import dataclass, field
from typing import Any, Literal

from recapture.quality.suites import Severity

Verdict = Literal["passed", "passed with warnings", "failed"]


@dataclass(frozen=True)
class Result:
    """What one expectation found."""

    suite: str
    judged: str
    """The alias of the output whose aggregates were judged, or metrics."""
    expectation: str
    """The type, such as expect_column_values_to_not_be_null."""
    severity: Severity
    """As declared; critical when the evaluation itself failed."""
    success: bool
    observed: Any
    """The observed value, or up to three of the unexpected ones; JSON-able."""
    unexpected_count: int | None
    """Rows that fail; None for an expectation that does not judge row by row."""
    sentence: str


@dataclass(frozen=True)
class Audit:
    """The audit of a run: critical blocks publishing, warning marks what is published, info notes."""

    verdict: Verdict
    results: tuple[Result, ...]
    json: dict[str, Any] = field(repr=False)
    """To be kept with the run: the verdict, the results, and what Great Expectations returned; valid JSON."""
