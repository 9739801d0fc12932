"""The built-in checks on metrics: each passes, fails with a sentence and examples, and has its limit where it says."""

import json
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import RunError
from recapture.quality.audit import Evidence, Result
from recapture.quality.built_in_checks import results
from recapture.time_model.metrics import COUNTS, WATERMARK, WATERMARK_DELAY
from tests.quality.conftest import RUN

CONSERVED = "every event that arrived has exactly one verdict, and no count is missing"
COMPLETE = "every partition of every slice is complete"
LATE = "in most partitions at most half of the events are late"
MALFORMED = "no event is malformed"
VALID = "every event has a valid timestamp"
WHOLE = "every blob that a slice reads is whole"
GAPS = "no sequence number is missing"
TWICE = "no event arrived twice"
COUNTED = "every slice was counted"
COVERED = "the metrics cover all slices of the run, and no others"
COUNTED_ONCE = "no partition of a slice is counted twice"
FIRST = "slice 2026-03-01T10:00:00Z, partition 0"
LAST = "slice 2026-03-01T11:00:00Z, partition 1"

Rows = list[dict[str, Any]]


def metrics(*, input_: str = "in", **changes: Any) -> Rows:
    """Return sound metrics of two slices and two partitions, with these changes to the last row."""
    counts = dict.fromkeys(COUNTS, 0) | {"InputEvents": 20, "LateInputEvents": 3, "on_time": 18, "late_adjusted": 2}
    others = {WATERMARK: None, WATERMARK_DELAY: 12.5, "complete": True, "whole": True}
    rows = [
        {"slice_start": f"2026-03-01T{hour}:00:00Z", "input": input_, "partition": partition, **counts, **others}
        for hour in (10, 11)
        for partition in ("0", "1")
    ]
    rows[-1] |= changes
    return rows


def result_of(title: str, rows: Rows, slice_count: int = 2) -> Result:
    (result,) = (result for result in results(rows, slice_count) if result.title == title)
    return result


def failed(rows: Rows, slice_count: int = 2) -> dict[str, str]:
    """Return the sentences of the checks that failed, by title."""
    return {result.title: result.sentence for result in results(rows, slice_count) if not result.success}


def test_sound_metrics_pass_every_check() -> None:
    true = "(true for all 4 slices and partitions)"
    assert [
        (result.expectation, result.severity, result.success, result.sentence) for result in results(metrics(), 2)
    ] == [
        ("expect_table_row_count_to_be_between", "critical", True, f"{COUNTED} (observed 4)"),
        ("expect_column_unique_value_count_to_be_between", "critical", True, f"{COVERED} (observed 2)"),
        ("expect_compound_columns_to_be_unique", "critical", True, f"{COUNTED_ONCE} {true}"),
        ("expect_events_to_be_conserved", "critical", True, f"{CONSERVED} {true}"),
        ("expect_capture_to_be_complete", "critical", True, f"{COMPLETE} {true}"),
        ("expect_share_of_late_events_to_be_at_most", "warning", True, f"{LATE} {true}"),
        ("expect_column_values_to_be_in_set", "info", True, f"{MALFORMED} {true}"),
        ("expect_column_values_to_be_in_set", "info", True, f"{VALID} {true}"),
        ("expect_column_values_to_be_in_set", "warning", True, f"{WHOLE} {true}"),
        ("expect_sequence_gaps_to_be_at_most", "warning", True, f"{GAPS} {true}"),
        ("expect_column_values_to_be_in_set", "info", True, f"{TWICE} {true}"),
    ]
    assert {(result.suite, result.judged, result.proved, result.evidence) for result in results(metrics(), 2)} == {
        ("run_metrics", "metrics", True, None)
    }


ONE_OF_FOUR = "1 of 4 slices and partitions (25 %), such as"


@pytest.mark.parametrize(
    ("changes", "title", "sentence"),
    [
        (
            {"on_time": 17},
            CONSERVED,
            f"events have no verdict or several, or a count is missing: {ONE_OF_FOUR} {LAST}, unaccounted_events 1",
        ),
        (
            {"on_time": 19},
            CONSERVED,
            f"events have no verdict or several, or a count is missing: {ONE_OF_FOUR} {LAST}, unaccounted_events -1",
        ),
        (
            {"late_dropped": None},
            CONSERVED,
            f"events have no verdict or several, or a count is missing: {ONE_OF_FOUR} {LAST}, unaccounted_events null",
        ),
        ({"complete": False}, COMPLETE, f"Capture may not have written everything that arrived: {ONE_OF_FOUR} {LAST}"),
        ({"complete": None}, COMPLETE, f"Capture may not have written everything that arrived: {ONE_OF_FOUR} {LAST}"),
        (
            {"malformed": 2, "on_time": 16},
            MALFORMED,
            f"events are malformed (malformed: 0 expected): {ONE_OF_FOUR} {LAST}, malformed 2",
        ),
        (
            {"invalid_timestamp": 1, "on_time": 17},
            VALID,
            "events have no valid timestamp (invalid_timestamp: 0 expected): "
            f"{ONE_OF_FOUR} {LAST}, invalid_timestamp 1",
        ),
        (
            {"whole": False},
            WHOLE,
            f"blobs that slices read are damaged (whole: true expected): {ONE_OF_FOUR} {LAST}, whole false",
        ),
        ({"SequenceGaps": 1}, GAPS, f"sequence numbers are missing: {ONE_OF_FOUR} {LAST}, gaps 1"),
        ({"SequenceGaps": None}, GAPS, f"sequence numbers are missing: {ONE_OF_FOUR} {LAST}, gaps null"),
        (
            {"DuplicateEvents": 1, "InputEvents": 21},
            TWICE,
            f"events arrived twice (DuplicateEvents: 0 expected): {ONE_OF_FOUR} {LAST}, DuplicateEvents 1",
        ),
        (
            {"partition": "0"},
            COUNTED_ONCE,
            "partitions of slices are counted twice: 2 of 4 slices and partitions (50 %), such as "
            "slice 2026-03-01T11:00:00Z, input in, partition 0",
        ),
    ],
)
def test_a_row_that_is_not_as_expected_fails_one_check_with_its_place(
    changes: dict[str, Any], title: str, sentence: str
) -> None:
    assert failed(metrics(**changes)) == {title: sentence}


def test_the_metrics_need_a_row_of_every_slice() -> None:
    uncovered = "the metrics do not cover the slices of the run (slice_start: at least {0}, at most {0} expected)"
    assert failed(metrics(), 4) == {COVERED: f"{uncovered.format(4)}: observed 2"}
    assert failed(metrics(), 5) == {
        COUNTED: "slices were not counted (at least 5 expected): observed 4",
        COVERED: f"{uncovered.format(5)}: observed 2",
    }


def test_the_metrics_have_no_row_of_another_slice() -> None:
    assert list(failed(metrics(), 1)) == [COVERED]


def test_without_rows_only_their_number_is_judged() -> None:
    counted, *others = results([], 2)
    assert (counted.success, counted.observed) == (False, 0)
    assert counted.sentence == "slices were not counted (at least 2 expected): observed 0"
    assert all(result.success and not result.proved for result in others)
    assert {result.sentence.removeprefix(result.title) for result in others} == {" (no rows to judge)"}


def test_half_of_the_rows_may_have_more_late_events_than_half() -> None:
    rows = metrics(LateInputEvents=11)
    assert failed(rows) == {}
    assert result_of(LATE, rows).sentence == f"{LATE} ({ONE_OF_FOUR} {LAST}, 55 % late)"
    rows[0]["LateInputEvents"] = 20
    assert failed(rows) == {}
    rows[1]["LateInputEvents"] = 10
    assert failed(rows) == {}
    rows[1]["LateInputEvents"] = 11
    assert failed(rows) == {
        LATE: "70 % of the events are late (at most 50 % expected in at least 50 % of the slices and partitions): "
        f"3 of 4 slices and partitions (75 %), such as {FIRST}, 100 % late; "
        f"slice 2026-03-01T10:00:00Z, partition 1, 55 % late; {LAST}, 55 % late"
    }


def test_late_events_are_judged_where_events_arrived() -> None:
    nothing = dict.fromkeys(COUNTS, 0)
    rows = [row | nothing for row in metrics()[:3]] + [metrics()[3] | {"LateInputEvents": 11}]
    assert failed(rows)[LATE].endswith(f": 1 of 1 slice and partition (100 %), such as {LAST}, 55 % late")
    assert result_of(LATE, [row | nothing for row in rows]).sentence == f"{LATE} (true for 0 slices and partitions)"


def test_an_unknown_number_of_late_events_is_no_small_share() -> None:
    rows = [row | {"LateInputEvents": None} for row in metrics()]
    assert list(failed(rows)) == [LATE]


@pytest.mark.parametrize("column", ["malformed", "invalid_timestamp", "DuplicateEvents"])
def test_a_missing_count_fails_the_conservation_of_events_and_no_note(column: str) -> None:
    changes: dict[str, Any] = {column: None}
    assert list(failed(metrics(**changes))) == [CONSERVED]


def test_whether_a_slice_is_whole_need_not_be_known() -> None:
    assert failed(metrics(whole=None)) == {}


def test_the_largest_measure_comes_first_and_three_examples_are_shown() -> None:
    rows = metrics()
    for row, gaps in zip(rows, (1, 5, 2, 3), strict=True):
        row["SequenceGaps"] = gaps
    result = result_of(GAPS, rows)
    assert [example["gaps"] for example in result.observed] == [5, 3, 2]
    assert result.unexpected_count == 4
    assert result.evidence is not None
    assert [row["gaps"] for row in result.evidence.rows] == [5, 3, 2, 1]
    for row, extra in zip(rows, (0, -1, 4, -7), strict=True):
        row["InputEvents"] += extra
    assert [example["unaccounted_events"] for example in result_of(CONSERVED, rows).observed] == [-7, 4, -1]


def test_broken_laws_that_cancel_out_fail() -> None:
    rows = metrics(on_time=19)
    rows[0]["on_time"] = 17
    assert result_of(CONSERVED, rows).unexpected_count == 2


def test_an_example_names_the_input_if_there_are_several() -> None:
    rows = metrics() + metrics(input_="alarms", complete=False)
    assert failed(rows)[COMPLETE].endswith("such as slice 2026-03-01T11:00:00Z, input alarms, partition 1")
    assert failed(rows + rows[-1:]).keys() == {COUNTED_ONCE, COMPLETE}


@pytest.mark.parametrize("column", ["late_dropped", "input", "slice_start", "complete", "whole"])
def test_metrics_without_a_column_are_an_error(column: str) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in metrics()]
    with pytest.raises(RunError, match=f"the run's metrics lack {column}; run the slices again"):
        results(rows, 2)


def test_a_failure_has_its_evidence_for_the_report() -> None:
    damaged = result_of(WHOLE, metrics(whole=False))
    row = {"slice_start": "2026-03-01T11:00:00Z", "partition": "1", "whole": False}
    assert damaged.evidence is not None
    assert damaged.evidence.notes is not None
    assert damaged.evidence == Evidence(("whole",), "whole: true", damaged.evidence.notes, 4, (row,))
    counted = result_of(COUNTED, metrics(), 5)
    assert counted.evidence is not None
    assert (counted.observed, counted.evidence.expected, counted.evidence.judged) == (4, "at least 5", None)
    many = [row | {"SequenceGaps": 1} for row in metrics() * 6]
    gaps = result_of(GAPS, many)
    assert (gaps.unexpected_count, gaps.evidence and len(gaps.evidence.rows)) == (24, 20)
    json.dumps(asdict(gaps), allow_nan=False)


def test_an_audit_without_suites_imports_neither_great_expectations_nor_pandas(tmp_path: Path) -> None:
    code = """
import pickle, sys
from pathlib import Path
from recapture.quality import checkpoint
rows, run = pickle.loads(Path(sys.argv[1]).read_bytes())
assert checkpoint.audit(rows, {}, {}, run).verdict == "passed"
assert checkpoint.audit([row | {"SequenceGaps": 1} for row in rows], {}, {}, run).verdict == "passed with warnings"
assert checkpoint.audit(rows[:1], {}, {}, run).verdict == "failed"
incomplete = [row | {"complete": False} for row in rows]
assert checkpoint.audit(incomplete, {}, {}, run).verdict == "failed"
assert checkpoint.audit(incomplete, {}, {}, run, provisional=True).verdict == "passed with warnings"
assert not {"great_expectations", "pandas"} & sys.modules.keys()
"""
    file = tmp_path / "run.pickle"
    file.write_bytes(pickle.dumps((metrics(), RUN)))
    subprocess.run([sys.executable, "-c", code, file], check=True)
