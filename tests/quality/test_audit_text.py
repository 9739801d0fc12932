"""The text of an audit: its lines and its reason."""

from dataclasses import replace

from recapture.quality.audit import Audit, Result, reason_of, text_of
from recapture.quality.suites import Severity


def result(severity: Severity, success: bool, sentence: str) -> Result:
    return Result("mine", "aggregates", "expect_column_to_exist", severity, success, None, None, sentence, "title")


AUDIT = Audit(
    "failed",
    (
        result("critical", True, "one"),
        result("critical", False, "two"),
        result("warning", False, "three"),
        result("info", False, "four"),
        replace(result("critical", True, "six"), proved=False),
        result("critical", False, "five"),
    ),
    {},
)


def test_the_text_of_an_audit_has_the_verdict_and_one_line_for_each_expectation_what_failed_first() -> None:
    assert text_of(AUDIT).splitlines() == [
        "audit failed",
        "FAILED   mine aggregates  two",
        "FAILED   mine aggregates  five",
        "WARNING  mine aggregates  three",
        "INFO     mine aggregates  four",
        "SKIPPED  mine aggregates  six",
        "ok       mine aggregates  one",
    ]


def test_the_reason_names_only_what_blocks() -> None:
    assert reason_of(AUDIT) == "mine: two; mine: five"
