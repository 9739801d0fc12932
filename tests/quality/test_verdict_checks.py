"""The table of verdicts is checked against the metrics before anything is published."""

from recapture.quality.verdict_checks import NotedVerdicts, verdicts_result


def noted(noted: int, counted: int, verdict: str = "late_dropped") -> NotedVerdicts:
    return NotedVerdicts("2024-03-01T10:00:00Z", "3", verdict, noted, counted)


def test_equal_counts_hold() -> None:
    result = verdicts_result([noted(3, 3), noted(0, 0, "malformed")], None)
    assert (result.success, result.severity, result.observed) == (True, "critical", [])


def test_a_lost_row_fails_and_is_named() -> None:
    result = verdicts_result([noted(3, 3, "malformed"), noted(2, 3)], None)
    assert (result.success, result.observed) == (False, ["2024-03-01T10:00:00Z"])
    assert result.sentence == (
        "the table of verdicts differs from the metrics: late_dropped in partition 3 of slice 2024-03-01T10:00:00Z has "
        "2 rows, and the metrics count 3; in all 1 count differs; the run files are damaged: plan the run again"
    )
