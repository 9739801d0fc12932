"""Expectations on frames and on rows that are too many for one frame: Great Expectations judges parts of them.

The outcome is what Great Expectations says of one pandas frame of all rows. Three ways lead there:

* An expectation that judges each row by itself is evaluated frame by frame, and the counts are added.
* One that asks for unique rows likewise, on frames in which equal rows are together.
* All others see all rows, but only the columns that they name.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from recapture.errors import RunError
from recapture.quality.suites import Expectation, columns_of

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.expectations.expectation import Expectation as LoadedExpectation

    from recapture.quality.rows import Rows

_SUMMARY: dict[str, object] = {"result_format": "SUMMARY"}
_SHOWN = 20
"""Unexpected values that Great Expectations returns in a summary."""
_BY_ROW = frozenset(
    {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_dateutil_parseable",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_be_null",
        "expect_column_values_to_be_of_type",
        "expect_column_values_to_match_json_schema",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_match_strftime_format",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
    }
)
_BY_KEY = frozenset({"expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"})
_BY_SCHEMA = frozenset(
    {
        "expect_column_to_exist",
        "expect_column_type_to_be",
        "expect_table_column_count_to_be_between",
        "expect_table_column_count_to_equal",
        "expect_table_columns_to_match_ordered_list",
        "expect_table_columns_to_match_set",
    }
)

Loaded = tuple[Expectation, "LoadedExpectation"]
Outcome = dict[str, Any]


def on_frame(
    context: EphemeralDataContext,
    frame: pd.DataFrame,
    loaded: Sequence[Loaded],
    parameters: Mapping[str, object],
    named_by: Sequence[str] = (),
) -> list[Outcome]:
    """Return what Great Expectations says of each expectation, as JSON; examples are named by columns of the frame."""
    names = {"unexpected_index_column_names": [*named_by]} if named_by else {}
    results = _results(context, frame, loaded, parameters, _SUMMARY | names)
    return [_json(result) for result in results]


def on_rows(
    context: EphemeralDataContext, rows: Rows, loaded: Sequence[Loaded], parameters: Mapping[str, object]
) -> list[Outcome]:
    """Return what `on_frame` says of a frame of all rows."""

    def judged(frame: pd.DataFrame, group: Sequence[Loaded]) -> list[ExpectationValidationResult]:
        return _results(context, frame, group, parameters, _SUMMARY)

    outcomes: dict[int, Outcome] = {}
    by_row = [each for each in loaded if each[0].type in _BY_ROW and _is_by_row(each[0].kwargs.get("row_condition"))]
    if by_row:
        columns = {name for each, _ in by_row for name in _needed(each, rows.columns)}
        results = [judged(frame, by_row) for frame in rows.frames(columns)]
        outcomes |= {
            id(each): _together(parts) for (each, _), parts in zip(by_row, zip(*results, strict=True), strict=True)
        }
    for each, expectation in loaded:
        if id(each) not in outcomes:
            frames = _frames(rows, each)
            outcomes[id(each)] = _together([judged(frame, [(each, expectation)])[0] for frame in frames])
    return [outcomes[id(each)] for each, _ in loaded]


def _frames(rows: Rows, expectation: Expectation) -> Iterator[pd.DataFrame]:
    columns = _needed(expectation, rows.columns)
    if expectation.type in _BY_SCHEMA:
        yield rows.none()
    elif expectation.type in _BY_KEY and _is_by_row(expectation.kwargs.get("row_condition")):
        key = set(columns_of(expectation.kwargs))
        yield from rows.frames_by_key(columns, [name for name in rows.columns if name in key])
    else:
        yield rows.whole(columns)


def _needed(expectation: Expectation, columns: Sequence[str]) -> list[str]:
    """Return the columns that an expectation names, and those whose names are in the text of its condition."""
    named = set(columns_of(expectation.kwargs))
    texts = list(_texts(expectation.kwargs.get("row_condition")))
    return [name for name in columns if name in named or any(name in text for text in texts)]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _is_by_row(condition: Any) -> bool:
    """Whether a row_condition looks at one row at a time, as `events > events.mean()` does not."""
    if isinstance(condition, Mapping):
        if condition.get("type") == "pass_through":
            return _is_by_row(condition.get("pass_through_filter"))
        return all(map(_is_by_row, condition.get("conditions", ())))
    if not isinstance(condition, str):
        return True
    try:
        return _is_plain(ast.parse(re.sub("`[^`]*`", "column", condition.strip()), mode="eval").body)
    except SyntaxError:
        return False


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(isinstance(item, ast.Constant) for item in node.elts)
    if isinstance(node, ast.Compare):
        compared = zip(node.ops, node.comparators, strict=True)
        if any(isinstance(op, ast.In | ast.NotIn) and isinstance(item, ast.Name) for op, item in compared):
            return False
    elif not isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp):
        return isinstance(node, ast.Name | ast.Constant)
    return all(_is_plain(item) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr))


def _results(
    context: EphemeralDataContext,
    frame: pd.DataFrame,
    loaded: Sequence[Loaded],
    parameters: Mapping[str, object],
    result_format: Mapping[str, object],
) -> list[ExpectationValidationResult]:
    """Let Great Expectations judge a frame; the results are in the order of `loaded`.

    A validation of a data source would hash the whole frame before, and fail on results that its store cannot hold.
    """
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.validator.validator import Validator

    engine = PandasExecutionEngine(batch_data_dict={"rows": frame})
    validator = Validator(execution_engine=engine, data_context=context)
    configurations = [copy.deepcopy(expectation.configuration) for _, expectation in loaded]
    for number, configuration in enumerate(configurations):
        configuration.id = str(number)
    results = validator.graph_validate(
        configurations=validator.process_expectations_for_validation(configurations, dict(parameters)),
        runtime_configuration={"result_format": dict(result_format)},
    )
    by_id = {result.expectation_config.id: result for result in results if result.expectation_config}
    if by_id.keys() != {str(number) for number in range(len(loaded))} or len(results) != len(loaded):
        raise RunError(f"{len(loaded)} expectations loaded, {len(results)} evaluated; the audit cannot be trusted")
    return [by_id[str(number)] for number in range(len(loaded))]


def _together(parts: Sequence[ExpectationValidationResult]) -> Outcome:
    """Return the result of all rows from those of frames that hold each row once."""
    failed = next((part for part in parts if not part.result), None)
    if failed is not None or "unexpected_count" not in parts[0].result or len(parts) == 1:
        return _json(failed or parts[0])
    found = [part.result for part in parts]
    rows, unexpected, missing = (
        sum(each.get(name, 0) for each in found) for name in ("element_count", "unexpected_count", "missing_count")
    )
    present = rows - missing
    examples = sorted(
        (
            example
            for each in found
            for example in zip(each["partial_unexpected_index_list"], each["partial_unexpected_list"], strict=True)
        ),
        key=itemgetter(0),
    )[:_SHOWN]
    shown = [value for _, value in examples]
    share = unexpected / present * 100 if present else None
    whole = copy.copy(parts[0])
    whole.success = not present or (float(present) - float(unexpected)) / float(present) >= _mostly(whole)
    whole.result = {
        "element_count": rows,
        "unexpected_count": unexpected,
        "unexpected_percent": share,
        "partial_unexpected_list": shown,
        **_counted(shown),
        "partial_unexpected_index_list": [index for index, _ in examples],
    }
    if "missing_count" in found[0]:
        whole.result |= {
            "missing_count": missing,
            "missing_percent": missing / rows * 100 if rows else None,
            "unexpected_percent_total": unexpected / rows * 100 if rows else None,
            "unexpected_percent_nonmissing": share,
        }
    return _json(whole)


def _counted(shown: Sequence[Any]) -> dict[str, Any]:
    """How often each of the examples is among them, where Great Expectations can count and sort them."""
    keys = [tuple(value.values()) if isinstance(value, dict) else value for value in shown]
    try:
        counts = sorted(Counter(keys).most_common(_SHOWN), key=lambda each: (-each[1], each[0]))
    except TypeError:
        return {}
    return {"partial_unexpected_counts": [{"value": value, "count": count} for value, count in counts]}


def _mostly(result: ExpectationValidationResult) -> float:
    config = result.expectation_config
    return float(config.kwargs.get("mostly", 1)) if config else 1.0


def _json(result: ExpectationValidationResult) -> Outcome:
    return cast(Outcome, _finite(result.to_json_dict()))


def _finite(value: Any) -> Any:
    """JSON has no word for NaN and the infinities: null, "Infinity", "-Infinity"."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
