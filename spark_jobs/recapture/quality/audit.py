"""The result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recapture.quality.suites import ParameterValue, Severity

Verdict = Literal["passed", "passed with warnings", "failed"]
JsonResult = dict[str, Any]
"""Result of Great Expectations for one expectation, in JSON types."""


@dataclass(frozen=True)
class Evidence:
    """What the report shows of a failure, next to its sentence."""

    columns: tuple[str, ...] = ()
    """Columns that were judged; none if the name of the expectation or check says it."""
    expected: str = ""
    """What was expected, in words."""
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
