"""What Great Expectations returns for the built-in suite if every row of a run's metrics meets all of it.

That is so in nearly every run, and Great Expectations takes 1 to 4 s to import. It judges all other metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recapture.quality.suites import Expectation

if TYPE_CHECKING:
    import pandas as pd

_NOTHING_RAISED = {"raised_exception": False, "exception_traceback": None, "exception_message": None}


def sound_results(
    declared: Sequence[Expectation], metrics: pd.DataFrame, slice_count: int, identifying_columns: Sequence[str]
) -> list[dict[str, Any]] | None:
    """Return what `evaluation.evaluate_frame` returns for the built-in suite; None unless every row meets all of it.

    `metrics` are those of a run, with the derived columns.
    """
    if not len(metrics):
        return None
    details = [_details(expectation, metrics, slice_count, identifying_columns) for expectation in declared]
    found = [one for one in details if one is not None]
    if len(found) < len(declared):
        return None
    return [
        {
            "success": True,
            "expectation_config": _config(number, expectation, {"slice_count": slice_count}),
            "result": result,
            "meta": {},
            "exception_info": _NOTHING_RAISED,
        }
        for number, (expectation, result) in enumerate(zip(declared, found, strict=True))
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
    expectation: Expectation, metrics: pd.DataFrame, slice_count: int, identifying_columns: Sequence[str]
) -> dict[str, Any] | None:
    """Return the details of a result, if every row meets the expectation; None if one does not, or for another type."""
    kwargs = expectation.kwargs
    match expectation.type:
        case "expect_table_row_count_to_be_between":
            return {"observed_value": len(metrics)} if len(metrics) >= slice_count else None
        case "expect_column_unique_value_count_to_be_between":
            count = int(metrics[kwargs["column"]].nunique())
            return {"observed_value": count} if count == slice_count else None
        case "expect_compound_columns_to_be_unique":
            columns = metrics[kwargs["column_list"]]
            sound = columns.notna().all(axis=None) and not columns.duplicated().any()
            return _of_rows(metrics, identifying_columns) if sound else None
        case "expect_column_values_to_be_in_set":
            sound = metrics[kwargs["column"]].isin(kwargs["value_set"]).all()
            return _of_rows(metrics, identifying_columns) if sound else None
        case "expect_events_to_be_conserved":
            return _of_frame(len(metrics)) if (metrics["unaccounted_events"] == 0).all() else None
        case "expect_capture_to_be_complete":
            return _of_frame(len(metrics)) if metrics["complete"].eq(True).all() else None
        case "expect_sequence_gaps_to_be_at_most":
            return _of_frame(len(metrics)) if (metrics["SequenceGaps"] <= 0).all() else None
        case "expect_share_of_late_events_to_be_at_most":
            with_events = metrics[metrics["InputEvents"] != 0]
            sound = (with_events["late_share"] <= kwargs["max_value"]).all()
            return _of_frame(len(with_events)) if sound else None
    return None


def _of_rows(metrics: pd.DataFrame, identifying_columns: Sequence[str]) -> dict[str, Any]:
    """Return the details of Great Expectations' own expectations on rows."""
    return {
        "element_count": len(metrics),
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
        "details": {"item": "row"},
    }
