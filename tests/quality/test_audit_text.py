"""The text of an audit: its lines, its reason and its sentences."""

from recapture.quality import audit_text
from recapture.quality.audit import Audit, Result
from recapture.quality.suites import Expectation, Severity


def result(severity: Severity, success: bool, sentence: str) -> Result:
    return Result("mine", "aggregates", "expect_column_to_exist", severity, success, None, None, sentence)


AUDIT = Audit(
    "failed",
    (
        result("critical", True, "one"),
        result("critical", False, "two"),
        result("warning", False, "three"),
        result("info", False, "four"),
        result("critical", False, "five"),
    ),
    {},
)


def test_the_text_of_an_audit_has_the_verdict_and_one_line_for_each_expectation() -> None:
    assert audit_text.text(AUDIT).splitlines() == [
        "audit failed",
        "ok       mine aggregates  one",
        "FAILED   mine aggregates  two",
        "WARNING  mine aggregates  three",
        "INFO     mine aggregates  four",
        "FAILED   mine aggregates  five",
    ]


def test_the_reason_names_only_what_blocks() -> None:
    assert audit_text.reason(AUDIT) == "mine: two; mine: five"


def test_an_expectation_without_a_description_is_shown_by_its_type_and_arguments() -> None:
    expectation = Expectation(
        "mine.json: expectation 1",
        "expect_column_values_to_be_between",
        "aggregates",
        "critical",
        {"column": "events", "min_value": 1, "max_value": {"$PARAMETER": "slice_count"}},
    )
    assert audit_text.title(expectation) == (
        "expect column values to be between: column events, min_value 1, max_value slice_count"
    )


def test_rows_that_may_fail_are_counted_all_the_same() -> None:
    evaluation = {"element_count": 12_000, "unexpected_count": 120}
    finding = audit_text.finding(evaluation, [None, {"a": 1, "b": "x"}])
    assert finding == "120 of 12,000 rows fail, such as null, a=1 b=x"
    assert audit_text.finding({"element_count": 1, "unexpected_count": 0}, []) == "true for all 1 row"
