"""What Great Expectations returns for the built-in suite if every row of a run's metrics passes.

That is so in nearly every run, and spares it the import, which takes 1 to 4 s. This module knows the expectations of
the built-in suite and their arguments; tests compare it with Great Expectations.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from recapture.quality.metrics import COLUMNS
from recapture.quality.suites import Expectation
from recapture.time_model.metrics import VERDICTS, WATERMARK, WATERMARK_DELAY

MetricRows = Sequence[Mapping[str, Any]]
_NEVER_NULL = [column for column in COLUMNS if column not in (WATERMARK, WATERMARK_DELAY)]
_NOTHING_RAISED = {"raised_exception": False, "exception_traceback": None, "exception_message": None}


def sound_results(
    declared: Sequence[Expectation], metrics: MetricRows, slice_count: int, identifying_columns: Sequence[str]
) -> list[dict[str, Any]] | None:
    """Return what `evaluation.evaluate_frame` returns for the built-in suite; None unless every row passes.

    `metrics` are the rows of a run's metrics.
    """
    if not metrics or any(row.get(column) is None for row in metrics for column in _NEVER_NULL):
        return None
    details = [_details(expectation, metrics, slice_count, identifying_columns) for expectation in declared]
    passed = [result for result in details if result is not None]
    if len(passed) < len(declared):
        return None
    return [
        {
            "success": True,
            "expectation_config": _config(number, expectation, {"slice_count": slice_count}),
            "result": result,
            "meta": {},
            "exception_info": _NOTHING_RAISED,
        }
        for number, (expectation, result) in enumerate(zip(declared, passed, strict=True))
    ]


def _config(number: int, expectation: Expectation, parameters: Mapping[str, object]) -> dict[str, Any]:
    notes = {} if expectation.notes is None else {"notes": expectation.notes}
    return {
        "type": expectation.type,
        "kwargs": {
            name: parameters[value["$PARAMETER"]] if isinstance(value, Mapping) else value
            for name, value in expectation.kwargs.items()
        },
        "meta": {"asset": expectation.asset},
        **notes,
        "id": str(number),
        "description": expectation.description,
        "severity": expectation.severity,
    }


def _details(
    expectation: Expectation, metrics: MetricRows, slice_count: int, identifying_columns: Sequence[str]
) -> dict[str, Any] | None:
    """Return the details of a result; None if a row fails, or if the built-in suite has no such expectation."""
    kwargs, count = expectation.kwargs, len(metrics)
    match expectation.type:
        case "expect_table_row_count_to_be_between":
            return {"observed_value": count} if count >= slice_count else None
        case "expect_column_unique_value_count_to_be_between":
            distinct = len({row[kwargs["column"]] for row in metrics})
            return {"observed_value": distinct} if distinct == slice_count else None
        case "expect_compound_columns_to_be_unique":
            distinct = len({tuple(row[column] for column in kwargs["column_list"]) for row in metrics})
            return _of_rows(count, identifying_columns) if distinct == count else None
        case "expect_column_values_to_be_in_set":
            sound = all(row[kwargs["column"]] in kwargs["value_set"] for row in metrics)
            return _of_rows(count, identifying_columns) if sound else None
        case "expect_events_to_be_conserved":
            sound = all(
                row["InputEvents"] == row["DuplicateEvents"] + sum(row[name] for name in VERDICTS) for row in metrics
            )
            return _of_frame(count) if sound else None
        case "expect_capture_to_be_complete":
            return _of_frame(count) if all(row["complete"] is True for row in metrics) else None
        case "expect_sequence_gaps_to_be_at_most":
            return _of_frame(count) if all(row["SequenceGaps"] <= 0 for row in metrics) else None
        case "expect_share_of_late_events_to_be_at_most":
            shares = [row["LateInputEvents"] / row["InputEvents"] for row in metrics if row["InputEvents"]]
            return _of_frame(len(shares)) if all(share <= kwargs["max_value"] for share in shares) else None
    return None


def _of_rows(count: int, identifying_columns: Sequence[str]) -> dict[str, Any]:
    """Return the details of Great Expectations' own expectations on rows."""
    return {
        "element_count": count,
        "unexpected_count": 0,
        "unexpected_percent": 0.0,
        "partial_unexpected_list": [],
        "unexpected_index_column_names": [*identifying_columns],
        "missing_count": 0,
        "missing_percent": 0.0,
        "unexpected_percent_total": 0.0,
        "unexpected_percent_nonmissing": 0.0,
        "partial_unexpected_counts": [],
        "partial_unexpected_index_list": [],
    }


def _of_frame(judged: int) -> dict[str, Any]:
    """Return the details of Recapture's expectations, see `expectations.base`."""
    return {
        "element_count": judged,
        "unexpected_count": 0,
        "unexpected_percent": 0.0 if judged else None,
        "partial_unexpected_list": [],
        "partial_unexpected_counts": [],
        "details": {},
    }
